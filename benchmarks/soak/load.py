"""Much to keep, much to answer, and others that are slow."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .. import workloads
from ..server import ENDED, Server
from .support import Broken, quiet_server, submit

TALK = """import time
end = time.time() + 10
n = 0
while time.time() < end:
    print("line", n, flush=True)
    n += 1
    time.sleep(0.0002)
print("last", n)
"""


def many_lines(folder: Path) -> str:
    """Thousands of lines a second for ten seconds: all kept, the server answers meanwhile."""
    (folder / "talk.py").write_text(TALK)
    with quiet_server(folder) as running:
        made = running.convect("runs", {"path": "talk.py"})
        slowest = 0.0
        while running.convect(f"runs/{made['id']}")["state"] not in ENDED:
            began = time.monotonic()
            running.convect("runs?limit=50")
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.05)
        text, offset = "", 0
        while True:
            chunk = running.convect(f"runs/{made['id']}/steps/talk/1/log?offset={offset}")
            text, offset = text + chunk["text"], chunk["offset"]
            if chunk["complete"]:
                break
    last = text.strip().splitlines()[-1].split()
    lines = text.count("line ")
    if last[0] != "last" or lines != int(last[1]):
        raise Broken(f"{lines} lines kept, and the last one is {' '.join(last)}")
    return f"{lines} lines kept, slowest answer meanwhile {slowest * 1000:.0f} ms"


def many_clients(folder: Path) -> str:
    """200 clients ask for the list and for a run at the same time; all get an answer."""
    workloads.trivial(folder)
    with quiet_server(folder) as running:
        view = submit(running, path="trivial.ipynb")
        failures: list[str] = []

        def ask() -> None:
            for _ in range(5):
                try:
                    running.convect("runs?limit=50")
                    running.convect(f"runs/{view['id']}")
                except OSError as error:
                    failures.append(str(error))

        threads = [threading.Thread(target=ask) for _ in range(200)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise Broken(f"{len(failures)} of 2000 questions had no answer: {failures[0]}")
    return f"2000 answers in {time.monotonic() - began:.1f} s"


def slow_catalogs(folder: Path, count: int = 30) -> str:
    """Catalogs that drip for ever hold up neither questions, nor runs, nor the end."""
    workloads.trivial(folder)
    with (
        _dripping() as url,
        quiet_server(folder, options=("--Convect.catalog_hosts=127.0.0.1",)) as running,
    ):
        for number in range(count):
            running.convect("catalogs", {"name": f"slow {number}", "urls": [f"{url}/{number}"]})
        slowest = 0.0
        for _ in range(20):
            began = time.monotonic()
            for path in ("runs", "catalogs", "components"):
                running.convect(path)
            slowest = max(slowest, time.monotonic() - began)
            view = submit(running, path="trivial.ipynb")
            if view["state"] != "succeeded":
                raise Broken(f"{view['id']} ended as {view['state']}: {view['reason']}")
        began = time.monotonic()
    seconds = time.monotonic() - began
    return (
        f"{count} catalogs, 20 runs succeeded, slowest three answers {slowest * 1000:.0f} ms, "
        f"end within {seconds:.1f} s"
    )


@contextmanager
def _dripping() -> Iterator[str]:
    """A web server that begins every answer and never comes to its end."""
    closing = threading.Event()

    class Drip(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", "100000")
            self.end_headers()
            with suppress(OSError):
                while not closing.wait(0.2):
                    self.wfile.write(b"#")

        def log_request(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Drip) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{site.server_address[1]}"
        finally:
            closing.set()
            site.shutdown()
            thread.join()


def flat(folder: Path) -> str:
    """After hundreds of runs the server has no more memory, files or children than after some."""
    workloads.trivial(folder)
    with quiet_server(folder) as running:
        for _ in range(50):
            submit(running, path="trivial.ipynb")
        time.sleep(2)
        before = _measure(running)
        for _ in range(200):
            submit(running, path="trivial.ipynb")
        time.sleep(2)
        after = _measure(running)
    grown = after["memory"] - before["memory"]
    if grown > 8 * 2**20:
        raise Broken(f"memory grew by {grown / 2**20:.1f} MiB over 200 runs")
    for name in ("files", "processes"):
        if after[name] > before[name] + 2:
            raise Broken(f"{name} grew from {before[name]} to {after[name]} over 200 runs")
    counts = f"{after['files']} files, {after['processes']} processes"
    return f"memory {grown / 1024 / 200:+.1f} KiB a run, {counts}"


def _measure(running: Server) -> dict[str, int]:
    processes = 1 + len(
        Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    )
    files = len(list(Path(f"/proc/{running.pid}/fd").iterdir()))
    return {"memory": running.memory, "files": files, "processes": processes}
