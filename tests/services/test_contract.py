"""What every kind of services can rely on: started, ready, used, idle, stopped; and killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually, until

from jupyterlab_convect.cli import main as convect
from jupyterlab_convect.errors import Conflict, ConvectError, Missing, Refused
from jupyterlab_convect.runner import processes
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.lease import Lease
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.services import base
from jupyterlab_convect.services import store as service_store
from jupyterlab_convect.services.host import ServiceHost
from jupyterlab_convect.services.store import ServiceRecord, ServiceStore

APP = Path(__file__).with_name("echo_app.py")
COMMAND = [sys.executable, str(APP), "{port}"]


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceStore]:
    monkeypatch.setenv("CONVECT_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("CONVECT_INDEX_DIR", str(tmp_path / "index"))
    store = ServiceStore(Store(tmp_path / "runs", Index(tmp_path / "index" / "i.sqlite")))
    yield store
    for record in store.all():
        with contextlib.suppress(ConvectError):
            store.stop(record.service.id)
    until(lambda: not any(record.is_up for record in store.all()), "all have stopped")


def start(services: ServiceStore, root: Path, *how: str, **more: Any) -> ServiceRecord:
    return services.start("app", {"command": [*COMMAND, *how]}, root, **more)


async def ready(services: ServiceStore, record: ServiceRecord) -> ServiceRecord:
    return await services.until(record.service.id, up=True, timeout=300)


def ask(address: str) -> Any:
    with urllib.request.urlopen(f"{address}/a", timeout=60) as answer:
        return json.loads(answer.read())


async def test_a_service_is_started_answers_and_is_stopped(
    services: ServiceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of the hub")
    record = start(services, tmp_path, name="mine")
    assert (record.service.name, record.status.state) == ("mine", "starting")
    record = await ready(services, record)
    assert record.status.state == "ready", record
    told = ask(services.address(record))
    assert "JUPYTERHUB_API_TOKEN" not in told["environment"]
    assert start(services, tmp_path).status == record.status, "the same options are one service"
    assert "listening" in services.log(record.service.id)
    with pytest.raises(Conflict):
        services.remove(record.service.id)
    services.stop(record.service.id)
    record = await services.until(record.service.id, up=False, timeout=300)
    assert (record.status.state, record.status.reason) == ("stopped", None)
    with pytest.raises(Refused):
        services.address(record)
    services.start_again(record.service.id)
    assert (await ready(services, record)).status.state == "ready"
    services.stop(record.service.id)
    await services.until(record.service.id, up=False, timeout=300)
    services.remove(record.service.id)
    with pytest.raises(Missing):
        services.read(record.service.id)


async def test_one_that_nobody_uses_is_stopped(services: ServiceStore, tmp_path: Path) -> None:
    record = await ready(services, start(services, tmp_path, idle=0.5))
    record = await services.until(record.service.id, up=False, timeout=300)
    assert record.status.state == "stopped"
    assert record.status.reason == "Nobody used it for 0.5 s."


async def test_use_keeps_it_up(services: ServiceStore, tmp_path: Path) -> None:
    record = await ready(services, start(services, tmp_path, idle=3600))
    before = record.used
    services.use(record.service.id)
    assert services.read(record.service.id).used >= before
    with pytest.raises(ConvectError):
        start(services, tmp_path, idle=-1)


async def test_what_ends_by_itself_says_why(services: ServiceStore, tmp_path: Path) -> None:
    record = start(services, tmp_path, "fail")
    record = await services.until(record.service.id, up=False, timeout=300)
    assert record.status.state == "failed"
    assert record.status.reason == (
        "It ended by itself with code 3. The last line of its log: “no such model”."
    )


async def test_a_killed_host_is_noticed_and_leaves_nothing(
    services: ServiceStore, tmp_path: Path
) -> None:
    record = await ready(services, start(services, tmp_path))
    host = record.status.process["pid"]
    mark = f"CONVECT_SERVICE={(tmp_path / 'runs/services' / record.service.id).resolve()}"
    os.kill(host, signal.SIGKILL)
    record = await services.until(record.service.id, up=False, timeout=300)
    assert record.status.state == "lost"
    assert record.status.reason == "The process that kept it was killed."
    assert not [
        pid for pid in processes._own_processes() if processes._is_marked(pid, mark.encode())
    ]
    services.start_again(record.service.id)
    assert (await ready(services, record)).status.state == "ready"


async def test_one_whose_folder_was_deleted_ends(services: ServiceStore, tmp_path: Path) -> None:
    record = await ready(services, start(services, tmp_path))
    process = record.status.process
    assert process is not None
    shutil.rmtree(tmp_path / "runs" / "services" / record.service.id)
    await eventually(lambda: not processes.is_alive(process), "its host is gone")
    with pytest.raises(OSError, match="refused"):
        ask(record.status.address)


async def test_a_host_that_fails_leaves_nothing(
    services: ServiceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await ready(services, start(services, tmp_path))
    services.stop(record.service.id)
    await services.until(record.service.id, up=False, timeout=300)
    folder = tmp_path / "runs" / "services" / record.service.id
    lease = await eventually(lambda: Lease.take(folder), "its host has left")
    again = ServiceHost(folder, lease)
    child = subprocess.Popen(["sleep", "1000"])

    def fail(*_: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(again, "_look", fail)
    monkeypatch.setattr(again, "_start", lambda command: child)
    monkeypatch.setattr(processes, "end", lambda **_: False)  # would end all that the tests run
    again.keep(os.pipe()[0])
    assert child.wait(300) == -signal.SIGKILL
    assert again.status.reason == "It could not be watched: RuntimeError: unforeseen."


async def test_one_that_ends_while_it_is_read_is_not_called_killed(
    services: ServiceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await ready(services, start(services, tmp_path))
    owner_of = service_store.owner_of

    def owner_after_its_end(folder: Path) -> Any:
        os.kill(record.status.process["pid"], signal.SIGTERM)
        until(lambda: owner_of(folder) is None, "its host has left")
        return owner_of(folder)

    monkeypatch.setattr(service_store, "owner_of", owner_after_its_end)
    status = services.read(record.service.id).status
    assert (status.state, status.reason) == ("stopped", None)


async def test_one_is_started_again_while_its_host_is_still_leaving(
    services: ServiceStore, tmp_path: Path
) -> None:
    service_id = (await ready(services, start(services, tmp_path))).service.id
    services.stop(service_id)
    await services.until(service_id, up=False, timeout=300)
    leaving = tmp_path / "runs/services" / service_id
    lease = until(lambda: Lease.take(leaving), "its host has left")
    again = asyncio.create_task(asyncio.to_thread(services.start_again, service_id))
    await eventually(lambda: _hosts_of(leaving), "the next host is there")
    lease.end()
    await again
    assert (await services.until(service_id, up=True, timeout=300)).status.state == "ready"


async def test_one_that_is_stopped_at_once_was_not_killed(
    services: ServiceStore, tmp_path: Path
) -> None:
    record = start(services, tmp_path)
    services.stop(record.service.id)
    record = await services.until(record.service.id, up=False, timeout=300)
    assert (record.status.state, record.status.reason) == ("stopped", None)


def _hosts_of(folder: Path) -> list[Path]:
    """The processes that keep, or want to keep, the service of this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"jupyterlab_convect.services.host" in words and str(folder).encode() in words:
                found.append(process)
    return found


