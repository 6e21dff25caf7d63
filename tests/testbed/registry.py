"""A real registry of images for tests: CNCF Distribution over a folder, built from its Go module.

It needs no cluster, no root and no network once it is built.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import build
from s3 import free_port

VERSION = "3.0.0"
MODULE = f"github.com/distribution/distribution/v3@v{VERSION}"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
# Its own main with the folder as the only store: those of the clouds take minutes to build.
MAIN = """package main

import (
	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

func main() { _ = registry.RootCmd.Execute() }
"""


def program() -> Path:
    return build.cache_folder().parent / f"registry-{VERSION}"


def what_is_missing() -> str | None:
    """Why there can be none on this machine, in a sentence."""
    if program().exists() or shutil.which("go"):
        return None
    return "A registry of our own is built with Go 1.26, which is not installed."


def build_program() -> Path:
    return build.build_of_module(program(), MODULE, "./cmd/registry", MAIN)


@contextlib.contextmanager
def serving(folder: Path, password_file: Path | None = None) -> Iterator[str]:
    """An empty registry, until the block is left; its name: `127.0.0.1:5000`.

    `password_file` is one of htpasswd: only whom it names is let in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"127.0.0.1:{free_port('127.0.0.1')}"
    settings = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
        "http": {"addr": name},
    }
    if password_file is not None:
        settings["auth"] = {"htpasswd": {"realm": "tests", "path": str(password_file)}}
    path, log = folder / "settings.yaml", folder / "log"
    path.write_text(json.dumps(settings))
    with log.open("ab") as output:
        command = [str(build_program()), "serve", str(path)]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        _wait(process, name, log)
        yield name
    finally:
        process.terminate()
        process.wait(30)


def push(registry: str, path: str, tag: str) -> str:
    """An image without layers; the digest of its manifest."""
    root = f"http://{registry}/v2/{path}"
    config = b"{}"
    place = _ask("POST", f"{root}/blobs/uploads/").headers["Location"]
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    _ask("PUT", f"{place}&digest={digest}", config, "application/octet-stream")
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": digest, "size": len(config)},
            "layers": [],
        }
    ).encode()
    found = _ask("PUT", f"{root}/manifests/{tag}", manifest, MANIFEST)
    return str(found.headers["Docker-Content-Digest"])


def _ask(method: str, url: str, data: bytes = b"", kind: str = "") -> urllib.request.addinfourl:
    headers = {"Content-Type": kind} if kind else {}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()
        return answer  # type: ignore[no-any-return]


def _wait(process: subprocess.Popen[bytes], name: str, log: Path) -> None:
    host, _, port = name.partition(":")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"The registry has ended: {log.read_text(errors='replace')[-2000:]}")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
            return
        time.sleep(0.05)
    raise SystemExit("The registry does not answer.")


if __name__ == "__main__":
    print(build_program())
