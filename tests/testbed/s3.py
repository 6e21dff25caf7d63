"""A real S3 server for tests: Versity's gateway over a folder, built from its Go module once.

It needs no cluster, no root and no network once it is built.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import build

VERSION = "1.8.0"
MODULE = f"github.com/versity/versitygw@v{VERSION}"
ACCESS, SECRET, REGION = "convect", "convect-secret", "us-east-1"


@dataclass(frozen=True)
class Server:
    endpoint: str
    folder: Path
    """A bucket is a folder in it, an object a file."""

    def make_bucket(self, name: str) -> Path:
        (self.folder / name).mkdir()
        return self.folder / name


def program() -> Path:
    return build.cache_folder().parent / f"versitygw-{VERSION}"


def what_is_missing() -> str | None:
    """Why there can be none on this machine, in a sentence."""
    if program().exists() or shutil.which("go"):
        return None
    return "An S3 server of our own is built with Go 1.26, which is not installed."


def build_program() -> Path:
    """The gateway, built now if it is not there yet; a SystemExit says why it cannot be."""
    return build.build_of_module(program(), MODULE, "./cmd/versitygw")


@contextlib.contextmanager
def serving(
    folder: Path, address: str = "127.0.0.1", *more: str, port: int = 0
) -> Iterator[Server]:
    """The gateway over an empty folder of its own, until the block is left."""
    gateway = build_program()
    facts, log = (
        folder.with_name(f"facts-of-{folder.name}"),
        folder.with_name(f"log-of-{folder.name}"),
    )
    for each in (folder, facts):
        each.mkdir(parents=True, exist_ok=True)
    port = port or free_port(address)
    command = [str(gateway), "--access", ACCESS, "--secret", SECRET, "--region", REGION]
    command += ["--port", f"{address}:{port}", *more, "posix", "--sidecar", str(facts), str(folder)]
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        _wait(process, address, port, log)
        scheme = "https" if "--cert" in more else "http"
        yield Server(f"{scheme}://{address}:{port}", folder)
    finally:
        process.terminate()
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], address: str, port: int, log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if process.poll() is not None:
            raise SystemExit(f"The S3 server has ended: {log.read_text(errors='replace')[-2000:]}")
        with contextlib.suppress(OSError), socket.create_connection((address, port), 1):
            return
        time.sleep(0.05)
    raise SystemExit("The S3 server does not answer.")


def free_port(address: str) -> int:
    with socket.create_server((address, 0)) as found:
        return int(found.getsockname()[1])


if __name__ == "__main__":
    print(build_program())
