"""Endurance: minutes of runs under faults, after which nothing may be lost or left behind.

Usage: python -m benchmarks.soak [--minutes 4] [--seed 1]

Each fault is a phase with its own promise; a phase that needs what this machine does
not have says so. It ends by itself, and fails if a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import workloads
from .server import ENDED, Server, server

TALK = """import time
end = time.time() + 10
n = 0
while time.time() < end:
    print("line", n, flush=True)
    n += 1
    time.sleep(0.0002)
print("last", n)
"""


CLOCK = """import time
told = time.time
time.time = lambda: told() + float(open({file!r}).read())
"""


class Broken(Exception):
    """A promise was not kept."""


class Skipped(Exception):
    """This machine cannot do it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    phases: list[tuple[str, Callable[[Path], str]]] = [
        ("kills at random", lambda folder: kills(folder, chance, options.minutes * 60)),
        ("a full disk", full_disk),
        ("a slow disk", slow_disk),
        ("a clock that jumps", clock_steps),
        ("a talkative step", many_lines),
        ("200 clients at once", many_clients),
        ("nothing grows", flat),
    ]
    failed = 0
    for name, phase in phases:
        with tempfile.TemporaryDirectory(prefix="convect-soak-") as scratch:
            before = our_processes()
            try:
                said = phase(Path(scratch))
                leftovers(Path(scratch), before)
                verdict = "ok"
            except Skipped as reason:
                verdict, said = "skipped", str(reason)
            except Broken as reason:
                verdict, said = "BROKEN", str(reason)
                failed += 1
        print(f"{verdict:8} {name}: {said}", flush=True)
    print(f"{len(phases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def kills(folder: Path, chance: random.Random, seconds: float) -> str:
    """Server, runners and kernels are killed; every run still ends, and tells the truth."""
    workloads.notebook(
        folder / "count.ipynb",
        "import os, time\nwith open(os.environ['DONE'], 'a') as f:\n    f.write(token + '\\n')",
        "time.sleep(0.3)",
        parameters="token = ''",
    )
    deadline = time.monotonic() + seconds
    runs: dict[str, str] = {}
    killed: Counter[str] = Counter()
    victims: set[str] = set()
    done = folder / "done.txt"
    while time.monotonic() < deadline:
        with quiet_server(folder, DONE=str(done)) as running:
            life = time.monotonic() + chance.uniform(3, 10)
            while time.monotonic() < min(life, deadline):
                token = f"t{len(runs)}"
                made = running.convect(
                    "runs", {"path": "count.ipynb", "parameters": {"token": token}}
                )
                runs[made["id"]] = token
                time.sleep(chance.uniform(0.02, 0.3))
                if chance.random() < 0.2 and (victim := _kill_something(folder, chance)):
                    killed[victim[0]] += 1
                    victims.add(victim[1])
            if time.monotonic() < deadline:
                os.kill(running.pid, signal.SIGKILL)
                killed["server"] += 1
    with quiet_server(folder, DONE=str(done)) as running:
        ends = {run: _wait_for(running, run) for run in runs}
    written = Counter(done.read_text().split())
    twice = [token for token, times in written.items() if times > 1]
    if twice:
        raise Broken(f"{len(twice)} steps ran twice, for instance {twice[0]}")
    for run, view in ends.items():
        if view["state"] == "succeeded" and not written[runs[run]]:
            raise Broken(f"{run} says succeeded but did nothing")
        if view["state"] == "failed" and run not in victims:
            raise Broken(f"{run} failed without being hit: {view['reason']}")
        if view["state"] != "succeeded" and not view["reason"]:
            raise Broken(f"{run} ended as {view['state']} without a reason")
    states = Counter(view["state"] for view in ends.values())
    return f"{len(runs)} runs, kills {dict(killed)}, ends {dict(states)}"


def full_disk(folder: Path) -> str:
    """A run that fills the disk fails and says so; the next one, with room, succeeds."""
    workloads.notebook(folder / "fill.ipynb", "print('x' * 6_000_000)", "1 / 1")
    workloads.trivial(folder)
    small = folder / "small"
    small.mkdir()
    with _mounted(small, "size=4m"):
        (small / "ballast").write_bytes(bytes(2_500_000))
        with quiet_server(folder, CONVECT_RUNS_DIR=str(small / "runs")) as running:
            view = _submit(running, path="fill.ipynb")
            if view["state"] != "failed" or "space" not in str(view["reason"]).lower():
                raise Broken(f"the run ended as {view['state']}: {view['reason']}")
            (small / "ballast").unlink()
            after = _submit(running, path="trivial.ipynb")
            if after["state"] != "succeeded":
                raise Broken(f"with room again it ended as {after['state']}: {after['reason']}")
    return str(view["reason"])


def slow_disk(folder: Path) -> str:
    """Every rename and open takes 5 ms; runs go on."""
    if subprocess.run(
        ["strace", "-o", "/dev/null", "true"], check=False, capture_output=True
    ).returncode:
        raise Skipped("needs strace with the right to trace")
    workloads.trivial(folder)
    delay = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,openat",
             "-e", "inject=rename,openat:delay_enter=5000"]  # fmt: skip
    with quiet_server(folder, prefix=tuple(delay)) as running:
        views = [_submit(running, path="trivial.ipynb") for _ in range(3)]
    _all_succeeded(views)
    return "3 runs succeeded"


