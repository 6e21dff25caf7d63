"""Replicas that neither say nor do anything: found, shown where they are, and started again."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from jupyterlab_convect.runner.hang import HangWatch, hang_of, want_processor

from .conftest import Ended
from .test_distributed import environment, log_of, replicas, start_nodes

HANGS = textwrap.dedent(
    """
    import os, threading
    def wait_for_nobody():
        threading.Event().wait()
    print("begun", flush=True)
    if os.environ["CONVECT_RESTART"] == "0":
        wait_for_nobody()
    """
)


@pytest.mark.parametrize("launcher", ["plain", "torchrun"])
def test_what_hangs_shows_its_stacks_and_starts_again(bench: Any, launcher: str) -> None:
    how = {"processes": 2, "restarts": 1, "hang_after": 1, "on_hang": "stop", "launcher": launcher}
    ended = bench.script(HANGS, distributed=how, env=environment(bench, launcher))
    assert ended.state == "succeeded", ended.log
    for rank in range(2):
        assert "in wait_for_nobody" in log_of(ended, rank)
        assert log_of(ended, rank).count("begun") == 2
    assert "[It seems to hang: no output and no use of a CPU or GPU for 1 s.]" in ended.log
    told = [each for each in ended.events_of("replica") if each["state"] == "cancelled"]
    assert {each["reason"] for each in told} == {"Stopped because it hung."}


def test_what_hangs_fails_when_it_is_not_to_start_again(bench: Any) -> None:
    how = {"processes": 2, "hang_after": 1, "on_hang": "stop"}
    ended = bench.script(HANGS, distributed=how)
    assert ended.state == "failed"
    assert ended.reason == "It seems to hang: no output and no use of a CPU or GPU for 1 s."
    assert replicas(ended)[0]["state"] == "cancelled"


def test_nodes_that_all_hang_start_again_together(bench: Any) -> None:
    how = {"restarts": 1, "hang_after": 1, "on_hang": "stop"}
    folder, runners = start_nodes(bench, HANGS, **how)
    codes = [runner.wait() for runner in runners]
    ended = [Ended(folder / "nodes" / str(node), 0) for node in range(2)]
    assert codes == [0, 0], ended[0].log + ended[1].log
    why = "It seems to hang: no output and no use of a CPU or GPU for 1 s."
    for rank, each in enumerate(ended):
        assert f"[Restart 1 of 1: {why}]" in each.log
        assert log_of(each, rank).count("begun") == 2
        assert "in wait_for_nobody" in log_of(each, rank)


def test_a_node_that_hangs_is_left_alone_while_another_works(bench: Any, until: Any) -> None:
    script = textwrap.dedent(
        """
        import os, pathlib, time
        while not pathlib.Path("end").exists():
            if os.environ["RANK"] == "1":
                print("works", flush=True)
            time.sleep(0.1 if os.environ["RANK"] == "1" else 0.5)
        """
    )
    how = {"restarts": 1, "hang_after": 1, "on_hang": "stop"}
    folder, runners = start_nodes(bench, script, **how)
    log = folder / "nodes" / "0" / "log.txt"
    until(lambda: log.exists() and "[It seems to hang" in log.read_text())
    (bench.work / "end").touch()
    assert [runner.wait() for runner in runners] == [0, 0]
    assert "Restart" not in log.read_text()


def test_what_hangs_is_only_told_of_and_may_go_on(bench: Any, until: Any) -> None:
    script = textwrap.dedent(
        """
        import pathlib, time
        while not pathlib.Path("go").exists(): time.sleep(0.2)
        while not pathlib.Path("end").exists():
            print("goes on", flush=True)
            time.sleep(0.1)
        """
    )
    (bench.work / "s.py").write_text(script)
    how = {"processes": 2, "hang_after": 1}
    folder = bench.attempt(bench.work / "s.py", distributed=how)
    runner = bench.start(folder)

    def reason() -> str | None:
        try:
            return hang_of(json.loads((folder / "replicas.json").read_text())["replicas"])
        except OSError:
            return None

    until(lambda: reason() is not None)
    (bench.work / "go").touch()
    until(lambda: reason() is None)
    (bench.work / "end").touch()
    assert runner.wait() == 0
    assert "[It continues.]" in (folder / "log.txt").read_text()


def test_another_sitecustomize_is_not_lost(bench: Any) -> None:
    (bench.work / "sitecustomize.py").write_text("import builtins; builtins.CUSTOM = 7")
    env = {"PYTHONPATH": str(bench.work)}
    ended = bench.script("print(CUSTOM)", distributed={"hang_after": 60}, env=env)
    assert log_of(ended, 0) == "7\n"


def test_who_works_or_speaks_does_not_hang() -> None:
    now = 0.0
    watch = HangWatch(10, lambda: now)
    busy, idle = {"cpu": 1.0}, {"cpu": 0.01}
    nobody = [2**22 + 1, 2**22 + 2]
    changes = []
    for at, used in ((6.0, busy), (12.0, idle), (15.0, None), (17.0, idle), (18.0, idle)):
        now = at
        changes.append(watch.look(used, nobody))
    assert changes == [False, False, False, True, False]
    assert watch.hangs
    now = 19.0
    watch.heard()  # its stacks
    assert not watch.look(None, nobody)
    now = 30.0
    watch.heard()
    assert watch.look(None, nobody)
    assert not watch.hangs
    now = 45.0
    assert not watch.look({"cpu": 0.0, "gpu": 80.0}, nobody)


def test_who_waits_for_a_processor_does_not_hang(until: Any) -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    idle = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        until(lambda: want_processor([busy.pid]))
        until(lambda: not want_processor([idle.pid]))
    finally:
        for each in (busy, idle):
            each.kill()
            each.communicate()


def test_one_that_is_at_work_is_enough() -> None:
    hanging = {"state": "running", "reason": "It hangs."}
    assert hang_of([hanging, {"state": "succeeded"}, hanging]) == "It hangs."
    assert hang_of([hanging, {"state": "running"}]) is None
    assert hang_of([hanging, {"state": "starting", "reason": "It hangs."}]) is None
    assert hang_of([{"state": "failed", "reason": "It failed."}]) is None
