"""Without a shared volume: files travel in a Secret, and everything comes home through the log."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.runs import environments

sys.path.insert(0, str(Path(__file__).parent.parent / "conformance"))

import test_conformance as suite
from support import end_while_nobody_listens
from waiting import PATIENCE, eventually

# What needs no files but those that are declared.
for name in (
    "test_parameters_keep_their_types",
    "test_values_between_steps",
    "test_metrics",
    "test_files",
    "test_a_file_that_was_promised_and_not_made",
    "test_scripts",
    "test_commands_and_environment",
    "test_timeout",
    "test_failure_isolation",
    "test_a_kernel_that_dies",
    "test_the_source_is_never_written",
    "test_any_path",
    "test_big_outputs",
    "test_two_runs_of_one_file_at_once",
    "test_what_a_run_made_is_known_and_put_in_place",
    "test_replicas_on_several_nodes_work_together",
    "test_the_rank_that_fails_first_ends_those_of_other_nodes",
    "test_replicas_work_together_in_the_same_view",
    "test_nodes_go_on_after_the_host_is_gone_and_stop_together",
):
    globals()[name] = getattr(suite, name)


@pytest.fixture
async def lab(make_lab: Callable[..., Any]) -> Any:
    return make_lab(shared=False)


until = eventually


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def test_what_the_image_had_installed_comes_home(lab: Any) -> None:
    lab.notebook("n.ipynb", "import sys; print(sys.version.split()[0])")
    run, _ = await lab.succeed("n.ipynb")
    (short,) = environments.view(lab.store, lab.store.read(run.id))["environments"]
    found = environments.describe(lab.store, lab.store.read(run.id))
    had = found["environments"][short["digest"]]
    assert had["python"] == (lab.result(run, "n") / "log.txt").read_text().strip()
    assert "papermill" in had["packages"]
    assert found["steps"]["n"]["node"] == short["host"]
    assert "sha256:" in short["image"]


LONG = "print('first', flush=True)\nimport time\nfor n in range(600): time.sleep(0.1)"


async def test_log_events_and_notebook_can_be_followed(lab: Any) -> None:
    lab.notebook("a.ipynb", "print('hello')", LONG)
    run = await lab.start("a.ipynb")
    folder = lab.store.attempt_folder(run.id, "a", 1)
    await until(lambda: "first" in read(folder / "log.txt"))
    await until(lambda: '"cell.end"' in read(folder / "events.ndjson"))
    await until(lambda: "hello" in read(folder / "executed.ipynb"))
    json.loads(read(folder / "executed.ipynb"))
    await until(lambda: lab.store.read(run.id).state.steps["a"].progress)
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.steps["a"].state == "cancelled"
    # What the runner left is kept as it is, and a pod does not know who stopped it.
    assert json.loads(read(folder / "outputs.json"))["state"] != "succeeded"
    assert "first" in read(folder / "executed.ipynb")


async def test_the_next_server_reads_the_log_again(lab: Any) -> None:
    lab.write("a.py", "import time\nfor n in range(60): print(n, flush=True); time.sleep(0.1)\n")
    run = await lab.start("a.py")
    log = lab.store.attempt_folder(run.id, "a", 1) / "log.txt"
    await until(lambda: "3\n" in read(log))
    await lab.close()
    lab.open()
    assert await lab.engine.resume() == [run.id]
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded", state.reason
    assert read(log).split() == [str(n) for n in range(60)]


async def test_what_ended_while_nobody_listened(lab: Any, bed: Any) -> None:
    run = await end_while_nobody_listens(lab, bed)
    await lab.engine.resume()
    assert (await lab.engine.wait(run.id, PATIENCE)).state == "succeeded"
    assert read(lab.root / "x.txt") == "1"


async def test_files_of_earlier_steps_travel(lab: Any) -> None:
    lab.write("make.py", "import os; os.makedirs('data'); open('data/x', 'w').write('42')")
    lab.write("helper.py", "def read(): return open('data/x').read()")
    lab.write("use.py", "import helper; print(helper.read())")
    run, _ = await lab.succeed(
        {
            "make": {"kind": "script", "path": "make.py", "outputs": ["data"]},
            "between": {"kind": "command", "command": ["true"], "after": ["make"]},
            "use": {
                "kind": "script",
                "path": "use.py",
                "after": ["between"],
                "dependencies": ["helper.py"],
            },
        }
    )
    assert read(lab.root / "data" / "x") == "42"
    assert read(lab.result(run, "use") / "log.txt") == "42\n"


async def test_nothing_is_left_in_the_cluster(lab: Any, bed: Any) -> None:
    lab.write("a.py", "pass")
    run, _ = await lab.succeed("a.py")
    await until(lambda: not bed.pods(run.id))
    secrets = await asyncio.to_thread(bed.admin.list, bed.admin.path("secrets"))
    assert run.id not in " ".join(item["metadata"]["name"] for item in secrets)


async def test_more_than_fits_into_a_secret_is_refused(lab: Any) -> None:
    lab.write("a.py", "pass")
    (lab.root / "big.bin").write_bytes(os.urandom(2_000_000))
    _, state = await lab.finish(
        {"a": {"kind": "script", "path": "a.py", "dependencies": ["big.bin"]}}
    )
    assert state.state == "failed"
    assert "too large to be sent with the run" in state.steps["a"].reason


async def test_more_than_fits_through_the_log_fails_aloud(make_lab: Any) -> None:
    lab = make_lab(shared=False, carry_limit=400_000)
    lab.write(
        "a.py",
        "import os; open('small', 'w').write('1'); open('big', 'wb').write(os.urandom(10**6))",
    )
    run, state = await lab.finish(
        {"a": {"kind": "script", "path": "a.py", "outputs": ["small", "big"]}}
    )
    assert state.state == "failed"
    assert state.steps["a"].reason == (
        "The results are too large to be copied back without a shared volume: big."
    )
    assert read(lab.store.attempt_folder(run.id, "a", 1) / "files" / "small") == "1"
