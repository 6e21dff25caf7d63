"""Disks that are really full, or really read-only, and have room again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import until

from jupyterlab_convect.background import Health
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Plan
from jupyterlab_convect.runner.processes import identify
from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.index import WRITING, Index, Query
from jupyterlab_convect.runs.json_files import Changes, create_whole
from jupyterlab_convect.runs.lease import Lease
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runs.sweep_store import Sweep
from jupyterlab_convect.runs.sweeps import TENDING, Sweeps
from jupyterlab_convect.runtimes.local.machine import (
    MachineCapacity,
    Requirements,
    Reservations,
    Room,
)
from jupyterlab_convect.services.endpoints import Endpoint, EndpointStore
from jupyterlab_convect.services.store import ServiceStore


class Disk:
    """A small file system of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """Leave no byte and no file free."""
        with (self.folder / "filling").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)

    def make_room(self) -> None:
        (self.folder / "filling").unlink()

    def make_read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", self.folder], check=True)

    def make_writable(self) -> None:
        subprocess.run(["mount", "-o", "remount,rw", self.folder], check=True)


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("Only root can make a small file system.")
    yield Disk(folder)
    subprocess.run(["umount", "-l", folder], check=True)


class FailingDisk:
    """A disk that the system makes read-only when it finds an error on it, whatever is open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fail(self) -> None:
        find = ["findmnt", "-no", "SOURCE", str(self.folder)]
        device = Path(subprocess.check_output(find, text=True).strip()).name
        Path("/sys/fs/ext4", device, "trigger_fs_error").write_text("1")


@pytest.fixture
def failing_disk(tmp_path):
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    mount = ["mount", "-o", "loop,errors=remount-ro", str(image), str(folder)]
    commands = (["mkfs.ext4", "-q", str(image)], mount)
    if os.geteuid() != 0 or not all(map(_succeeds, commands)):
        pytest.skip("Only root can mount a disk from a file.")
    yield FailingDisk(folder)
    subprocess.run(["umount", "-l", folder], check=True)


def _succeeds(command: list[str]) -> bool:
    try:
        return not subprocess.run(command, capture_output=True).returncode
    except OSError:
        return False


@pytest.fixture(params=["full", "read-only"])
def trouble(request, disk):
    """Begins and ends what is wrong with the disk; what health says of it."""

    class Trouble:
        sentence = {
            "full": "No space is left on the disk.",
            "read-only": "The file system is read-only.",
        }[request.param]
        begin = disk.fill if request.param == "full" else disk.make_read_only
        end = disk.make_room if request.param == "full" else disk.make_writable

    return Trouble


@pytest.fixture
def store(disk, tmp_path):
    """The runs on the small disk, their index elsewhere."""
    (disk.folder / "runs").mkdir()
    store = Store(disk.folder / "runs", Index(tmp_path / "cache" / "index.sqlite"))
    yield store
    store.close()


@pytest.fixture
def sweeps(store, engine, step):
    def make(request: Request) -> Run:
        only = step("a", *request.parameters.get("do", ["value"]), parameters={})
        return Run(new_id(), "study", 0.0, "inprocess", Plan("study", (only,)), request)

    return Sweeps(store, engine, make)


@pytest.fixture
def request_(tmp_path):
    return Request(path="study.ipynb", root=str(tmp_path), runtime="inprocess")


@pytest.fixture
def often(monkeypatch):
    """Whatever is done again after a while is done with every beat."""
    monkeypatch.setattr("jupyterlab_convect.runs.engine.RENEW", 0.0)
    monkeypatch.setattr("jupyterlab_convect.runs.engine.HOLD_MOST", 1.0)


async def test_runs_and_leases_bear_it(
    engine, make_run, step, store, runtime, trouble, often, eventually
):
    run = make_run(step("a", "wait"), step("b", after=["a"]))
    await engine.submit(run)
    await eventually(lambda: runtime.started)
    trouble.begin()
    await eventually(
        lambda: [each.sentence for each in engine.health.troubles()] == [trouble.sentence]
    )
    with pytest.raises(ConvectError) as refused:
        await engine.submit(make_run(step("a")))
    assert refused.value.code == "unwritable"
    assert store.find().total == 1
    trouble.end()
    runtime.go_on.set()
    assert (await engine.wait(run.id, 60)).state == "succeeded"
    assert [key[1] for key in runtime.started] == ["a", "b"]
    await eventually(lambda: not engine.health.troubles())


async def test_a_sweep_that_is_being_filled_goes_on_where_it_was(
    engine, sweeps, request_, runtime, trouble, often, eventually
):
    """The disk has no room left after the first runs were made; each point still gets one run."""
    make, made = sweeps.make, []

    def make_until_full(request):
        made.append(request)
        if len(made) == 45:  # All are made before the first is started, then some at a time.
            trouble.begin()
        return make(request)

    sweeps.make = make_until_full
    sweep = await sweeps.create(request_, {"n": list(range(4)), "do": [["wait"]]}, concurrency=2)
    await eventually(lambda: len(runtime.started) == 2)
    await sweeps.add_points(sweep, {"n": list(range(4, 28)), "do": [["wait"]]})
    assert TENDING in [each.name for each in engine.health.troubles()]
    await sweeps.resume()
    assert TENDING in [each.name for each in engine.health.troubles()]
    trouble.end()
    runtime.go_on.set()
    view = await sweeps.wait(sweep, 60)
    assert (view["state"], view["counts"]) == ("succeeded", {"succeeded": 28})
    assert len(runtime.started) == 28
    assert runtime.most_held == 2
    await eventually(lambda: not engine.health.troubles())


async def test_a_sweep_that_cannot_be_taken_over_holds_up_no_other(
    engine, sweeps, request_, runtime, store, disk, tmp_path, eventually
):
    """Its folder is read-only, that of the next is not."""
    bad, good = [_abandoned(sweeps, request_) for _ in range(2)]
    folder = store.folder / "sweeps" / bad
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        await sweeps.resume()
        assert [(each.name, each.sentence) for each in engine.health.troubles()] == [
            (TENDING, "The file system is read-only.")
        ]
        assert (await sweeps.wait(good, 60))["state"] == "succeeded"
    finally:
        subprocess.run(["umount", folder], check=True)
    await sweeps.resume()
    assert (await sweeps.wait(bad, 60))["state"] == "succeeded"
    assert not engine.health.troubles()


def _abandoned(sweeps, request):
    """A sweep whose host was killed before it had given any run to a point."""
    sweep = Sweep(new_id(), "study", 0.0, request, {"n": [1, 2]})
    sweeps.folders.write(sweep, [{"n": 1}, {"n": 2}])
    return sweep.id


async def test_the_lease_of_a_sweep_is_given_back_as_soon_as_there_is_room(
    engine, sweeps, request_, runtime, store, trouble, often, eventually
):
    """Until then it is renewed, and what is asked of the sweep meanwhile is done."""
    sweep = _abandoned(sweeps, request_)
    folder = store.folder / "sweeps" / sweep
    limits = engine.limits
    with limits.held(f"sweeps/{sweep}") as mine:
        assert mine
        trouble.begin()
    assert list(limits.leases()) == [f"sweeps/{sweep}"]
    trouble.end()
    assert (await sweeps.wait(sweep, 60))["state"] == "succeeded"
    limits.close_empty()
    assert not limits.leases()
    assert Lease.take(folder) is not None


def test_what_cannot_be_written_whole_is_not_there(disk):
    disk.fill()
    with pytest.raises(OSError, match="No space"):
        create_whole(disk.folder / "lease-1.json", b"x" * 5000)
    with pytest.raises(OSError, match="No space"):
        Changes(disk.folder).add(b"x" * 5000)
    assert [path.name for path in disk.folder.iterdir()] == ["filling"]


async def test_reservations_are_not_forgotten(disk, trouble):
    reservations, me = Reservations(disk.folder), identify(os.getpid())
    capacity = MachineCapacity(1000, 1e12)
    reservations.take("first", Requirements(), capacity, me)
    size = (disk.folder / "room.json").stat().st_size
    while (disk.folder / "room.json").stat().st_size + size < 4096:  # As much as a block holds.
        reservations.take(f"more-{len(reservations.used())}", Requirements(), capacity, me)
    known = reservations.used()
    trouble.begin()
    with pytest.raises(OSError):  # noqa: PT011
        reservations.take("x" * 5000, Requirements(), capacity, me)
    with suppress(OSError):
        reservations.give_back("first")
    trouble.end()
    assert reservations.take("second", Requirements(), capacity, me) == Room()
    assert reservations.used().keys() == known.keys() - {"first"} | {"second"}
    assert json.loads((disk.folder / "room.json").read_text()).keys() == reservations.used().keys()


async def test_room_that_cannot_be_given_back_now_is_later(disk, tmp_path, make_run, step):
    reservations = Reservations(disk.folder)
    reservations.take("a", Requirements(), MachineCapacity(1, 1e9), identify(os.getpid()))
    disk.make_read_only()
    with pytest.raises(OSError, match="Read-only"):
        reservations.give_back("a")
    disk.make_writable()
    assert (
        reservations.take("b", Requirements(), MachineCapacity(1, 1e9), identify(os.getpid()))
        == Room()
    )


async def test_all_runs_are_found_while_the_index_cannot_be_written(
    disk, tmp_path, make_run, step, runtime, caplog
):
    health = Health()
    (disk.folder / "index").mkdir()
    path = disk.folder / "index" / "index.sqlite"
    (tmp_path / "runs").mkdir()
    store = Store(tmp_path / "runs", Index(path, health))
    engine = Engine(store, {"inprocess": runtime}, beat=0.2, health=health)

    async def finish():
        run = make_run(step("a"), labels={"note": "x" * 20_000})
        await engine.submit(run)
        return (await engine.wait(run.id, 60)).state

    assert {await finish() for _ in range(3)} == {"succeeded"}
    disk.fill()
    assert {await finish() for _ in range(3)} == {"succeeded"}
    assert store.find().total == 6
    assert [each.name for each in health.troubles()] == [WRITING]
    store.index._retry_at = 0.0  # It is tried again after a while,
    assert store.find().total == 6
    assert [each.name for each in health.troubles()] == [WRITING]
    disk.make_room()
    store.index._retry_at = 0.0  # and again.
    assert store.find().total == 6
    assert await finish() == "succeeded"
    assert store.find().total == 7
    assert not health.troubles()
    await engine.close()
    store.close()
    another = Index(path)
    assert another.find(Query()).total == 7
    another.close()
    assert "damaged" not in caplog.text


async def test_an_index_on_a_read_only_disk_is_kept_in_memory_until_it_can_be_written(
    disk, tmp_path, make_run, step, runtime
):
    health = Health()
    disk.make_read_only()
    (tmp_path / "runs").mkdir()
    store = Store(tmp_path / "runs", Index(disk.folder / "index.sqlite", health))
    engine = Engine(store, {"inprocess": runtime}, beat=0.2, health=health)
    for number in (1, 2):
        run = make_run(step("a"))
        await engine.submit(run)
        assert (await engine.wait(run.id, 60)).state == "succeeded"
        assert store.find().total == number
        assert [each.name for each in health.troubles()] == ([WRITING] if number == 1 else [])
        disk.make_writable()
        store.index._retry_at = 0.0
    await engine.close()
    store.close()


async def test_an_index_whose_disk_becomes_read_only_while_it_is_open_goes_on_in_memory(
    failing_disk, tmp_path, make_run, step, runtime, caplog
):
    health = Health()
    (tmp_path / "runs").mkdir()
    store = Store(tmp_path / "runs", Index(failing_disk.folder / "index.sqlite", health))
    engine = Engine(store, {"inprocess": runtime}, beat=0.2, health=health)

    async def finish():
        run = make_run(step("a"))
        await engine.submit(run)
        return (await engine.wait(run.id, 60)).state

    assert [await finish(), await finish()] == ["succeeded", "succeeded"]
    assert store.find().total == 2
    assert not health.troubles()
    failing_disk.fail()
    assert [await finish(), await finish()] == ["succeeded", "succeeded"]
    assert store.find().total == 4
    assert [each.name for each in health.troubles()] == [WRITING]
    assert "damaged" not in caplog.text
    await engine.close()
    store.close()


APP = """
import sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        Path("asked").touch()
        while not Path("answer").exists():
            time.sleep(0.01)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass

HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def test_a_service_is_kept_while_the_disk_takes_nothing(disk, tmp_path):
    store = Store(disk.folder / "runs", Index(tmp_path / "index.sqlite"))
    services = ServiceStore(store)
    command = {"command": [sys.executable, "-c", APP, "{port}"]}
    service_id = services.start("app", command, tmp_path).service.id
    until((tmp_path / "asked").exists, "somebody asks whether it is ready")
    disk.fill()
    with pytest.raises(ConvectError, match="cannot be written"):
        services.start("app", {"command": [*command["command"], "other"]}, tmp_path)
    with pytest.raises(ConvectError, match="cannot be written"):
        EndpointStore(store).create(Endpoint("e", "e", 1.0, Request(path="n.ipynb"), 1))
    (tmp_path / "answer").touch()
    (tmp_path / "asked").unlink()
    assert services.read(service_id).status.state == "starting"
    disk.make_room()
    until(lambda: services.read(service_id).status.state == "ready", "it is said to be ready")
    disk.fill()
    services.stop(service_id)
    until(lambda: not answers(services.read(service_id).status.address), "it has stopped")
    disk.make_room()
    until(lambda: not services.read(service_id).is_up, "it is said to have stopped")
    status = services.read(service_id).status
    assert (status.state, status.reason) == ("stopped", None)
    store.close()


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=60):
            return True
    except (OSError, ValueError):  # ValueError: it has no address any more.
        return False
