"""Limits of a step: of each process everywhere, of all together where groups can be made."""

import os
import subprocess
import sys

import pytest

from jupyterlab_convect.runner import limits
from jupyterlab_convect.runner.limits import can_limit, find_parent, limiting, remove_empty_groups

HOG = "import time; data = bytearray(60 << 20); time.sleep(30)"


def needs(controller):
    return pytest.mark.skipif(not can_limit(controller), reason="no control groups of our own here")


def groups():
    return set(find_parent("memory").glob("convect-*"))


@needs("memory")
@pytest.mark.parametrize("kind", ["notebook", "command"])
def test_all_processes_of_a_step_together_stay_below_its_memory_limit(bench, monkeypatch, kind):
    monkeypatch.setenv("CONVECT_MEMORY_LIMIT", str(300 << 20))
    code = (
        "import subprocess, sys\n"
        f"hogs = [subprocess.Popen([sys.executable, '-c', {HOG!r}]) for _ in range(8)]\n"
        "while not (ends := [hog.poll() for hog in hogs if hog.poll() is not None]): pass\n"
        "print('ended', ends[0])\n"
        "for hog in hogs: hog.kill()"
    )
    before = groups()
    if kind == "notebook":
        ended = bench.run(bench.notebook(code))
    else:
        ended = bench.run(kind="command", command=[sys.executable, "-c", code])
    # Whom the system kills is its choice: one that the step started, or the step itself.
    said = ended.log + ended.outputs.get("reason", "")
    assert "ended -9" in said or "exceeded its memory limit of 314.6 MB" in said
    assert groups() == before


@needs("memory")
def test_a_step_that_is_killed_for_its_memory_says_so(bench, monkeypatch):
    monkeypatch.setenv("CONVECT_MEMORY_LIMIT", str(100 << 20))
    # Shared memory is no private memory of a process, but memory of the step.
    code = (
        "import mmap; m = mmap.mmap(-1, 200 << 20); [m.write(bytes(1 << 20)) for _ in range(200)]"
    )
    ended = bench.run(kind="command", command=[sys.executable, "-c", code])
    assert ended.state == "failed"
    assert "was killed because the step exceeded its memory limit of 104.9 MB" in ended.reason


@needs("cpu")
def test_a_cpu_limit_slows_a_step_down(bench, monkeypatch):
    monkeypatch.setenv("CONVECT_CPU_LIMIT", "0.2")
    code = (
        "import time\n"
        "began = time.monotonic()\n"
        "while time.process_time() < 0.3: pass\n"
        "print('share', time.process_time() / (time.monotonic() - began))"
    )
    ended = bench.run(kind="command", command=[sys.executable, "-c", code])
    assert float(ended.log.split()[1]) < 0.6


@needs("memory")
def test_what_a_step_leaves_running_ends_with_it():
    with limiting(1 << 30, 0) as given:
        daemon = subprocess.Popen(["sleep", "600"], start_new_session=True, preexec_fn=given.apply)
    assert daemon.wait(60) == -9


@needs("memory")
def test_groups_of_runners_that_were_killed_are_removed():
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, ours = (find_parent("memory") / f"convect-{pid}" for pid in (ended.pid, os.getpid()))
    left.mkdir()
    ours.mkdir()
    try:
        remove_empty_groups()
        assert not left.exists()
        assert ours.exists()
    finally:
        ours.rmdir()


def test_a_group_is_made_as_near_as_the_system_allows(tmp_path):
    own = tmp_path / "user.slice" / "app.slice" / "lab.scope"
    own.mkdir(parents=True)
    for place, given in ((own, ""), (own.parent, "memory pids\n"), (tmp_path, "cpu memory\n")):
        (place / "cgroup.subtree_control").write_text(given)
        (place / "cgroup.procs").write_text("")
    membership = tmp_path / "membership"
    membership.write_text("0::/user.slice/app.slice/lab.scope\n")
    assert find_parent("memory", tmp_path, membership) == own.parent
    assert find_parent("cpu", tmp_path, membership) == tmp_path
    assert find_parent("io", tmp_path, membership) is None
    membership.write_text("0::/../outside\n")
    assert find_parent("memory", tmp_path, membership) is None


def test_without_control_groups_a_step_runs_all_the_same(bench, monkeypatch):
    monkeypatch.setattr(limits, "find_parent", lambda controller: None)
    monkeypatch.setenv("CONVECT_MEMORY_LIMIT", str(1 << 30))
    monkeypatch.setenv("CONVECT_CPU_LIMIT", "0.5")
    assert bench.run(kind="command", command=["true"]).state == "succeeded"
