"""Starts JupyterLab on the examples and prints its address when it answers."""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8888)
    port = parser.parse_args().port
    if in_use(port):
        print(f"make: port {port} is in use; choose another one: make lab PORT={port + 1}.")
        return 1
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_hex(16)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}"),
        *("--ServerApp.port_retries=0", f"--ServerApp.root_dir={ROOT / 'examples'}"),
        "--log-level=WARN",
    ]
    if os.geteuid() == 0:
        command.append("--allow-root")
    with subprocess.Popen(command, env={**os.environ, "JUPYTER_TOKEN": token}) as server:
        try:
            if wait_for(f"http://127.0.0.1:{port}/api", server):
                print(
                    f"\nJupyterLab is at http://127.0.0.1:{port}/lab?token={token}"
                    "\nCtrl+C stops it; runs that are under way go on.\n",
                    flush=True,
                )
            return server.wait()
        except KeyboardInterrupt:
            server.terminate()
            return 0


def in_use(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def wait_for(address: str, server: subprocess.Popen[bytes]) -> bool:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    return False


if __name__ == "__main__":
    sys.exit(main())
