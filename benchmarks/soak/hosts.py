"""Who drives runs comes, goes, is killed, or has a clock that is wrong."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .. import workloads
from ..server import ENDED, Server
from .support import (
    Broken,
    Skipped,
    all_succeeded,
    folders,
    our_processes,
    quiet_server,
    wait_for,
)

CLOCK = """import time
told = time.time
time.time = lambda: told() + float(open({file!r}).read())
"""


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
    done = folder.parent / "done.txt"
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
        ends = {run: wait_for(running, run) for run in runs}
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


def editing(folder: Path, versions: int = 60) -> str:
    """A notebook and a module beside it change all the time; a run sees those it was made with."""
    expected: dict[str, list[int]] = {}
    waited = 0
    with quiet_server(folder) as running:
        for number in range(versions):
            (folder / "beside.py").write_text(f"number = {number}\n")
            workloads.notebook(
                folder / "edited.ipynb",
                "import time; time.sleep(0.3)",
                "import beside\nfrom jupyterlab_convect import output",
                f"output('seen', [{number}, beside.number])",
            )
            made = running.convect("runs", {"path": "edited.ipynb"})
            expected[made["id"]] = [number, number]
        for run in expected:
            steps = running.convect(f"runs/{run}")["steps"].values()
            waited += all(step["started"] is None for step in steps)
        views = [wait_for(running, run, 600) for run in expected]
    all_succeeded(views)
    for view in views:
        (step,) = view["steps"].values()
        if step["outputs"]["seen"] != expected[view["id"]]:
            raise Broken(f"{view['id']} saw {step['outputs']['seen']}, not {expected[view['id']]}")
    if not waited:
        raise Broken("no run waited while the sources changed, so that nothing was tried")
    return f"{versions} runs, each of its own version; {waited} waited until after the last edit"


def sweep(folder: Path, chance: random.Random, points: int) -> str:
    """Each point has one run, which is executed once, whoever drives it and is killed."""
    workloads.notebook(
        folder / "count.ipynb",
        "import os\nwith open(os.environ['DONE'], 'a') as f:\n    f.write(f'{n}\\n')",
        parameters="n = 0",
    )
    done = folder.parent / "done.txt"
    environment = {"DONE": str(done)}
    killed: Counter[str] = Counter()
    deadline = time.monotonic() + 300 + 5 * points
    sweep_id, view = None, None
    while view is None or view["state"] not in ENDED:
        if time.monotonic() > deadline:
            raise Broken(f"the sweep did not end: {view and view['counts']}")
        with (
            quiet_server(folder, **environment) as one,
            quiet_server(folder, **environment) as other,
        ):
            if sweep_id is None:
                sweep_id = _begin_sweep(one, other, points, chance.uniform(0.2, 3))
                killed["server"] += 1
            running = other
            life = time.monotonic() + chance.uniform(5, 15)
            while time.monotonic() < life:
                view = running.convect(f"sweeps/{sweep_id}")
                if view["state"] in ENDED:
                    break
                killed["command line"] += _look_at_runs(folder, chance, environment)
            else:
                os.kill(running.pid, signal.SIGKILL)
                killed["server"] += 1
        # While there is no server, what a command line takes up is driven by a host.
        killed["command line"] += _look_at_runs(folder, chance, environment)
        time.sleep(chance.uniform(0.5, 3))
        killed["host"] += _kill_host(folder, chance)
    with quiet_server(folder, **environment) as running:
        view = running.convect(f"sweeps/{sweep_id}")
        found = running.convect(f"runs?sweep={sweep_id}&limit=1")["total"]
    written = Counter(map(int, done.read_text().split()))
    if written != Counter(range(points)):
        lost, twice = set(range(points)) - set(written), [n for n in written if written[n] > 1]
        raise Broken(f"{len(lost)} points were lost and {len(twice)} executed more than once")
    if view["counts"] != {"succeeded": points} or found != points:
        raise Broken(f"{found} runs for {points} points, which ended as {view['counts']}")
    return f"{points} points, each executed once; killed {dict(killed)}"


def _begin_sweep(one: Server, other: Server, points: int, seconds: float) -> str:
    """Kill the server that makes a sweep while it does; the other one goes on with it."""
    asked = {"request": {"path": "count.ipynb"}, "space": {"n": list(range(points))}}

    def ask() -> None:
        with suppress(OSError):
            one.convect("sweeps", asked)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(seconds)
    os.kill(one.pid, signal.SIGKILL)
    asking.join()
    found = other.convect("sweeps")["sweeps"] or [other.convect("sweeps", asked)]
    return str(found[0]["id"])


def _look_at_runs(folder: Path, chance: random.Random, environment: dict[str, str]) -> bool:
    """What a command line does, which takes up what nobody drives; whether it was killed."""
    code = "from jupyterlab_convect.cli import main; main(['runs', 'list'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **folders(folder), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    is_killed = chance.random() < 0.5
    if is_killed:
        time.sleep(chance.uniform(0.1, 1.5))
        process.kill()
    process.wait()
    return is_killed


def _kill_host(folder: Path, chance: random.Random) -> bool:
    """Kill a process that drives runs with nobody watching, if there is one."""
    hosts = []
    for pid in sorted(our_processes(folder.parent)):
        with suppress(OSError):
            if b"jupyterlab_convect.detached" in Path(f"/proc/{pid}/cmdline").read_bytes():
                hosts.append(pid)
    if hosts:
        with suppress(ProcessLookupError):
            os.kill(chance.choice(hosts), signal.SIGKILL)
    return bool(hosts)


def skewed_clocks(folder: Path) -> str:
    """Two machines whose clocks differ by 40 minutes, neither of which sees the other's processes.

    Nobody takes a run away from who drives it, and who is dead is followed by the other.
    """
    if subprocess.run([*_MACHINE, "true"], check=False, capture_output=True).returncode:
        raise Skipped("needs the right to make process namespaces")
    (folder / "turn.py").write_text(
        "import os, time\nopen(os.environ['DONE'], 'a').write(os.environ['me'] + ' ')\n"
        "time.sleep(12)\n"
    )
    nodes = {
        f"n{n}": {"kind": "script", "path": "turn.py", "parameters": {"me": f"n{n}"}}
        | ({"after": [f"n{n - 1}"]} if n else {})
        for n in range(4)
    }
    workloads.pipeline(folder / "chain.pipeline", nodes)
    done = folder.parent / "done.txt"
    with _machine(folder, "ahead", 1200) as one, _machine(folder, "behind", -1200) as other:
        run = one.convect("runs", {"path": "chain.pipeline"})["id"]
        view = wait_for(other, run, 300)
        all_succeeded([view])
        if done.read_text().split() != list(nodes):
            raise Broken(f"the steps were executed as {done.read_text()}")
        done.unlink()
        run = one.convect("runs", {"path": "chain.pipeline"})["id"]
        while not done.exists():
            time.sleep(0.1)
        _signal(one, signal.SIGKILL)
        began = time.monotonic()
        view = wait_for(other, run, 300)
        if view["state"] != "succeeded" and not view["reason"]:
            raise Broken(f"{run} ended as {view['state']} without a reason")
        if max(Counter(done.read_text().split()).values()) > 1:
            raise Broken(f"the steps were executed as {done.read_text()}")
    seconds = time.monotonic() - began
    return f"the run of a dead machine ended after {seconds:.0f} s: {view['reason'] or 'well'}"


_MACHINE = ("unshare", "--pid", "--fork", "--mount-proc")


@contextmanager
def _machine(folder: Path, name: str, seconds: float) -> Iterator[Server]:
    """A server with processes, a clock and temporary files of its own."""
    own = folder.parent / name
    (own / "tmp").mkdir(parents=True)
    (own / "clock").write_text(str(seconds))
    environment = {
        "TMPDIR": f"{own}/tmp",
        "CONVECT_INDEX_DIR": f"{own}/index",
        "DONE": f"{folder.parent}/done.txt",
        **_with_clock(own, own / "clock"),
    }
    with quiet_server(folder, prefix=_MACHINE, **environment) as running:
        try:
            yield running
        finally:
            _signal(running, signal.SIGTERM)


def _signal(machine: Server, number: int) -> None:
    """Signal the first process in its namespace, with which all others end."""
    with suppress(OSError, IndexError):  # It has ended.
        children = Path(f"/proc/{machine.pid}/task/{machine.pid}/children").read_text().split()
        os.kill(int(children[0]), number)


def _with_clock(folder: Path, clock: Path) -> dict[str, str]:
    """The environment in which Python's clock is off by what the file says."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(CLOCK.format(file=str(clock)))
    given = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([f"{folder}/site", *([given] if given else [])])}


def clock_steps(folder: Path) -> str:
    """The clock of every Python process jumps a day back and forth while runs are under way."""
    workloads.notebook(folder / "wait.ipynb", *["import time; time.sleep(0.5)"] * 6)
    clock = folder.parent / "clock"
    clock.write_text("0")
    with quiet_server(folder, **_with_clock(folder.parent, clock)) as running:
        made = [running.convect("runs", {"path": "wait.ipynb"}) for _ in range(4)]
        for seconds in (86400, -86400, 3600, 0):
            draft = folder.parent / "draft"
            draft.write_text(str(seconds))
            draft.replace(clock)
            time.sleep(0.8)
        views = [wait_for(running, run["id"]) for run in made]
    all_succeeded(views)
    return "4 runs succeeded"


def _kill_something(folder: Path, chance: random.Random) -> tuple[str, str] | None:
    """Kill a runner, or a kernel: a process that works for an attempt; what and of which run."""
    claims = [
        path for path in (folder.parent / "runs").glob("*/steps/*/*/runner.json")
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
