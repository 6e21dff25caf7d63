"""Builds Kubernetes and CoreDNS for the test bed from their Go modules, once per version.

Usage: python build.py   prints the folder that holds them
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
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


DNS_VERSION = "1.14.0"
DNS = f"coredns-{DNS_VERSION}"
# CoreDNS with the plugins that the test bed uses, in the order in which they are asked.
DNS_MAIN = """package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func init() {
	dnsserver.Directives = []string{"bind", "ready", "errors", "template", "kubernetes"}
}

func main() { coremain.Run() }
"""


def cache_folder() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "jupyterlab-convect" / f"kubernetes-{VERSION}"


def build() -> Path:
    """The folder with the programs, built now if it is not there yet."""
    if _missing() and shutil.which("go") is None:
        raise SystemExit("Building the test bed needs Go 1.26: install it first.")
    with turn("kubernetes"):
        missing = _missing()
        if kubernetes := [name for name in missing if name != DNS]:
            packages = {name: f"k8s.io/kubernetes/cmd/{name}" for name in kubernetes}
            more = {"pause": "./pause"} if "pause" in kubernetes else {}
            _build(packages | more, _kubernetes)
        if DNS in missing:
            _build({DNS: "."}, _dns)
    return cache_folder()


@contextlib.contextmanager
def turn(what: str) -> Iterator[None]:
    """Wait as long as another process builds the same."""
    folder = cache_folder().parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{what}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(packages: dict[str, str], write_module: Callable[[Path], None]) -> None:
    """Each program of one module, by the package that it is made of."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        module = Path(scratch)
        write_module(module)
        go(module, "mod", "tidy")
        for number, (name, package) in enumerate(packages.items(), 1):
            say(f"building {name} ({number} of {len(packages)})")
            partial = folder / f".{name}.partial"
            flags = ["-mod=mod", "-trimpath", "-ldflags", _link_flags(), "-o", str(partial)]
            go(module, "build", *flags, package)
            partial.rename(folder / name)


def build_of_module(target: Path, module: str, package: str, main: str | None = None) -> Path:
    """One program of a module as it was released, built now if it is not there yet.

    `main` is written over the package's own, to leave parts of it out.
    """
    with turn(target.name), tempfile.TemporaryDirectory() as scratch:
        if not target.exists():
            say(f"building {target.name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f".{target.name}.partial")
            flags = ["-trimpath", "-ldflags", "-s -w", "-mod=readonly", "-o", str(partial)]
            # The cache of Go must not be written to.
            source = Path(scratch, "source")
            shutil.copytree(folder_of_module(module), source, copy_function=shutil.copyfile)
            if main is not None:
                (source / package / "main.go").write_text(main)
            go(source, "build", *flags, package)
            partial.rename(target)
    return target


def folder_of_module(module: str) -> Path:
    """Its source in the cache of Go, fetched if it is not there."""
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            ["go", "mod", "download", "-json", module],
            cwd=scratch,
            env={**os.environ, "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=False,
        )
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        raise SystemExit(f"{module} cannot be fetched: {answer.get('Error') or done.stderr}")
    return Path(answer["Dir"])


def is_built() -> bool:
    return not _missing()


def _missing() -> list[str]:
    return [name for name in (*PROGRAMS, "pause", DNS) if not (cache_folder() / name).exists()]


def _kubernetes(module: Path) -> None:
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


def _dns(module: Path) -> None:
    (module / "go.mod").write_text(
        f"module testbed\n\ngo 1.26\n\nrequire github.com/coredns/coredns v{DNS_VERSION}\n"
    )
    (module / "main.go").write_text(DNS_MAIN)


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
