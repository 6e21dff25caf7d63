"""Container images made from files of this machine, without a registry or a build tool."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

PACKAGES = ("papermill", "ipykernel")
EXAMPLE_PACKAGES = (*PACKAGES, "pandas", "scikit-learn", "matplotlib")
SERVER_PACKAGES = (
    *PACKAGES,
    "jsonschema",
    "jupyter-server",
    "jupyter-ydoc",
    "kubernetes",
    "pyyaml",
    "rich",
)
RECIPE = 3
"""Changes with the way images are made, so that they are made anew."""


def _named(name: str, packages: tuple[str, ...] = ()) -> str:
    """With a tag that changes with its content."""
    return f"local/{name}:{RECIPE}-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:8]}"


PAUSE = _named("pause")
NOTEBOOK = _named("notebook", PACKAGES)
EXAMPLE = _named("example", EXAMPLE_PACKAGES)
"""What the notebooks of the example need."""
BARE = _named("bare")
"""Python without papermill: what a step says there is tested too."""
TOOLS = _named("tools")
"""A few programs, no Python, and root as its user, as images of components often are."""
SERVER = _named("server", SERVER_PACKAGES)
"""All that the server needs but the package itself."""

SHELL_PROGRAMS = (
    *("sh", "sleep", "cat", "ls", "cp", "mkdir", "wc", "id", "true", "false", "echo", "env"),
    *("tar", "ps", "kill", "stty"),
)
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
USER = 1000


def archive(
    root: Path,
    name: str,
    target: Path,
    *,
    entrypoint: list[str] | None = None,
    user: str = str(USER),
) -> Path:
    """Everything below `root` as an image that `ctr images import` takes."""
    partial = target.with_suffix(".partial")
    layer = target.with_suffix(".layer")
    with tarfile.open(layer, "w") as tar:
        tar.add(root, arcname=".", filter=_owned_by_root)
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine],
        "os": "linux",
        "config": {
            "Entrypoint": entrypoint or [],
            "Env": ["PATH=/opt/python/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"],
            "User": user,
            "WorkingDir": "/tmp",
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + _sha256(layer)]},
    }
    text = json.dumps(config).encode()
    config_name = hashlib.sha256(text).hexdigest() + ".json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(partial, "w") as tar:
        _add_bytes(tar, config_name, text)
        tar.add(layer, "layer.tar")
        _add_bytes(tar, "manifest.json", json.dumps(manifest).encode())
    layer.unlink()
    partial.rename(target)
    return target


def pause_image(program: Path, folder: Path) -> Path:
    target = _archive_of(PAUSE, folder)
    if not target.exists():
        root = fresh(folder / "pause-root")
        shutil.copy(program, root / "pause")
        archive(root, PAUSE, target, entrypoint=["/pause"])
        shutil.rmtree(root)
    return target


def tools_image(folder: Path) -> Path:
    target = _archive_of(TOOLS, folder)
    if not target.exists():
        root = fresh(folder / "tools-root")
        _copy_shell(root)
        (root / "bin" / "bash").unlink()
        archive(root, TOOLS, target, entrypoint=["/bin/echo", "by itself"], user="")
        shutil.rmtree(root)
    return target


def python_image(folder: Path, name: str, packages: tuple[str, ...]) -> Path:
    """This Python with `packages` and a shell: enough for a step."""
    target = _archive_of(name, folder)
    if not target.exists():
        root = fresh(folder / "python-root")
        _copy_python(root)
        if packages:
            _install(root, packages)
        _copy_shell(root)
        _copy_libraries(root)
        archive(root, name, target)
        shutil.rmtree(root)
    return target


def _archive_of(name: str, folder: Path) -> Path:
    return folder / (re.sub(r"\W+", "-", name) + ".tar")


def _copy_python(root: Path) -> None:
    home = root / "opt" / "python"
    (home / "bin").mkdir(parents=True)
    program = Path(sys.executable).resolve()
    shutil.copy(program, home / "bin" / PYTHON)
    for name in ("python3", "python"):
        (home / "bin" / name).symlink_to(PYTHON)
    skip = shutil.ignore_patterns(
        "site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "*.a", "config-*"
    )
    shutil.copytree(sysconfig.get_path("stdlib"), home / "lib" / PYTHON, ignore=skip, symlinks=True)
    (home / "lib" / PYTHON / "site-packages").mkdir()


def _install(root: Path, packages: tuple[str, ...]) -> None:
    site = root / "opt" / "python" / "lib" / PYTHON / "site-packages"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--target", str(site)]
    subprocess.run([*command, *packages], check=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j2", str(site)], check=False)
    kernels = root / "opt" / "python" / "share" / "jupyter" / "kernels" / "python3"
    kernels.mkdir(parents=True)
    argv = ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernels / "kernel.json").write_text(json.dumps(spec))


def _copy_shell(root: Path) -> None:
    (root / "bin").mkdir()
    shutil.copy(shutil.which("busybox") or "/bin/busybox", root / "bin" / "busybox")
    for name in SHELL_PROGRAMS:
        (root / "bin" / name).symlink_to("busybox")
    shutil.copy(shutil.which("bash") or "/bin/bash", root / "bin" / "bash")


def _copy_libraries(root: Path) -> None:
    """The shared libraries that anything in the image asks for, under their own path."""
    programs = [
        path
        for path in root.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and (".so" in path.name or path.stat().st_mode & 0o111)
    ]
    found: set[Path] = set()
    for start in range(0, len(programs), 100):
        listing = subprocess.run(
            ["ldd", *map(str, programs[start : start + 100])],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        found.update(Path(path) for path in re.findall(r"(/\S+) \(0x", listing))
    for library in found:
        if not library.is_relative_to(root) and library.exists():
            target = root / library.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library.resolve(), target)


def fresh(root: Path) -> Path:
    """An empty root folder of an image."""
    shutil.rmtree(root, ignore_errors=True)
    for name in ("etc", "dev", "proc", "sys", "tmp", "var", "run", "work"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc" / "passwd").write_text(
        f"root:x:0:0:root:/:/bin/sh\nconvect:x:{USER}:{USER}:convect:/tmp:/bin/sh\n"
    )
    (root / "etc" / "group").write_text(f"root:x:0:\nconvect:x:{USER}:\n")
    return root


def _owned_by_root(item: tarfile.TarInfo) -> tarfile.TarInfo:
    item.uid = item.gid = 0
    item.uname = item.gname = "root"
    if not item.issym():
        item.mode |= 0o755 if item.isdir() or item.mode & 0o100 else 0o644
    return item


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    item = tarfile.TarInfo(name)
    item.size = len(content)
    tar.addfile(item, io.BytesIO(content))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
