"""A kernel from the warm process is a kernel like any other, only sooner."""

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import ipykernel
import pytest

from jupyterlab_convect.runner.forked import describes, needs_exec, own_launch
from jupyterlab_convect.runner.kernelspecs import find
from jupyterlab_convect.runtimes.local.processes import family
from jupyterlab_convect.runtimes.local.warm import WarmProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WarmProcess.supported, reason="only Linux forks safely"),
]

DESCRIBE = """
import sys, os, json, threading, signal, random, __main__
print(json.dumps({
    "modules": sorted(name for name in sys.modules if not name.startswith("_")),
    "path": sys.path, "argv": sys.argv[0].split("/")[-1], "cwd": os.getcwd(),
    "executable": sys.executable, "main": getattr(__main__, "__file__", None),
    "environment": dict(os.environ), "files": len(os.listdir("/proc/self/fd")),
    "sigterm": str(signal.getsignal(signal.SIGTERM)), "random": random.random(),
    "flags": list(sys.flags), "group": os.getpgid(0) == os.getpid(),
    "ppid": os.getppid(),
}))
"""


@pytest.fixture
def warm(make):
    return make(spare_kernels=2)


def _pid(driver):
    """Of the warm process of the kernels; that of the runners came first."""
    return list(driver.runtime._warm.values())[-1]._process.pid


async def test_it_looks_like_one_that_was_started_the_ordinary_way(make, warm):
    cold = make(spare_kernels=0)
    _, _, first = await warm.run([DESCRIBE], env={"A": "é"})
    _, _, again = await warm.run([DESCRIBE], env={"A": "é"})
    _, _, other = await cold.run([DESCRIBE], env={"A": "é"})
    forked, second, started = (json.loads(text) for text in (first, again, other))
    more = {name.split(".")[0] for name in {*forked["modules"]} - {*started["modules"]}}
    assert more <= sys.stdlib_module_names, more
    missing = {name.split(".")[0] for name in {*started["modules"]} - {*forked["modules"]}}
    debugger = {name for name in missing if name.startswith(("debugpy", "pydev"))}
    assert missing - debugger <= sys.stdlib_module_names, missing
    for same in ("path", "argv", "cwd", "executable", "main", "sigterm", "group", "flags"):
        assert forked[same] == started[same], same
    private = {"CONVECT_VALUES", "JPY_PARENT_PID", "PYDEVD_USE_FRAME_EVAL"}
    for name in {*forked["environment"], *started["environment"]} - private:
        assert forked["environment"].get(name) == started["environment"].get(name), name
    assert forked["files"] <= started["files"] + 5
    assert forked["random"] != second["random"]
    assert forked["ppid"] != second["ppid"]


@pytest.mark.parametrize("spare_kernels", [1, 0], ids=["warm", "cold"])
async def test_what_people_do_in_notebooks_works(make, spare_kernels):
    driver = make(spare_kernels=spare_kernels)
    _, status, log = await driver.run(
        ["x = 40 + 2", "%history -n 1", "%recall 1", "%rerun 1", "%save kept.py 1", "In[1]",
         "import debugpy; debugpy.__name__", "!echo $((6 * 7))", "%time y = 1"],
    )  # fmt: skip
    assert status.state == "succeeded", (status, log)
    assert "1: x = 40 + 2" in log
    assert "\n42\n" in log


async def test_a_kernel_is_never_used_twice(warm):
    pids = set()
    for _ in range(3):
        _, _, log = await warm.run(["import os; leak = globals().get('x'); x = 1",
                                    "print(os.getpid(), leak)"])  # fmt: skip
        pid, leak = log.split()
        assert leak == "None"
        pids.add(pid)
    assert len(pids) == 3


async def test_exit_handlers_run_and_open_files_are_written(warm):
    attempt, status, _ = await warm.run(
        ["import atexit\natexit.register(lambda: open('handler.txt', 'w').write('ran'))\n"
         "left = open('left.txt', 'w'); left.write('open')"],
        outputs=["*.txt"],
    )  # fmt: skip
    assert status.state == "succeeded"
    assert (attempt.folder / "files" / "handler.txt").read_text() == "ran"
    assert (attempt.folder / "files" / "left.txt").read_text() == "open"


async def test_processes_a_notebook_leaves_are_ended(warm, wait_for, alive):
    _, status, log = await warm.run(
        ["import subprocess; print(subprocess.Popen(['sleep', '1000']).pid)"]
    )
    assert status.state == "succeeded"
    await wait_for(lambda: not alive(int(log)))