def clock_steps(folder: Path) -> str:
    """The clock of every Python process jumps a day back and forth while runs are under way."""
    workloads.notebook(folder / "wait.ipynb", *["import time; time.sleep(0.5)"] * 6)
    clock = folder / "clock"
    clock.write_text("0")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(CLOCK.format(file=str(clock)))
    with quiet_server(folder, PYTHONPATH=str(folder / "site")) as running:
        made = [running.convect("runs", {"path": "wait.ipynb"}) for _ in range(4)]
        for seconds in (86400, -86400, 3600, 0):
            draft = folder / "draft"
            draft.write_text(str(seconds))
            draft.replace(clock)
            time.sleep(0.8)
        views = [_wait_for(running, run["id"]) for run in made]
    _all_succeeded(views)
    return "4 runs succeeded"


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
        view = _submit(running, path="trivial.ipynb")
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


def flat(folder: Path) -> str:
    """After hundreds of runs the server has no more memory, files or children than after some."""
    workloads.trivial(folder)
    with quiet_server(folder) as running:
        for _ in range(50):
            _submit(running, path="trivial.ipynb")
        time.sleep(2)
        before = _measure(running)
        for _ in range(200):
            _submit(running, path="trivial.ipynb")
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


def leftovers(folder: Path, before: set[int]) -> None:
    """No process of ours and no temporary file outlives its server for long."""
    deadline = time.monotonic() + 30
    while extra := our_processes() - before:
        if time.monotonic() > deadline:
            names = [Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for pid in extra]
            raise Broken(f"{len(extra)} processes are left, for instance {names[0][:120]}")
        time.sleep(0.2)
    parts = [path for path in folder.rglob("*") if path.name.startswith(".") and path.is_file()]
    strange = [path for path in parts if path.name not in (".server.log",)]
    if strange:
        raise Broken(f"{len(strange)} temporary files are left, for instance {strange[0].name}")


def our_processes() -> set[int]:
    """Kernels, runners and warm processes, by their command line or their environment."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            zombie = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if b"convect-soak-" in text and not zombie:
            found.add(int(entry.name))
    return found


@contextmanager
def quiet_server(folder: Path, **environment: Any) -> Iterator[Server]:
    # Its own temporary folder: other runs on this machine neither take room nor leave files here.
    (folder / "tmp").mkdir(exist_ok=True)
    places = {
        "CONVECT_RUNS_DIR": f"{folder}/runs",
        "CONVECT_INDEX_DIR": f"{folder}/index",
        "TMPDIR": f"{folder}/tmp",
    }
    try:
        with server(folder, **{**places, **environment}) as running:
            yield running
    except subprocess.TimeoutExpired:
        raise Broken("the server does not stop") from None


def _submit(running: Server, **request: Any) -> dict[str, Any]:
    return _wait_for(running, running.convect("runs", request)["id"])


def _wait_for(running: Server, run: str, patience: float = 120) -> dict[str, Any]:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        view: dict[str, Any] = running.convect(f"runs/{run}")
        if view["state"] in ENDED:
            return view
        time.sleep(0.02)
    raise Broken(f"{run} did not end within {patience:g} s: {view['state']}, {view['reason']}")


def _all_succeeded(views: list[dict[str, Any]]) -> None:
    for view in views:
        if view["state"] != "succeeded":
            raise Broken(f"{view['id']} ended as {view['state']}: {view['reason']}")


def _kill_something(folder: Path, chance: random.Random) -> tuple[str, str] | None:
    """Kill a runner, or a kernel: a process that works for an attempt; what and of which run."""
    claims = [
        path for path in (folder / "runs").glob("*/steps/*/*/runner.json")
        if not (path.parent / "outputs.json").exists()
    ]  # fmt: skip
    if not claims:
        return None
    claim = chance.choice(claims)
    folder = claim.parents[3]
    try:
        what, target = "runner", int(json.loads(claim.read_text())["pid"])
        if chance.random() < 0.5 and (kernel := _kernel_of(folder)):
            what, target = "kernel", kernel
        os.kill(target, signal.SIGKILL)
    except (OSError, ValueError, KeyError):
        return None
    return what, folder.name


def _kernel_of(run: Path) -> int | None:
    """The child of the process that looks after the kernel of the run's last attempt."""
    handles = [
        event["handle"]
        for line in (run / "events.ndjson").read_text().splitlines()
        if "handle" in (event := json.loads(line))
    ]
    if not handles or "keeper" not in handles[-1]:
        return None
    pid = handles[-1]["keeper"]["pid"]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else None


def _measure(running: Server) -> dict[str, int]:
    processes = 1 + len(
        Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    )
    files = len(list(Path(f"/proc/{running.pid}/fd").iterdir()))
    return {"memory": running.memory, "files": files, "processes": processes}


@contextmanager
def _mounted(place: Path, options: str) -> Iterator[None]:
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        raise Skipped("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


if __name__ == "__main__":
    sys.exit(main())
