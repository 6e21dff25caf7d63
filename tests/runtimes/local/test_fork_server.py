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

from jupyterlab_convect.runner.forked_kernel import describes, needs_exec
from jupyterlab_convect.runner.kernels import find
from jupyterlab_convect.runtimes.local import fork_start
from jupyterlab_convect.runtimes.local.fork_client import ForkClient
from jupyterlab_convect.runtimes.local.fork_start import own_launch
from jupyterlab_convect.runtimes.local.step_processes import descendants_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not fork_start.SUPPORTED, reason="only Linux forks safely"),
]

DESCRIBE = r"""
import asyncio, builtins, decimal, gc, getpass, json, locale, logging, os, random, re
import resource, signal, sys, tempfile, threading, time, warnings, __main__
from pathlib import Path

def fails(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def linked(place):
    name = fails(place.readlink)
    return re.sub(r"[0-9]+", "", str(name))

shell = get_ipython()
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
sketch = {
    "modules": sorted(name for name in sys.modules if not name.startswith("_")),
    "environment": dict(os.environ),
    "argv": [re.sub("convect-[^/]*", "x", word) for word in sys.argv],
    "path": sys.path, "cwd": os.getcwd(), "executable": sys.executable, "flags": list(sys.flags),
    "prefix": [sys.prefix, sys.base_prefix], "xoptions": sys._xoptions,
    "finders": [repr(type(each)) + getattr(each, "__name__", "") for each in sys.meta_path],
    "main": [getattr(__main__, "__file__", None), __main__.__name__, __name__, repr(__main__)],
    "names": sorted(name for name in globals() if name not in ("shell", "status", "sketch")),
    "builtins": sorted(vars(builtins)),
    "signals": {int(n): str(signal.getsignal(n)).split(" at ")[0] for n in signal.valid_signals()},
    "blocked": [status[name] for name in ("SigBlk", "SigIgn")],
    "capabilities": [status[name] for name in ("CapPrm", "CapEff")],
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if "RLIMIT" in n},
    "umask": status["Umask"], "nice": os.nice(0), "cpus": sorted(os.sched_getaffinity(0)),
    "group": os.getpgid(0) == os.getpid(), "oom": Path("/proc/self/oom_score_adj").read_text(),
    "files": sorted({linked(each) for each in Path("/proc/self/fd").iterdir()}),
    "standard": [linked(Path("/proc/self/fd", str(n))) for n in (0, 1, 2)],
    "streams": [[type(s).__name__, s.encoding, fails(s.isatty)] for s in (sys.stdout, sys.stderr)],
    "stdin": [type(sys.stdin).__name__, fails(input), fails(getpass.getpass)],
    "threads": sorted(each.name for each in threading.enumerate()),
    "locale": [locale.setlocale(locale.LC_ALL), locale.getpreferredencoding()],
    "encodings": [sys.getfilesystemencoding(), sys.getdefaultencoding()],
    "time": [time.tzname, time.timezone], "temporary": tempfile.gettempdir(),
    "warnings": [repr(each) for each in warnings.filters],
    "gc": [gc.isenabled(), gc.get_threshold()],
    "hooks": [repr(each).split(" at ")[0] for each in (sys.excepthook, sys.displayhook,
              sys.unraisablehook, threading.excepthook, sys.breakpointhook)],
    "tracing": [sys.gettrace(), sys.getprofile()],
    "recursion": sys.getrecursionlimit(), "switch": sys.getswitchinterval(),
    "loop": type(asyncio.get_running_loop()).__name__,
    "logging": [logging.root.level, [type(each).__name__ for each in logging.root.handlers]],
    "decimal": repr(decimal.getcontext()),
    "history": [shell.history_manager.enabled, shell.history_manager.hist_file,
                shell.history_manager.using_thread, shell.history_manager.session_number],
    "config": {k: dict(v) for k, v in shell.config.items() if k != "IPKernelApp"},
    "count": shell.execution_count, "magics": sorted(shell.magics_manager.magics["line"]),
    "extensions": sorted(shell.extension_manager.loaded),
    "kernel": [type(shell).__module__, type(shell.kernel).__module__, type(shell.kernel).__name__],
    "parents": [type(shell.parent).__name__, type(shell.parent.parent).__name__],
    "folders": [str(each) for each in (*_dh, *shell.history_manager.dir_hist, shell.starting_dir)],
    "inputs": [_ih is shell.history_manager.input_hist_parsed, Out is _oh, len(_ih)],
    "before": {k: type(v).__name__ for k, v in shell._orig_sys_module_state.items()},
    "connection": [*shell.config.IPKernelApp.connection_file.split("/")[-1:],
                   shell.config is shell.kernel.config, shell.config is shell.parent.parent.config],
    "configurables": [type(each).__name__ for each in shell.configurables],
    "logs": [type(each.stream).__name__ for each in shell.log.handlers],
}
session = shell.kernel.session
unique = {"random": random.random(), "hash": hash("x"), "pid": os.getpid(), "ppid": os.getppid(),
          "session": session.session, "key": session.key.decode(), "ident": shell.kernel.ident,
          "begun": str(shell.history_manager.get_session_info()[1])}
print(json.dumps([sketch, unique]))
"""


