"""Steps as pods of a Kubernetes cluster."""

from importlib.util import find_spec

from .runtime import KubernetesRuntime

if find_spec("kubernetes") is None:
    raise ImportError("it needs `pip install 'jupyterlab-convect[kubernetes]'`")

__all__ = ["KubernetesRuntime"]