async def test_a_kernel_that_dies(warm):
    _, status, _ = await warm.run(["import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"])
    assert status.reason == "The kernel crashed (SIGSEGV) in cell 1."
    _, status, _ = await warm.run(["import os; os._exit(3)"])
    assert status.reason == "The kernel exited with code 3 in cell 1."


async def test_an_environment_that_needs_a_new_interpreter_gets_one(warm):
    _, status, log = await warm.run(
        ["import sys, os; print(sys.flags.utf8_mode, hash('x'))"],
        env={"PYTHONHASHSEED": "1", "PYTHONUTF8": "1"},
    )
    command = [sys.executable, "-c", "import sys; print(sys.flags.utf8_mode, hash('x'))"]
    expected = subprocess.run(
        command, capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert status.state == "succeeded"
    assert log == expected.stdout


def test_which_variables_need_one():
    base = {"PATH": "/bin", "PYTHONPATH": "/a", "HOME": "/root"}
    assert not needs_exec({**base, "A": "1", "PATH": "/usr/bin"}, base)
    for name in ("PYTHONPATH", "LD_PRELOAD", "LC_ALL", "HOME", "IPYTHONDIR"):
        assert needs_exec({**base, name: "x"}, base)
    assert needs_exec({"PATH": "/bin"}, base)


async def test_steps_go_on_when_the_warm_process_is_killed(warm, wait_for, alive):
    attempt = await warm.start(warm.attempt(["import time; time.sleep(1)", "print('went on')"]))
    await warm.until(attempt, "running")
    pid = _pid(warm)
    waiting = family(pid) - {pid, attempt.handle["pid"]} - family(attempt.handle["pid"])
    os.kill(pid, signal.SIGKILL)
    assert (await warm.until(attempt, "succeeded")).state == "succeeded"
    for each in waiting:
        await wait_for(lambda each=each: not alive(each))
    _, status, log = await warm.run(["print('again')"])
    assert (status.state, log) == ("succeeded", "again\n")
    assert _pid(warm) != pid


async def test_it_ends_with_its_owner(warm, wait_for, alive):
    _, _, _ = await warm.run(["1"])
    pid = _pid(warm)
    everyone = family(pid)
    await warm.runtime.close()
    for each in everyone:
        await wait_for(lambda each=each: not alive(each))


async def test_it_gives_its_memory_back_when_idle(make, wait_for, alive):
    driver = make(idle_timeout=0.2)
    await driver.run(["1"])
    for warm in driver.runtime._warm.values():
        await wait_for(lambda warm=warm: warm._process is None)
    _, status, _ = await driver.run(["1"])
    assert status.state == "succeeded"


@pytest.mark.parametrize("who", ["all", "kernels"])
async def test_a_spare_that_died_is_replaced(warm, wait_for, who):
    await warm.run(["1"])
    pid = _pid(warm)
    await wait_for(lambda: len(family(pid)) == 1 + 2 * 2)
    for each in family(pid) - {pid}:
        with contextlib.suppress(ProcessLookupError):  # the one of the first run may just end
            if who == "all" or os.getpgid(each) != os.getsid(each):
                os.kill(each, signal.SIGKILL)
    _, status, _ = await warm.run(["1"])
    assert status.state == "succeeded"


async def test_no_socket_is_left_behind(warm, tmp_path, monkeypatch):
    short = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(short))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    try:
        await warm.run(["1"])
        pids = {str(pid) for pid in family(_pid(warm))}
        left = [p for p in short.iterdir() if p.name.split("-")[1] not in pids]
        assert left == []
    finally:
        await warm.runtime.close()
        shutil.rmtree(short, ignore_errors=True)


BACK_OFF = """
import select, socket, sys, time
from jupyterlab_convect.runtimes.local import forge

now, forks = 0.0, 0
really_select, really_fork = select.select, forge.Forge.fork

def fork(self):
    global forks
    forks += 1
    if forks > 1000:
        sys.exit("it spins")
    return really_fork(self)

def until_something_happens(descriptors, _, __, seconds):
    global now
    patience = 60 if server.spares else 0  # which are about to die
    ready = really_select(descriptors, [], [], patience)
    if not ready[0]:
        now += seconds
    return ready

forge.Forge.fork = fork
forge.time.monotonic = lambda: now
forge.select.select = until_something_happens
options = {"runner": False, "spares": 2, "idle": 600, "launch": {}, "sockets": ["/no/such"]}
ours, theirs = socket.socketpair()
server = forge.Forge(theirs, options)
server.serve()
print(forks, now)
"""