@pytest.fixture
def warm(make):
    return make(spare_kernels=2)


def _pid(driver):
    """Of the warm process of the kernels; that of the runners came first."""
    return list(driver.runtime._warm.values())[-1]._server.process.pid


def family(pid):
    return {pid, *(each["pid"] for each in descendants_of(pid))}


async def test_it_looks_like_one_that_was_started_the_ordinary_way(make, warm):
    cold = make(spare_kernels=0)
    attempt, _, log = await warm.run([DESCRIBE], env={"A": "é"})
    forked, who = json.loads(log.replace("SpareKernelApp", "IPKernelApp"))
    assert who["ppid"] != attempt.handle["pid"], "it was not forked"
    started, _ = json.loads((await cold.run([DESCRIBE], env={"A": "é"}))[2])
    modules, ordinary = ({*each.pop("modules")} for each in (forked, started))
    more = {name.split(".")[0] for name in modules - ordinary}
    assert more <= sys.stdlib_module_names, more
    missing = {name.split(".")[0] for name in ordinary - modules}
    debugger = {name for name in missing if name.startswith(("debugpy", "pydev"))}
    assert missing - debugger <= sys.stdlib_module_names, missing
    for each in (forked, started):
        for private in ("CONVECT_VALUES", "JPY_PARENT_PID", "PYDEVD_USE_FRAME_EVAL"):
            each["environment"].pop(private, None)
    different = [
        (name, *({*map(str, each[name])} - {*map(str, other[name])} for each, other in both))
        for both in [((forked, started), (started, forked))]
        for name in sorted(forked)
        if forked[name] != started[name]
    ]
    assert different == [
        ("builtins", set(), {"execfile", "runfile"}),  # of the debugger, as the next
        ("hooks", {"<built-in function breakpointhook>"}, {"<function debugpy_breakpointhook"}),
        ("threads", set(), {"Thread-1"}),  # which ends the kernel with its runner
    ]


async def test_it_shares_no_state_with_the_one_before(warm, wait_for):
    """Those of one warm process share its hash seed; it is replaced when nobody waits."""
    grandparent = "print(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])"
    seen = []
    for _ in range(3):
        _, _, log = await warm.run([DESCRIBE, grandparent])
        described, forked_by = log.splitlines()
        seen.append(json.loads(described)[1])
        await wait_for(lambda pid=int(forked_by): _pid(warm) != pid)
    for name in seen[0]:
        assert len({each[name] for each in seen}) == 3, name


async def test_a_hash_seed_that_is_set_is_honoured(make, monkeypatch):
    command = [sys.executable, "-c", "print(hash('x'))"]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    wanted = subprocess.run(command, capture_output=True, text=True, env=environment).stdout
    driver = make(spare_kernels=2)
    for _ in range(2):
        _, _, log = await driver.run(["print(hash('x'))"], env={"PYTHONHASHSEED": "7"})
        assert log == wanted
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    driver = make(spare_kernels=2)
    _, _, log = await driver.run(["print(hash('x'))"])
    assert log == wanted
    assert list(driver.runtime._warm.values())[-1]._renewal is None


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


@pytest.mark.parametrize("spare_kernels", [1, 0], ids=["warm", "cold"])
async def test_handlers_and_the_shell_end_before_the_connections_are_closed(make, spare_kernels):
    tells = (
        "import atexit, sys\n"
        "def tell(word, sys=sys, open=open):\n"
        "    with open('end.txt', 'a') as file: print(word, type(sys.stdout).__name__, file=file)\n"
        "atexit.register(tell, 'handler')\n"
        "class File:\n    def unlink(self, tell=tell): tell('shell')\n"
        "get_ipython().tempfiles.append(File())"
    )
    attempt, _, _ = await make(spare_kernels=spare_kernels).run([tells], outputs=["end.txt"])
    told = (attempt.folder / "files" / "end.txt").read_text().splitlines()
    assert told == ["handler OutStream", "shell OutStream"]


