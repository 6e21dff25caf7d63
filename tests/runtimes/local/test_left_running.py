"""Everything a step has started is gone when it has ended, and nobody else is ever hit."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE, eventually, until

from jupyterlab_convect.runner.processes import (
    end_marked,
    identify,
    is_alive,
    parse_ps,
    send_signal,
)
from jupyterlab_convect.runtimes.local.step_processes import descendants_of, end_attempt

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs what Linux has")

SPAWN = """
import os, pathlib, subprocess, time
place = pathlib.Path({place!r})

def say(name, pid):
    (place / f".{{name}}").write_text(str(pid))
    (place / f".{{name}}").rename(place / name)

say("session", subprocess.Popen(["sleep", "600"], start_new_session=True).pid)
shell = "setsid sleep 600 >/dev/null 2>&1 & echo $!; nohup sleep 600 >/dev/null 2>&1 & echo $!"
for number, pid in enumerate(subprocess.check_output(["sh", "-c", shell], text=True).split()):
    say(f"shell{{number}}", pid)
stubborn = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
say("stubborn", subprocess.Popen(stubborn, start_new_session=True).pid)
child = os.fork()
if not child:
    os.setsid()
    if not os.fork():
        say("daemon", os.getpid())
        time.sleep(600)
    os._exit(0)
os.waitpid(child, 0)
while not (place / "go").exists():
    time.sleep(0.01)
"""
NAMES = ("session", "shell0", "shell1", "stubborn", "daemon")


class Spawned:
    """A step that starts processes of every kind and waits for a word."""

    def __init__(self, make, place, *, notebook, warm):
        self.place = place
        self.runs = make(spare_kernels=1 if warm else 0, stop_grace=1.0)
        self.notebook = notebook

    async def start(self, then=""):
        text = SPAWN.format(place=str(self.place)) + then
        attempt = self.runs.attempt([text] if self.notebook else (".py", text))
        self.attempt = await self.runs.start(attempt)
        await self.runs.until(self.attempt, "running")
        await eventually(lambda: all((self.place / name).exists() for name in NAMES))
        self.processes = {name: identify(int((self.place / name).read_text())) for name in NAMES}
        assert all(map(is_alive, self.processes.values()))

    def go(self):
        (self.place / "go").touch()

    def left(self):
        return {name for name, process in self.processes.items() if is_alive(process)}


@pytest.fixture(params=[(kind, warm) for kind in (True, False) for warm in (True, False)])
async def spawned(request, make, tmp_path):
    notebook, warm = request.param
    place = tmp_path / "place"
    place.mkdir()
    spawned = Spawned(make, place, notebook=notebook, warm=warm)
    yield spawned
    for process in spawned.processes.values():
        send_signal(process, signal.SIGKILL)


async def test_nothing_is_left_of_a_step_that_succeeded(spawned):
    await spawned.start()
    spawned.go()
    await spawned.runs.until(spawned.attempt, "succeeded")
    assert spawned.left() == set()


async def test_nothing_is_left_of_a_step_that_failed(spawned):
    await spawned.start("os.abort()")
    spawned.go()
    await spawned.runs.until(spawned.attempt, "failed")
    assert spawned.left() == set()


async def test_nothing_is_left_of_a_step_that_was_stopped(spawned):
    await spawned.start()
    await spawned.runs.runtime.stop(spawned.attempt)
    assert spawned.left() == set()


async def test_nothing_is_left_when_the_runner_was_killed(spawned, wait_for):
    await spawned.start()
    assert send_signal(spawned.attempt.handle, signal.SIGKILL)
    await spawned.runs.until(spawned.attempt, "failed")
    # A keeper that notices at the same time is not waited for.
    await wait_for(lambda: not spawned.left())


async def test_nothing_is_left_when_a_killed_runner_is_stopped(spawned, wait_for):
    await spawned.start()
    assert send_signal(spawned.attempt.handle, signal.SIGKILL)
    await spawned.runs.runtime.stop(spawned.attempt)
    await wait_for(lambda: not spawned.left())


async def test_processes_that_ended_are_not_kept_as_zombies(make):
    """Short daemons of a long step lose their parent to the runner, which has to reap them."""
    text = """
import os, time
from pathlib import Path

