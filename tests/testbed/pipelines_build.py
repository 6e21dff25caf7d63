"""Builds Kubeflow Pipelines, Argo and etcd for the test bed from their Go modules, once.

Usage: python pipelines_build.py   prints the folder that holds them
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
import venv
from pathlib import Path

import build

VERSION = "2.14.3"
ROOT = "github.com/kubeflow/pipelines"
MODULE = f"{ROOT}@v0.0.0-20250902140602-fc3214d4b4d3"
API = f"{ROOT}/api@v0.0.0-20250102152816-873e9dedd766"
"""Only for the code of cache keys, which has not changed since."""
# The public log of checksums does not know these modules. The sums were worked out from the git
# trees of the release 2.14.3 and of commit 873e9dedd766.
SUMS = """\
github.com/kubeflow/pipelines v0.0.0-20250902140602-fc3214d4b4d3 h1:EYFzVTUNy3iXMOtNIA8qaZNIq+u2PAJ+b92w9/yJG9I=
github.com/kubeflow/pipelines v0.0.0-20250902140602-fc3214d4b4d3/go.mod h1:qTEyao6ONZRgIgx4smITF2Ll/fV+JL3WruknwJuoyQY=
github.com/kubeflow/pipelines/api v0.0.0-20250102152816-873e9dedd766 h1:ZXz+Ki+hxez8vsr5hWHsjYWpa9V/dkp3iI4XTtMBH7A=
github.com/kubeflow/pipelines/api v0.0.0-20250102152816-873e9dedd766/go.mod h1:puPWVUzB1VCb8lVq4g06IR2rIXuSpejDTd/FkSr6nvc=
"""  # noqa: E501
ARGO_VERSION = "3.6.7"
ARGO = f"github.com/argoproj/argo-workflows/v3@v{ARGO_VERSION}"
ETCD = "go.etcd.io/etcd/server/v3 v3.6.8"
ETCD_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""
PROTOC = "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.6"
DESCRIPTORS = ("kfp-pipeline-spec==2.14.0", "kfp-kubernetes==2.14.3", "kfp==2.14.3")
METADATA = "ml-metadata==1.17.1"
PROGRAMS = {
    "apiserver": f"{ROOT}/backend/src/apiserver",
    "driver": f"{ROOT}/backend/src/v2/cmd/driver",
    "launcher-v2": f"{ROOT}/backend/src/v2/cmd/launcher-v2",
    "persistence_agent": f"{ROOT}/backend/src/agent/persistence",
    "controller": f"{ROOT}/backend/src/crd/controller/scheduledworkflow",
}
ARGO_PROGRAMS = {
    "argoexec": "./cmd/argoexec",
    "workflow-controller": "./cmd/workflow-controller",
}
# The API server needs C, for sqlite3. All are built alike, so that what they share is compiled
# once, and statically: the launcher is copied into images of all kinds.
STATIC = (
    *("-trimpath", "-tags", "netgo,osusergo,sqlite_omit_load_extension"),
    *("-ldflags", '-s -w -linkmode external -extldflags "-static"'),
)


def folder() -> Path:
    return build.cache_folder().parent / f"kfp-{VERSION}"


def metadata_python() -> Path:
    """An interpreter that has ML Metadata."""
    return folder() / "mlmd" / "bin" / "python"


def is_built() -> bool:
    names = (*PROGRAMS, *ARGO_PROGRAMS, "etcd", "ready")
    return all((folder() / name).exists() for name in names)


def build_programs() -> Path:
    """The folder with all programs, built now as far as they are not there yet."""
    with build.turn("kfp"):
        _build_missing()
    return folder()


def _build_missing() -> None:
    target = folder()
    target.mkdir(parents=True, exist_ok=True)
    if not (target / "etcd").exists():
        # Debian's cannot be watched from no given version, as Argo watches.
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch)
            (place / "go.mod").write_text(f"module testbed\n\ngo 1.26\n\nrequire {ETCD}\n")
            (place / "main.go").write_text(ETCD_MAIN)
            build.go(place, "mod", "tidy")
            _program(place, "etcd", ".", "-trimpath", "-ldflags", "-s -w")
    if not (target / "ready").exists():
        _install(metadata_python(), METADATA)
        (target / "ready").touch()
    if missing := _missing(PROGRAMS):
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch)
            _wrap(place)
            for name in missing:
                _program(place, name, PROGRAMS[name], "-mod=mod", *STATIC, CGO_ENABLED="1")
    if missing := _missing(ARGO_PROGRAMS):
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch, "source")
            shutil.copytree(module(ARGO), place, copy_function=shutil.copyfile)
            # A link in git; the archive of a module has none.
            signals = place / "workflow" / "executor" / "os-specific" / "signal_linux.go"
            signals.symlink_to("signal_darwin.go")
            link = f"-s -w -X {ARGO.replace('@', '.version=')}"
            for name in missing:
                flags = ("-mod=readonly", "-trimpath", "-ldflags", link)
                _program(place, name, ARGO_PROGRAMS[name], *flags)


def _missing(names: dict[str, str]) -> list[str]:
    return [name for name in names if not (folder() / name).exists()]


def _program(place: Path, name: str, package: str, *flags: str, **environment: str) -> None:
    build.say(f"building {name} for Kubeflow Pipelines")
    partial = folder() / f".{name}.partial"
    _go(place, "build", *flags, "-o", str(partial), package, **environment)
    partial.rename(folder() / name)


@functools.cache
def module(name: str) -> Path:
    """Its source in the cache of Go: manifests and definitions are taken from there."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        (place / "go.mod").write_text("module testbed\n\ngo 1.26\n")
        (place / "go.sum").write_text(SUMS)
        done = subprocess.run(
            ["go", "mod", "download", "-json", name],
            cwd=place,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        raise SystemExit(f"{name} cannot be fetched: {answer.get('Error') or done.stderr}")
    return Path(answer["Dir"])


def _wrap(place: Path) -> None:
    """A module with upstream's own requirements and sums, and the two nested modules beside it."""
    source, api = module(MODULE), module(API)
    text = (source / "go.mod").read_text().replace(f"module {ROOT}\n", "module testbed\n", 1)
    required = MODULE.replace("@", " ")
    (place / "go.mod").write_text(text.replace("require (\n", f"require (\n\t{required}\n", 1))
    (place / "go.sum").write_text((source / "go.sum").read_text() + SUMS)
    _go(place, "install", PROTOC, GOBIN=str(place / "bin"))
    python = place / "venv" / "bin" / "python"
    _install(python, *DESCRIPTORS)
    maker = Path(__file__).with_name("pipelines_api.py")
    command = [str(python), str(maker), str(place / "bin" / "protoc-gen-go"), str(place)]
    subprocess.run(command, check=True)
    keys = Path("v2alpha1", "go", "cachekey")
    (place / "api" / keys).mkdir()
    shutil.copy(api / keys / "cache_key.pb.go", place / "api" / keys / "cache_key.pb.go")
    for name in ("api", "kubernetes_platform"):
        (place / name / "go.mod").write_text(f"module {ROOT}/{name}\n\ngo 1.24\n")


def _install(python: Path, *packages: str) -> None:
    """Packages into an environment of their own."""
    shutil.rmtree(python.parent.parent, ignore_errors=True)
    venv.create(python.parent.parent, with_pip=True)
    command = [str(python), "-m", "pip", "install", "-q", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(packages)} cannot be installed: {done.stderr[-300:]}")


def _go(place: Path, *arguments: str, **environment: str) -> None:
    done = subprocess.run(
        ["go", *arguments], cwd=place, env=_environment(**environment), check=False
    )
    if done.returncode:
        raise SystemExit(f"`go {arguments[0]}` failed: see its words above.")


def _environment(**more: str) -> dict[str, str]:
    flags = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    return {**os.environ, **flags, **more}


if __name__ == "__main__":
    print(build_programs())