def test_one_that_runs_elsewhere_is_not_reached(services: ServiceStore, tmp_path: Path) -> None:
    elsewhere = {"host": "far", "boot": "b", "pid": 1, "start_time": 1}
    status = base.ServiceStatus("ready", None, "http://127.0.0.1:1", time.time(), None, elsewhere)
    with pytest.raises(Refused) as refused:
        services.address(ServiceRecord(base.Service("a", "app", "A", 1.0), status, 1.0))
    assert "far" in refused.value.sentence


@pytest.mark.parametrize(
    ("kind", "options", "code"),
    [
        ("none", {}, "no-such-kind"),
        ("app", {}, "bad-service"),
        ("app", {"command": "sleep {port}"}, "bad-service"),
        ("app", {"command": ["sleep", "60"]}, "bad-service"),
        ("app", {"command": ["no such program", "{port}"]}, "no-program"),
        ("app", {"command": ["sleep", "{port}"], "folder": ".."}, "bad-service"),
    ],
)
def test_what_cannot_be_started_is_refused(
    services: ServiceStore, tmp_path: Path, kind: str, options: Any, code: str
) -> None:
    with pytest.raises(ConvectError) as refused:
        services.start(kind, options, tmp_path)
    assert refused.value.code == code
    assert services.all() == []


def test_the_command_line_lists_and_stops(
    services: ServiceStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convect(["services", "app", "--json", "--name", "mine", "--", *COMMAND]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["state"] == "ready"
    assert convect(["services", "list"]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out
    assert convect(["services", "stop", told["id"]]) == 0
    assert convect(["services", "log", told["id"]]) == 0
    assert "listening" in capsys.readouterr().out
    assert convect(["services", "remove", told["id"]]) == 0
    assert convect(["services", "stop", told["id"]]) == 2
    assert "There is no service" in capsys.readouterr().err


def test_python_starts_and_stops(services: ServiceStore, tmp_path: Path) -> None:
    from jupyterlab_convect import client

    handle = client.start_service("app", command=COMMAND, root=tmp_path, idle="1h").wait()
    assert ask(handle.address)["uri"] == "/a"
    assert [each.id for each in client.services()] == [handle.id]
    handle.stop()
    assert handle.state == "stopped"
    handle.remove()
