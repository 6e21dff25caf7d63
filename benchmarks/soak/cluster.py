"""A cluster whose credentials end while pods run; on the test bed, if it is up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from .. import workloads
from ..kubernetes import TESTBED
from .support import Broken, Skipped, all_succeeded, quiet_server, wait_for

ROLE = TESTBED.parent.parent / "deploy" / "role.yaml"
ACCOUNT = "convect"
LOGIN = """echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
"status": {"token": "'$(cat "$0")'", "expirationTimestamp": "2020-01-01T00:00:00Z"}}'
"""
"""Asked each time, because what it gives is never good for long."""

Kubectl = Callable[..., str]


def credentials(folder: Path) -> str:
    """Twice the token is revoked for 20 s before there is a new one; runs lose nothing."""
    workloads.notebook(folder / "wait.ipynb", *["import time; time.sleep(5)"] * 14)
    login = folder.parent / "login"
    login.mkdir()
    with _account(login) as (kubectl, image):
        _log_in(login, kubectl, 0)
        options = (f"--KubernetesRuntime.image={image}",)
        kubeconfig = str(login / "kubeconfig")
        with quiet_server(folder, options=options, KUBECONFIG=kubeconfig) as running:
            asked = {"path": "wait.ipynb", "runtime": "kubernetes"}
            made = [running.convect("runs", asked) for _ in range(3)]
            refused = set()
            for number in (1, 2):
                time.sleep(10)
                kubectl("delete", "secret", f"login-{number - 1}")
                time.sleep(20)
                for trouble in running.convect("about")["health"]:
                    refused.add(trouble["name"])
                _log_in(login, kubectl, number)
            views = [wait_for(running, run["id"], 300) for run in made]
    all_succeeded(views)
    for view in views:
        (step,) = view["steps"].values()
        if len(step["attempts"]) != 1:
            raise Broken(f"{view['id']} needed {len(step['attempts'])} attempts")
    if not refused:
        raise Broken("nobody said that the cluster refuses the credentials")
    return f"3 runs succeeded; meanwhile it was said of {', '.join(sorted(refused))}"


@contextmanager
def _account(folder: Path) -> Iterator[tuple[Kubectl, str]]:
    """An account with the rights of `deploy/`, in a namespace of its own; and an image."""
    sys.path.insert(0, str(TESTBED))
    try:
        import build
        import cluster
        import images
    finally:
        sys.path.remove(str(TESTBED))
    if not cluster.is_up():
        raise Skipped("needs a cluster; `make cluster-up` starts one")
    namespace = f"convect-soak-{os.getpid()}"
    program = [build.cache_folder() / "kubectl", f"--kubeconfig={cluster.KUBECONFIG}"]

    def kubectl(*words: str) -> str:
        command = [*program, f"--namespace={namespace}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    config = yaml.safe_load(cluster.KUBECONFIG.read_text())
    login = {"command": "sh", "args": ["-c", LOGIN, str(folder / "token")]}
    login |= {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    config["users"] = [{"name": ACCOUNT, "user": {"exec": login}}]
    for item in config["contexts"]:
        item["context"].update(user=ACCOUNT, namespace=namespace)
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    kubectl("create", "namespace", namespace)
    try:
        kubectl("create", "serviceaccount", ACCOUNT)
        kubectl("create", "--filename", str(ROLE))
        account = f"--serviceaccount={namespace}:{ACCOUNT}"
        kubectl("create", "rolebinding", ACCOUNT, "--role=jupyterlab-convect", account)
        yield kubectl, images.NOTEBOOK
    finally:
        kubectl("delete", "namespace", namespace, "--wait=false")


def _log_in(folder: Path, kubectl: Kubectl, number: int) -> None:
    """A new token, which is good until the Secret that it is bound to is deleted."""
    secret = f"login-{number}"
    kubectl("create", "secret", "generic", secret)
    bound = ("--bound-object-kind=Secret", f"--bound-object-name={secret}")
    (folder / "draft").write_text(kubectl("create", "token", ACCOUNT, *bound))
    (folder / "draft").replace(folder / "token")
