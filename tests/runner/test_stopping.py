"""A step that is asked to end leaves what it had, and says why."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from .conftest import Ended


@pytest.fixture
def until_running(wait_for):
    """Wait until the step has printed something."""

    def wait(folder):
        wait_for(lambda: (folder / "log.txt").exists() and (folder / "log.txt").read_bytes())

    return wait


def test_a_notebook_is_interrupted_and_saved(bench, until_running):
    source = bench.notebook("print('half')\nimport time\nwhile True: time.sleep(0.1)", "1")
    folder = bench.attempt(source)
    (folder / "stop.json").write_text(json.dumps({"reason": "Stopped by alice."}))
    process = bench.start(folder)
    until_running(folder)
    process.send_signal(signal.SIGTERM)
    ended = Ended(folder, process.wait())
    assert ended.code == 143
    assert ended.state == "cancelled"
    assert ended.reason == "Stopped by alice."
    assert ended.printed(0) == "half\n"
    assert ended.notebook.cells[0].outputs[-1].ename == "KeyboardInterrupt"
    assert ended.events[-1]["state"] == "cancelled"


def test_one_that_ignores_the_interrupt_is_killed(bench, until_running):
    source = bench.notebook(
        "print('half', flush=True)\nimport time\nwhile True:\n"
        "    try: time.sleep(600)\n    except KeyboardInterrupt: pass"
    )
    folder = bench.attempt(source)
    process = bench.start(folder, CONVECT_GRACE="0.3")
    until_running(folder)
    process.send_signal(signal.SIGTERM)
    ended = Ended(folder, process.wait())
    assert ended.state == "cancelled"
    assert ended.reason == "Stopped."
    assert ended.printed(0) == "half\n"


def test_a_stop_while_the_kernel_starts(bench, wait_for):
    folder = bench.attempt(bench.notebook("import time; time.sleep(600)"))
    process = bench.start(folder)
    wait_for(lambda: (folder / "runner.json").exists())
    process.send_signal(signal.SIGTERM)
    ended = Ended(folder, process.wait())
    assert ended.code == 143
    assert ended.state == "cancelled"


@pytest.mark.parametrize("deaf", [False, True])
def test_a_script_is_stopped_with_its_children(bench, wait_for, until_running, deaf):
    path = bench.work / "s.sh"
    path.write_text(f"{'trap : TERM; ' if deaf else ''}sleep 600 & echo $!; wait; wait; sleep 600")
    folder = bench.attempt(path)
    process = bench.start(folder, CONVECT_GRACE="0.3")
    until_running(folder)
    process.send_signal(signal.SIGTERM)
    ended = Ended(folder, process.wait())
    assert (ended.code, ended.state) == (143, "cancelled")
    child = int(ended.log)
    wait_for(lambda: not _is_alive(child))


def test_the_time_limit(bench):
    began = time.monotonic()
    ended = bench.cells("print('half', flush=True)\nimport time; time.sleep(600)", timeout=2)
    assert time.monotonic() - began < 300
    assert ended.code == 1
    assert ended.state == "failed"
    assert ended.reason == "Timed out after 2 s."


def test_the_time_limit_of_a_script(bench):
    ended = bench.script("import time; time.sleep(600)", timeout=0.2)
    assert ended.reason == "Timed out after 0.2 s."


def test_a_long_cell_is_saved_and_told_about_while_it_runs(bench, wait_for):
    source = bench.notebook(
        "from jupyterlab_convect import metric\nprint('early', flush=True)\nmetric('a', 1)\n"
        "import time; time.sleep(600)"
    )
    folder = bench.attempt(source)
    process = bench.start(folder)
    ended = Ended(folder, None)
    saved = folder / "executed.ipynb"
    wait_for(lambda: saved.exists() and ended.printed(0) == "early\n")
    assert ended.notebook.cells[0].metadata.papermill["status"] == "running"
    wait_for(lambda: ended.events_of("metric"))
    process.send_signal(signal.SIGTERM)
    process.wait()


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


STOPPED_AT_THE_END = """
import os, signal, sys
from pathlib import Path
from jupyterlab_convect.runner import attempt as module

conclude = module._conclude

def stopped_meanwhile(*args):
    os.kill(os.getpid(), signal.SIGTERM)
    return conclude(*args)

module._conclude = stopped_meanwhile
sys.exit(module.run(Path(sys.argv[1])))
"""


def test_a_stop_after_the_work_is_done_loses_nothing(bench):
    path = bench.work / "s.sh"
    path.write_text("echo done")
    folder = bench.attempt(path)
    done = subprocess.run([sys.executable, "-c", STOPPED_AT_THE_END, str(folder)])
    ended = Ended(folder, done.returncode)
    assert (ended.code, ended.state) == (0, "succeeded")