def test_spares_that_die_at_birth_are_forked_ever_more_seldom():
    """In ten minutes of a clock that runs only while nothing happens."""
    done = subprocess.run([sys.executable, "-c", BACK_OFF], capture_output=True, text=True)
    forks, seconds = done.stdout.split() or [done.stderr, 0]
    assert int(forks) < 60
    assert float(seconds) >= 600


async def test_an_order_that_nobody_lives_to_take_is_answered():
    warm = WarmProcess(logging.getLogger(), own_launch(), spares=2, idle=600)
    warm._options["sockets"] = ["/no/such/folder"]
    try:
        assert await asyncio.wait_for(warm.order({}), 30) is None
    finally:
        await warm.close()


async def test_a_warm_process_that_does_not_answer_is_ended(monkeypatch, wait_for):
    from jupyterlab_convect.runtimes.local import warm as module

    warm = WarmProcess(logging.getLogger(), own_launch(), spares=1, idle=600)
    try:
        warm.warm_up()
        assert await warm._ready
        os.kill(warm._process.pid, signal.SIGSTOP)
        monkeypatch.setattr(module, "PATIENCE", 0.1)
        assert await warm.order({}) is None
        await wait_for(lambda: warm._process is None)
    finally:
        await warm.close()


async def test_steps_run_where_no_spare_lives(make, monkeypatch):
    from jupyterlab_convect.runtimes.local import warm as module

    monkeypatch.setattr(module, "socket_folders", lambda: ["/no/such/folder"])
    driver = make(spare_kernels=2)
    _, status, log = await driver.run(["print('ran')"])
    assert (status.state, log) == ("succeeded", "ran\n")


@pytest.mark.parametrize("spare_kernels", [2, 0], ids=["warm", "cold"])
@pytest.mark.parametrize("length", [90, 200])
async def test_a_temporary_folder_with_a_long_name(
    make, tmp_path, monkeypatch, spare_kernels, length
):
    place = tmp_path
    while len(str(place)) < length:
        place /= "x" * 50
    place.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    driver = make(spare_kernels=spare_kernels)
    _, status, log = await driver.run(["import tempfile; print(tempfile.gettempdir())"])
    assert (status.state, log) == ("succeeded", f"{place}\n")


async def test_where_there_is_no_warm_process_steps_start_the_ordinary_way(make, monkeypatch):
    from jupyterlab_convect.runtimes.local import warm as module

    monkeypatch.setattr(module, "SCRIPT", "/no/such/script.py")
    driver = make()
    for _ in range(4):
        _, status, _ = await driver.run((".sh", "true"))
        assert status.state == "succeeded"
    _, status, _ = await driver.run(["1"])
    assert status.state == "succeeded"


@pytest.fixture(scope="module")
def other_python(tmp_path_factory):
    """Another interpreter, which has ipykernel."""
    folder = tmp_path_factory.mktemp("other")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "ours.pth").write_text(str(Path(ipykernel.__file__).parent.parent))
    return folder / "bin" / "python"


async def test_the_kernel_of_another_interpreter(make, other_python, tmp_path, monkeypatch):
    folder = tmp_path / "jupyter" / "kernels" / "other"
    folder.mkdir(parents=True)
    argv = [str(other_python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "o", "language": "python", "env": {"FLAVOUR": "x"}}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    driver = make()
    launch = describes(find("other"))
    assert launch not in (None, own_launch())
    process = driver.runtime._warm_process(launch)
    process.warm_up()
    assert await process._ready
    source = ["import sys, os; print(sys.executable, os.environ['FLAVOUR'], os.getppid())",
              "import jupyterlab_convect; jupyterlab_convect.output('x', 1)"]  # fmt: skip
    attempt, status, log = await driver.run(source, kernel="other")
    assert status.state == "succeeded", status
    python, flavour, parent = log.split()
    assert (python, flavour) == (str(other_python), "x")
    assert int(parent) != attempt.handle["pid"], "it was not forked"
    assert json.loads((attempt.folder / "outputs.json").read_text())["values"] == {"x": 1}
    _, status, _ = await driver.run(["import os; os._exit(5)"], kernel="other")
    assert status.reason == "The kernel exited with code 5 in cell 1."
    stuck = await driver.start(
        driver.attempt(["print(1, flush=True)\nimport time; time.sleep(600)"], kernel="other")
    )
    await driver.until(stuck, "running")
    await driver.runtime.stop(stuck)
    await driver.until(stuck, "cancelled")