def states():
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getppid():
            found.append(fields[0])
    return found

for _ in range(20):
    child = os.fork()
    if not child:
        os.fork()
        os._exit(0)
    os.waitpid(child, 0)
while "Z" in states():
    time.sleep(0.05)
"""
    runs = make(spare_kernels=0)
    _, status, _ = await runs.run((".py", text))
    assert status.state == "succeeded"


async def test_a_thread_that_goes_on_ends_with_the_kernel_as_in_papermill(make, monkeypatch):
    """Jupyter waits half of `shutdown_wait_time`, then terminates the kernel."""
    from jupyter_client import KernelManager

    from jupyterlab_convect.runner.execution import SHUTDOWN

    assert KernelManager().shutdown_wait_time == SHUTDOWN
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()"
    _, status, _ = await make(spare_kernels=0).run([code])
    assert status.state == "succeeded"


def test_a_stranger_with_the_same_id_is_not_hit(tmp_path):
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        before = {**identify(stranger.pid), "start_time": 1}
        assert not send_signal(before, signal.SIGKILL)
        assert not send_signal({**identify(stranger.pid), "boot": "another"}, signal.SIGKILL)
        end_attempt(tmp_path, before)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_stopping_a_dead_runner_hits_nobody_who_got_its_id(make, tmp_path):
    runs = make(spare_kernels=0)
    attempt = runs.attempt((".py", ""))
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        (attempt.folder / "runner.json").write_text(
            json.dumps({**identify(stranger.pid), "start_time": 1})
        )
        await runs.runtime.stop(attempt)
        (status,) = await runs.runtime.poll([attempt])
        assert status.state == "cancelled"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_only_the_whole_mark_counts(tmp_path):
    mark = f"CONVECT_VALUES={tmp_path}/1/values.ndjson"
    longer = {**os.environ, "CONVECT_VALUES": f"{tmp_path}/1/values.ndjson.old"}
    other = {**os.environ, "OTHER": mark}
    exact = {**os.environ, "CONVECT_VALUES": f"{tmp_path}/1/values.ndjson"}
    processes = [
        subprocess.Popen(["sleep", "600"], env=env, start_new_session=True)
        for env in (longer, other, exact)
    ]
    try:
        # A process has no environment yet in the moment in which it begins.
        until(lambda: all(Path(f"/proc/{each.pid}/environ").read_bytes() for each in processes))
        end_marked(mark)
        assert processes[2].wait(PATIENCE) == -signal.SIGKILL
        assert [each.poll() for each in processes[:2]] == [None, None]
    finally:
        for each in processes:
            each.kill()
            each.wait()


def test_descendants_are_those_that_run():
    shell = subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600"], start_new_session=True)
    try:
        until(lambda: len(descendants_of(shell.pid)) == 2)
        assert all(map(is_alive, descendants_of(shell.pid)))
    finally:
        for each in descendants_of(shell.pid):
            send_signal(each, signal.SIGKILL)
        shell.kill()
        shell.wait()


@pytest.fixture
def without_proc(monkeypatch):
    """Ask `ps`, as on systems without /proc."""
    if shutil.which("ps") is None:
        pytest.skip("There is no ps (package procps).")
    monkeypatch.setattr("jupyterlab_convect.runner.processes._PROC", False)


@pytest.mark.usefixtures("without_proc")
def test_a_zombie_does_not_run_where_there_is_no_proc():
    process = subprocess.Popen(["sleep", "600"])
    started = identify(process.pid)
    assert is_alive(started)
    assert not is_alive({**started, "start_time": "Thu Jan 1 00:00:00 1970"})
    assert send_signal(started, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(started), "it has ended, and nobody has reaped it"
    process.wait()
    assert not is_alive(started)


@pytest.mark.parametrize(
    ("text", "started"),
    [
        ("Ss   Mon Nov 16 22:10:01 2026\n", "Mon Nov 16 22:10:01 2026"),
        ("S+   Mon Nov  2 22:10:01 2026\n", "Mon Nov 2 22:10:01 2026"),
        ("Z    Mon Nov 16 22:10:01 2026\n", None),
        ("Z+   Mon Nov 16 22:10:01 2026\n", None),
        ("", None),
    ],
)
def test_what_ps_says(text, started):
    assert parse_ps(text) == started
