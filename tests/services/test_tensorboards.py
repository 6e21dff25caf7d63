"""TensorBoard as a service: the real one, over event files that its own writer has written."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.cli import main as convect
from jupyterlab_convect.errors import ConvectError, Missing, Refused
from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.sweep_store import Sweep, SweepStore
from jupyterlab_convect.services import tensorboards
from jupyterlab_convect.services.store import ServiceStore

from .test_contract import ready, services

__all__ = ["services"]

pytest.importorskip("tensorboard")


def log(folder: Path, *values: float) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for step, value in enumerate(values):
        summary = Summary(value=[Summary.Value(tag="loss", simple_value=value)])
        writer.add_event(Event(step=step, wall_time=1.0 + step, summary=summary))
    writer.close()


def losses(address: str, run: str) -> list[float]:
    query = urllib.parse.urlencode({"run": run, "tag": "loss"})
    url = f"{address}/data/plugin/scalars/scalars?{query}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return [value for _, _, value in json.loads(answer.read())]


def runs_in(address: str) -> list[str]:
    with urllib.request.urlopen(f"{address}/data/runs", timeout=60) as answer:
        return sorted(json.loads(answer.read()))


async def test_a_folder_of_the_project(services: ServiceStore, tmp_path: Path, until: Any) -> None:
    log(tmp_path / "日志" / "train", 1.0, 0.5)
    record = services.start("tensorboard", {"folder": "日志"}, tmp_path)
    record = await ready(services, record)
    assert record.status.state == "ready", services.log(record.service.id)
    address = services.address(record)
    until(lambda: runs_in(address) == ["train"])
    assert losses(address, "train") == [1.0, 0.5]
    assert record.service.name == "TensorBoard: 日志"
    log(tmp_path / "日志" / "later", 3.0)
    until(lambda: "later" in runs_in(address))


async def test_several_runs_side_by_side(
    services: ServiceStore, tmp_path: Path, until: Any
) -> None:
    store = services.store
    ids = []
    for name, value in (("a, b: c", 1.0), ("other", 2.0)):
        plan = Plan(name, (Step("s", "script", "s"),))
        run = Run(new_id(), name, 1.0, "local", plan, Request(path=None, root=str(tmp_path)))
        store.create(run)
        log(store.folder / run.id / "steps" / "s" / "1" / "made" / "logs", value)
        ids.append(run.id)
    record = await ready(services, services.start("tensorboard", {"runs": ids}, tmp_path))
    assert record.service.name == "TensorBoard: a, b: c and other"
    address = services.address(record)
    until(lambda: len(runs_in(address)) == 2)
    first, second = runs_in(address)
    assert (losses(address, first), losses(address, second)) == ([1.0], [2.0])
    assert ids[0][-6:] in first


async def test_a_sweep_takes_later_points_by_itself(
    services: ServiceStore, tmp_path: Path, until: Any
) -> None:
    store, sweeps = services.store, SweepStore(services.store)
    request = Request(path="a.py", root=str(tmp_path))
    store.folder.mkdir(parents=True, exist_ok=True)
    sweep = Sweep(new_id(), "lr: 搜索", 1.0, request, {"lr": [1, 2]})
    sweeps.write(sweep, [{"lr": 1}, {"lr": 2}])

    def give(point: int, value: float) -> str:
        plan = Plan("a", (Step("s", "script", "s"),))
        run = Run(new_id(), "a", 1.0, "local", plan, request)
        store.create(run)
        log(store.folder / run.id / "steps" / "s" / "1" / "made" / "logs", value)
        sweeps.note(sweep.id, {"type": "run", "point": point, "run": run.id})
        return run.id

    first = give(0, 1.0)
    record = await ready(services, services.start("tensorboard", {"sweep": sweep.id}, tmp_path))
    assert record.status.state == "ready", services.log(record.service.id)
    assert record.service.name == "TensorBoard: lr: 搜索"
    address = services.address(record)
    until(lambda: len(runs_in(address)) == 1)
    assert runs_in(address)[0].startswith(f"1 {first[-6:]}")
    give(1, 2.0)
    until(lambda: len(runs_in(address)) == 2)
    assert losses(address, runs_in(address)[1]) == [2.0]
    with pytest.raises(Missing):
        services.start("tensorboard", {"sweep": "20261116-074512123-a1b2c3"}, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sweep": 3},
        {"sweep": "x", "folder": "."},
        {"folder": 3},
        {"folder": "../.."},
        {"folder": "none"},
        {"runs": []},
        {"runs": "x"},
        {"folder": ".", "runs": ["x"]},
        {"runs": ["x"] * 201},
    ],
)
def test_what_it_cannot_show(services: ServiceStore, tmp_path: Path, options: Any) -> None:
    with pytest.raises(ConvectError) as caught:
        services.start("tensorboard", options, tmp_path)
    assert caught.value.code == "bad-service"


def test_a_run_that_is_not_there(services: ServiceStore, tmp_path: Path) -> None:
    with pytest.raises(Missing):
        services.start("tensorboard", {"runs": ["20261116-074512123-a1b2c3"]}, tmp_path)


def test_where_it_is_not_installed(
    services: ServiceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboards.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refused, match="TensorBoard is not installed"):
        services.start("tensorboard", {"folder": "."}, tmp_path)


def test_from_the_command_line(
    services: ServiceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    log(tmp_path / "logs", 1.0)
    assert convect(["services", "tensorboard", "logs", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["state"]) == ("tensorboard", "ready")
    assert convect(["services", "tensorboard", "logs", "--run", "x"]) == 2
