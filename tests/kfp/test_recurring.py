"""Schedules whose clocks a real Kubeflow Pipelines keeps, as recurring runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config
from waiting import eventually

from jupyterlab_convect.errors import ConvectError, Missing, Refused
from jupyterlab_convect.runs.model import Request
from jupyterlab_convect.runtimes.kfp.api import API, Client
from jupyterlab_convect.runtimes.kfp.check import Way, connect
from jupyterlab_convect.schedules.times import Clock
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

PATIENCE = 600.0
MINUTELY = Clock("* * * * *", "Asia/Shanghai")


@pytest.fixture
async def open_workspace(endpoint: str) -> AsyncIterator[Callable[[], Workspace]]:
    import images

    opened: list[Workspace] = []

    def open_one() -> Workspace:
        traits = {"endpoint": endpoint, "image": images.NOTEBOOK}
        opened.append(Workspace(Settings(config=Config(KfpRuntime=traits))))
        return opened[-1]

    yield open_one
    last = open_one()
    for found in last.scheduling.all():
        with contextlib.suppress(ConvectError):
            await last.scheduling.remove(found["id"])
    for workspace in opened:
        await workspace.close()


@pytest.fixture
def client(endpoint: str) -> Client:
    return connect(Way(endpoint))


@pytest.fixture
def request_(tmp_path: Path, write_notebook: Callable[..., Path]) -> Request:
    write_notebook(
        tmp_path / "每小时.ipynb",
        ("parameters", "n = 1\nday = ''"),
        "import os\nfrom pathlib import Path\nPath('made.txt').write_text('by the clock')",
        ("outputs", "twice = n * 2\nrun = os.environ['CONVECT_RUN']"),
    )
    return Request("每小时.ipynb", str(tmp_path), runtime="kfp", parameters={"n": 21})


def recurring(client: Client, schedule_id: str) -> list[Any]:
    listed = client.call("GET", f"{API}/recurringruns", query={"page_size": "100"})
    runs = listed.get("recurringRuns") or listed.get("recurring_runs") or []
    return [each for each in runs if schedule_id in each["display_name"]]


async def test_a_recurring_run_fires_while_nobody_is_there_and_comes_home(
    open_workspace: Callable[[], Workspace], client: Client, request_: Request
) -> None:
    first = open_workspace()
    found = await first.scheduling.add(request_, MINUTELY, name="每分钟", kept_by="runtime")
    (kept,) = recurring(client, found)
    assert kept["trigger"]["cron_schedule"]["cron"] == "0 * * * * *"
    assert (kept["max_concurrency"], kept["no_catchup"]) == ("1", True)
    assert first.scheduling.view(found)["pinned"]
    await first.close()
    # What is pinned is executed, also when the file changes.
    Path(request_.root, request_.path or "").write_text("{}")

    def has_fired() -> bool:
        return bool(client.runs_of_recurring(kept["recurring_run_id"]).get("runs"))

    await eventually(has_fired, "the recurring run has fired", PATIENCE)
    workspace = open_workspace()
    keeper = workspace.scheduling.keeper("server")

    async def ran() -> dict[str, Any] | None:
        await keeper.look()
        lines = workspace.scheduling.lines(found)
        return next((each for each in lines[::-1] if each["state"] == "succeeded"), None)

    await eventually(ran, "a run has come home", PATIENCE)
    await workspace.scheduling.edit(found, {"paused": True})
    line = await ran()
    assert line is not None
    assert (line["outcome"], line["due"] % 60) == ("ran", 0)
    run, state = workspace.store.read(line["run"])
    (step,) = state.steps.values()
    assert step.outputs is not None
    assert step.outputs["twice"] == 42
    graph = workspace.store.run_folder(run.id) / "graph.json"
    assert f'"id": "{step.outputs["run"]}"' in graph.read_text()
    assert run.request.labels["schedule"] == "每分钟"
    folder = workspace.store.run_folder(run.id)
    assert next(folder.glob("steps/*/1/executed.ipynb")).is_file()
    assert next(folder.glob("steps/*/1/made/**/made.txt")).read_text() == "by the clock"
    there = client.run(step.outputs["run"])
    due = datetime.fromtimestamp(line["due"], timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert there["scheduled_at"] == due
    dues = [each["due"] for each in workspace.scheduling.lines(found)]
    assert len(dues) == len(set(dues))

    async def is_tidy() -> bool:
        await keeper.look()
        return recurring(client, found) == []

    await eventually(is_tidy, "what is paused is deleted once its runs have ended", PATIENCE)


async def test_a_recurring_run_is_replaced_paused_and_deleted(
    open_workspace: Callable[[], Workspace], client: Client, request_: Request
) -> None:
    workspace = open_workspace()
    scheduling = workspace.scheduling
    nightly = Clock("30 3 * * 1", "Asia/Shanghai")
    found = await scheduling.add(
        request_, nightly, kept_by="runtime", overlap="queue", missed="all", concurrency=2
    )

    def enabled() -> list[Any]:
        return [each for each in recurring(client, found) if each["mode"] == "ENABLE"]

    (first,) = enabled()
    assert first["trigger"]["cron_schedule"]["cron"] == "0 30 19 * * 0"
    assert (first["max_concurrency"], first.get("no_catchup", False)) == ("2", False)
    every = Clock(every=90.0, anchor=1_700_000_000.0)
    await scheduling.edit(found, {"clock": every})
    (second,) = enabled()
    assert second["trigger"]["periodic_schedule"]["interval_second"] == "90"
    await scheduling.edit(found, {"paused": True})
    assert enabled() == []
    await scheduling.edit(found, {"paused": False, "clock": nightly})
    (third,) = enabled()
    with pytest.raises(Refused, match="in summer than in winter"):
        await scheduling.edit(found, {"clock": replace(nightly, zone="Europe/Berlin")})
    with pytest.raises(ConvectError, match="Europe/Nowhere"):
        await scheduling.edit(found, {"clock": replace(nightly, zone="Europe/Nowhere")})
    assert [each["recurring_run_id"] for each in enabled()] == [third["recurring_run_id"]]
    keeper = scheduling.keeper("server")

    async def is_tidy() -> bool:
        await keeper.look()
        return len(recurring(client, found)) == 1

    await eventually(is_tidy, "those before it are deleted", PATIENCE)
    await scheduling.edit(found, {"kept_by": "here"})
    assert recurring(client, found) == []
    await scheduling.edit(found, {"kept_by": "runtime"})
    (last,) = enabled()
    client.delete_recurring(last["recurring_run_id"])

    async def is_said() -> bool:
        await keeper.look()
        await asyncio.sleep(0)
        return "was deleted in Kubeflow" in str(workspace.health.troubles())

    await eventually(is_said, "that somebody deleted it is said", PATIENCE)
    await scheduling.remove(found)
    assert recurring(client, found) == []
    with pytest.raises(Missing):
        scheduling.view(found)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"overlap": "stop"}, "each due time in turn"),
        ({"missed": "none"}, "each due time in turn"),
        ({"concurrency": 11}, "at most 10"),
        ({"sweep": {"space": {"n": [1, 2]}}}, "not a sweep"),
        ({"parameters": {"day": "${{ schedule.date }}"}}, "when it was due"),
        ({"clock": Clock("0 9 * * *", "Europe/Berlin")}, "in summer than in winter"),
    ],
)
async def test_what_it_cannot_keep_is_refused_and_nothing_is_made(
    open_workspace: Callable[[], Workspace],
    client: Client,
    request_: Request,
    how: dict[str, Any],
    words: str,
) -> None:
    scheduling = open_workspace().scheduling
    clock, parameters = how.pop("clock", MINUTELY), how.pop("parameters", {})
    asked = replace(request_, parameters=parameters)
    with pytest.raises(Refused, match=words):
        await scheduling.add(asked, clock, name="refused-7a1", kept_by="runtime", **how)
    assert scheduling.all() == []
    assert recurring(client, "refused-7a1") == []