async def test_a_kernel_with_settings_reads_them_itself(make, tmp_path, monkeypatch, wait_for):
    """They are a program, which tells who executes it; one that has none may get some."""
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    driver = make(spare_kernels=1)
    await driver.run(["1"])
    pid = _pid(driver)
    await wait_for(lambda: _pid(driver) != pid)
    (profile / "ipython_kernel_config.py").write_text(
        f"import os\nopen({str(tmp_path / 'read')!r}, 'a').write(f'{{os.getpid()}} ')\n"
        "c.InteractiveShell.cache_size = 77\nc.IPKernelApp.exec_lines = ['set_by_settings = 1']\n"
    )
    await driver.run(["1"])  # by the spare that was ready before
    for _ in range(2):
        source = "import os; print(os.getpid(), set_by_settings, get_ipython().cache_size)"
        _, status, log = await driver.run([source])
        assert status.state == "succeeded", (status, log)
        pid, one, size = log.split()
        assert (one, size) == ("1", "77")
        assert pid in (tmp_path / "read").read_text().split()


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


async def test_steps_go_on_when_the_warm_process_is_killed(warm, wait_for, alive, tmp_path):
    go_on = tmp_path / "go-on"
    waits = (
        f"import pathlib, time\nwhile not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.01)"
    )
    attempt = await warm.start(warm.attempt([waits, "print('went on')"]))
    await warm.until(attempt, "running")
    pid = _pid(warm)
    waiting = family(pid) - {pid, attempt.handle["pid"]} - family(attempt.handle["pid"])
    os.kill(pid, signal.SIGKILL)
    await wait_for(lambda: not alive(pid))
    go_on.touch()
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
        await wait_for(lambda warm=warm: warm._server is None)
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
from jupyterlab_convect.runtimes.local import fork_server

now, forks = 0.0, 0
really_select, really_fork = select.select, fork_server.ForkServer.fork

def fork(self, **how):
    global forks
    forks += 1
    if forks > 1000:
        sys.exit("it spins")
    return really_fork(self, **how)

def until_something_happens(descriptors, _, __, seconds):
    global now
    patience = 60 if server.spares else 0  # which are about to die
    ready = really_select(descriptors, [], [], patience)
    if not ready[0]:
        now += seconds
    return ready

fork_server.ForkServer.fork = fork
fork_server.time.monotonic = lambda: now
fork_server.select.select = until_something_happens
options = {"runner": False, "spares": 2, "idle": 600, "launch": {}, "sockets": ["/no/such"],
           "views": []}
ours, theirs = socket.socketpair()
server = fork_server.ForkServer(theirs, options)
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
    warm = ForkClient(logging.getLogger(), own_launch(), spares=2, idle=600)
    warm._options["sockets"] = ["/no/such/folder"]
    try:
        assert await asyncio.wait_for(warm.order({}), 60) is None
    finally:
        await warm.close()


async def test_a_warm_process_that_does_not_answer_is_ended(monkeypatch, wait_for):
    from jupyterlab_convect.runtimes.local import fork_client as module

    warm = ForkClient(logging.getLogger(), own_launch(), spares=1, idle=600)
    try:
        warm.warm_up()
        assert await warm._server.is_ready()
        os.kill(warm._server.process.pid, signal.SIGSTOP)
        monkeypatch.setattr(module, "PATIENCE", 0.1)
        assert await warm.order({}) is None
        await wait_for(lambda: warm._server is None)
    finally:
        await warm.close()


async def test_steps_run_where_no_spare_lives(make, monkeypatch):
    monkeypatch.setattr(fork_start, "socket_folders", lambda: ["/no/such/folder"])
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
    monkeypatch.setattr(fork_start, "SCRIPT", "/no/such/script.py")
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
    assert await process._server.is_ready()
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


async def test_what_was_started_early_is_used_and_the_rest_ended(wait_for):
    fork_start.start_early(spares=1, idle=600)
    kernels, runners = [started.process for started in fork_start._early.values()]
    warm = ForkClient(logging.getLogger(), own_launch(), spares=1, idle=600)
    try:
        warm.warm_up()
        assert warm._server.process is kernels
        assert await warm._server.is_ready()
        fork_start.end_unused()
        assert runners.poll() is not None
        assert kernels.poll() is None
    finally:
        await warm.close()
