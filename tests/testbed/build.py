"""Builds the Kubernetes programs of the test bed from their Go modules, once a version.

Usage: python build.py   prints the folder that holds them
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION = "1.36.4"
PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)
# The libraries that live inside the kubernetes repository and are released beside it.
STAGING = """api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider
cluster-bootstrap code-generator component-base component-helpers controller-manager cri-api
cri-client cri-streaming csi-translation-lib dynamic-resource-allocation endpointslice externaljwt
kms kube-aggregator kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics
mount-utils pod-security-admission sample-apiserver sample-cli-plugin sample-controller
streaming""".split()

# An image needs something that waits: this is the whole of the pod's first container.
PAUSE = """package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
"""


def cache_folder() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "jupyterlab-convect" / f"kubernetes-{VERSION}"


def build() -> Path:
    """The folder with the programs, built now if it is not there yet."""
    folder, missing = cache_folder(), _missing()
    if not missing:
        return folder
    if shutil.which("go") is None:
        raise SystemExit("Building Kubernetes for the test bed needs Go 1.26: install it first.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        module = Path(scratch)
        _write_module(module)
        go(module, "mod", "tidy")
        for number, name in enumerate(missing, 1):
            say(f"building {name} ({number} of {len(missing)})")
            package = "./pause" if name == "pause" else f"k8s.io/kubernetes/cmd/{name}"
            partial = folder / f".{name}.partial"
            flags = ["-mod=mod", "-trimpath", "-ldflags", _link_flags(), "-o", str(partial)]
            go(module, "build", *flags, package)
            partial.rename(folder / name)
    return folder


def is_built() -> bool:
    return not _missing()


def _missing() -> list[str]:
    return [name for name in (*PROGRAMS, "pause") if not (cache_folder() / name).exists()]


def _write_module(module: Path) -> None:
    staging = "0" + VERSION.removeprefix("1")
    replacements = "\n".join(f"\tk8s.io/{name} => k8s.io/{name} v{staging}" for name in STAGING)
    (module / "go.mod").write_text(
        "module testbed\n\ngo 1.26\n\n"
        f"require k8s.io/kubernetes v{VERSION}\n\nreplace (\n{replacements}\n)\n"
    )
    imports = "\n".join(
        f'\t_ "k8s.io/kubernetes/cmd/{name}/app"'
        for name in PROGRAMS
        if name not in ("kubectl", "kubelet")
    )
    (module / "tools.go").write_text(
        "//go:build tools\n\npackage testbed\n\nimport (\n"
        f'{imports}\n\t_ "k8s.io/kubernetes/cmd/kubelet/app"\n\t_ "k8s.io/kubectl/pkg/cmd"\n)\n'
    )
    (module / "pause").mkdir()
    (module / "pause" / "main.go").write_text(PAUSE)


def _link_flags() -> str:
    major, minor, _ = VERSION.split(".")
    values = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(
        ["-s", "-w", *(f"-X {package}.{k}={v}" for package in packages for k, v in values.items())]
    )


def go(module: Path, *arguments: str) -> None:
    """Run it in the folder of a module, or end with a sentence."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    done = subprocess.run(["go", *arguments], cwd=module, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"`go {arguments[0]}` failed: see its words above.")


def say(text: str) -> None:
    print(f"test bed: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    print(build())
