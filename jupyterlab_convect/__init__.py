"""Take a notebook from the laptop to the GPU cluster without changing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from ._version import __version__
except ImportError:  # a checkout that was never built, or the bundled runner
    __version__ = "0+unknown"

if TYPE_CHECKING:
    from .reporting import metric, output

__all__ = ["__version__", "metric", "output"]


def __getattr__(name: str) -> Any:
    if name in ("metric", "output"):
        from . import reporting

        return getattr(reporting, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyterlab-convect"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from .app import Convect

    return [{"module": "jupyterlab_convect.app", "app": Convect}]
