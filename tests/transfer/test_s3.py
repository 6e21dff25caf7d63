"""Files through an object store: a real server, and the program that runs in pods."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import s3

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runtimes.base import Attempt
from jupyterlab_convect.transfer import agent, s3_client
from jupyterlab_convect.transfer.agent import OBJECTS, FormObjects, Objects, StoreError
from jupyterlab_convect.transfer.check_results import Unusable, results_of
from jupyterlab_convect.transfer.pack import Package
from jupyterlab_convect.transfer.s3 import DAY, ObjectStore, S3Transfer, StoreReceiver

from .conftest import make_store

MIB = 1 << 20


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails for good fails at once."""
    monkeypatch.setattr(agent, "PAUSES", (0.01, 0.01))


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    folder = tmp_path / "runs" / "r" / "steps" / "train" / "1"
    folder.mkdir(parents=True)
    (folder.parents[2] / "run.json").touch()
    spec = {"folder": str(folder / "work"), "view": {"root": "/"}}
    (folder / "step.json").write_text(json.dumps(spec))
    step = Step("训练", "script", "train")
    run = "20261117-050000000-abcdef"
    root, runs = tmp_path, tmp_path / "runs"
    return Attempt(run, step, 1, folder, root=root, plan=Plan("p", (step,)), runs=runs)


@pytest.fixture
def package(tmp_path: Path) -> Package:
    source = tmp_path / "source"
    source.mkdir()
    contents = {
        "base/a.py": b"print(1)\n",
        "base/empty": b"",
        "base/数据.csv": os.urandom(300_000),
        "base/large.bin": os.urandom(3 * MIB + 17),
    }
    files = {}
    for number, (name, content) in enumerate(contents.items()):
        files[name] = source / str(number)
        files[name].write_bytes(content)
    return Package({"attempt/step.json": b"{}"}, files)


def told(transfer: S3Transfer, attempt: Attempt, package: Package) -> dict[str, Any]:
    addresses: dict[str, Any] = json.loads(transfer.send(attempt, package)[OBJECTS])
    return addresses


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def objects(server: s3.Server, store: ObjectStore, kind: str = "objects") -> dict[str, Path]:
    folder = server.folder / store.bucket / store.prefix / kind
    return {path.name: path for path in folder.rglob("*") if path.is_file()}


def expected(package: Package) -> dict[str, bytes]:
    files = {name: path.read_bytes() for name, path in package.files.items()}
    return {**files, **package.texts}


def test_files_arrive_as_they_were(
    store: ObjectStore, attempt: Attempt, package: Package, tmp_path: Path
) -> None:
    Objects(told(S3Transfer(store), attempt, package)).fetch(tmp_path / "pod")
    assert everything(tmp_path / "pod") == expected(package)


def test_the_pod_gets_signed_addresses_and_no_key(
    store: ObjectStore, attempt: Attempt, package: Package
) -> None:
    transfer = S3Transfer(store)
    assert s3.SECRET.encode() not in transfer.send(attempt, package)[OBJECTS]
    assert s3.SECRET not in repr(transfer.bucket.credentials())


def test_objects_are_named_by_their_content_and_sent_once(
    s3_server: s3.Server, store: ObjectStore, attempt: Attempt, package: Package
) -> None:
    first = told(S3Transfer(store), attempt, package)
    before = {name: path.stat().st_ino for name, path in objects(s3_server, store).items()}
    assert set(before) == {part["digest"] for part in first["parts"]}
    for name, path in objects(s3_server, store).items():
        assert s3_client.hashlib.sha256(path.read_bytes()).hexdigest() == name
    told(S3Transfer(store), attempt, package)
    assert {name: p.stat().st_ino for name, p in objects(s3_server, store).items()} == before


def test_a_file_that_grew_sends_only_its_last_part(
    s3_server: s3.Server, store: ObjectStore, attempt: Attempt, package: Package
) -> None:
    told(S3Transfer(store), attempt, package)
    before = set(objects(s3_server, store))
    with package.files["base/large.bin"].open("ab") as file:
        file.write(b"more")
    told(S3Transfer(store), attempt, package)
    assert len(set(objects(s3_server, store)) - before) == 1


class Cut:
    """Between a client and the server: connections break after so many bytes, as often as told."""

    def __init__(self, port: int, after: int, times: int) -> None:
        self.left, self.after, self.passed = times, after, 0
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self._port))
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        count = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                count += len(data)
                self.passed += len(data)
                if count > self.after and self.left > 0:
                    self.left -= 1
                    break
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def cut(s3_server: s3.Server) -> Iterator[Any]:
    made = []

    def make(after: int, times: int) -> Cut:
        made.append(Cut(int(s3_server.endpoint.rpartition(":")[2]), after, times))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_connection_that_breaks_is_tried_again(
    store: ObjectStore, attempt: Attempt, package: Package, tmp_path: Path, cut: Any
) -> None:
    broken = cut(500_000, 2)
    transfer = S3Transfer(make_store_like(store, broken.endpoint))
    Objects(told(transfer, attempt, package)).fetch(tmp_path / "pod")
    assert broken.left == 0
    assert everything(tmp_path / "pod") == expected(package)


def test_a_connection_that_nobody_answers_is_given_up_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not only after the time that an answer may take."""
    monkeypatch.setattr(agent, "CONNECT", 0.2)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = []
        for _ in range(3):  # The queue is full now: nobody answers the next one.
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(full.getsockname())
        with pytest.raises(TimeoutError):
            agent.send("GET", f"http://127.0.0.1:{full.getsockname()[1]}/", timeout=600.0)
        for each in waiting:
            each.close()


def test_what_was_sent_before_an_interruption_is_not_sent_again(
    s3_server: s3.Server, store: ObjectStore, attempt: Attempt, package: Package, cut: Any
) -> None:
    broken = cut(MIB + 600_000, 1_000)
    broken.left = 0
    transfer = S3Transfer(make_store_like(store, broken.endpoint))
    real, sent = transfer.bucket.put, []

    def put(key: str, *rest: Any) -> None:
        if len(sent) == 2:
            broken.left, broken.after = 1_000, 100_000
        sent.append(key)
        real(key, *rest)

    object.__setattr__(transfer.bucket, "put", put)
    with pytest.raises(ConvectError, match="cannot be reached"):
        told(transfer, attempt, package)
    there = set(objects(s3_server, store))
    assert len(there) == 2
    broken.left = 0
    sent[:] = [""] * 3
    told(transfer, attempt, package)
    assert there.isdisjoint(key.rpartition("/")[2] for key in sent)
    assert len(objects(s3_server, store)) == 5


def make_store_like(store: ObjectStore, endpoint: str, **more: Any) -> ObjectStore:
    names = ("bucket", "prefix", "part_size", "region")
    options = {**{name: getattr(store, name) for name in names}, "endpoint": endpoint, **more}
    return ObjectStore(**options)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The folder of an attempt in a pod, after the step has ended."""
    folder = tmp_path / "pod" / "attempt"
    large = os.urandom(2 * MIB + 5)
    for name, content in {
        "log.txt": b"one\ntwo\n" * 200_000,
        "events.ndjson": b"{}\n",
        "executed.ipynb": b"{}",
        "files/model.bin": large,
        "files/空/x": b"",
        "made/other.txt": b"other",
        "made.json": b'{"files":[]}',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    facts = [{"path": "model.bin", "size": len(large), "digest": "…"}]
    (folder / "outputs.json").write_text(json.dumps({"state": "succeeded", "files": facts}))
    return folder


def test_results_come_back_whole_and_the_outcome_last(
    s3_server: s3.Server, store: ObjectStore, attempt: Attempt, package: Package, results: Path
) -> None:
    transfer = S3Transfer(store)
    agent.store_results(results, Objects(told(transfer, attempt, package)))
    (attempt.folder / "log.txt").write_bytes(b"one\n")  # As far as it came through the log.
    receiver = transfer.fetch(attempt, attempt.folder)
    receiver.finish()
    assert receiver.ended
    (attempt.folder / "step.json").unlink()
    assert {**everything(attempt.folder), "outputs.json": b""} == {
        **everything(results),
        "outputs.json": b"",
    }
    outcome = json.loads((attempt.folder / "outputs.json").read_text())
    assert outcome["state"] == "succeeded"


def test_results_are_forgotten_and_large_ones_become_objects(
    s3_server: s3.Server, store: ObjectStore, attempt: Attempt, package: Package, results: Path
) -> None:
    """The next step that takes such a file finds it in the store."""
    transfer = S3Transfer(store)
    agent.store_results(results, Objects(told(transfer, attempt, package)))
    transfer.fetch(attempt, attempt.folder).finish()
    before = objects(s3_server, store)
    taken = Package({}, {"base/model.bin": attempt.folder / "files" / "model.bin"})
    told(transfer, attempt, taken)
    assert set(objects(s3_server, store)) == set(before)
    assert objects(s3_server, store, "attempts")
    transfer.forget(attempt)
    assert objects(s3_server, store, "attempts") == {}
    assert set(objects(s3_server, store)) == set(before)


def test_an_interrupted_fetch_goes_on_where_it_was(
    store: ObjectStore,
    attempt: Attempt,
    package: Package,
    results: Path,
    cut: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jupyterlab_convect.transfer.agent.PAUSES", ())
    agent.store_results(results, Objects(told(S3Transfer(store), attempt, package)))
    broken = cut(1_500_000, 1_000)
    broken.left = 0
    transfer = S3Transfer(make_store_like(store, broken.endpoint))
    receiver, fetched = transfer.fetch(attempt, attempt.folder), []
    real = receiver._fetch

    def fetch(part: Any) -> Any:
        if len(fetched) == 2:
            broken.left, broken.after = 1_000, 1_000
        fetched.append(part.slot)
        return real(part)

    monkeypatch.setattr(receiver, "_fetch", fetch)
    with pytest.raises(ConvectError, match="cannot be reached"):
        receiver.finish()
    assert not (attempt.folder / "outputs.json").exists()
    broken.left = 0
    again = transfer.fetch(attempt, attempt.folder)
    asked: list[str] = []
    get = transfer.bucket.get
    object.__setattr__(transfer.bucket, "get", lambda key: asked.append(key) or get(key))
    again.finish()
    assert again.ended
    slots = {int(key.rpartition("/")[2]) for key in asked}
    assert slots.isdisjoint(fetched[:2])
    assert (attempt.folder / "files" / "model.bin").read_bytes() == (
        results / "files" / "model.bin"
    ).read_bytes()


def test_results_that_never_came_are_missed(
    store: ObjectStore, attempt: Attempt, package: Package
) -> None:
    transfer = S3Transfer(store)
    told(transfer, attempt, package)
    receiver = transfer.fetch(attempt, attempt.folder)
    receiver.finish()
    assert not receiver.ended
    assert not (attempt.folder / "outputs.json").exists()


def test_too_many_results_are_said_and_the_rest_comes(
    store: ObjectStore, attempt: Attempt, package: Package, results: Path
) -> None:
    transfer = S3Transfer(store)
    addresses = told(transfer, attempt, package)
    addresses["slots"] = addresses["slots"][:5]
    agent.store_results(results, Objects(addresses))
    transfer.fetch(attempt, attempt.folder).finish()
    outcome = json.loads((attempt.folder / "outputs.json").read_text())
    assert outcome["state"] == "failed"
    assert "too large to be copied back without a shared volume: model.bin" in outcome["reason"]
    assert (attempt.folder / "executed.ipynb").exists()


def test_what_happens_is_told_through_the_log_but_no_results(
    store: ObjectStore, attempt: Attempt
) -> None:
    receiver = S3Transfer(store).fetch(attempt, attempt.folder)
    frame = {"at": 0, "generation": 1, "data": agent._packed(b"{}")}
    digest = s3_client.hashlib.sha256(b"{}").hexdigest()
    for name in ("log.txt", "executed.ipynb", "outputs.json", "files/x"):
        line = {**frame, "file": name, **({} if name == "log.txt" else {"digest": digest})}
        receiver.take(f"{agent.MARK}{json.dumps(line)}\n".encode())
    receiver.take(f'{agent.MARK}{{"end": 0}}\n'.encode())
    assert (receiver.told_all, receiver.ended) == (True, False)
    assert set(everything(attempt.folder)) == {"step.json", "log.txt", "executed.ipynb"}


@pytest.mark.parametrize("damage", ["changed", "shorter", "longer"])
def test_an_object_that_is_damaged_is_noticed_and_sent_again(
    s3_server: s3.Server,
    store: ObjectStore,
    attempt: Attempt,
    package: Package,
    tmp_path: Path,
    damage: str,
) -> None:
    transfer = S3Transfer(store)
    addresses = told(transfer, attempt, package)
    path = max(objects(s3_server, store).values(), key=lambda path: path.stat().st_size)
    content = path.read_bytes()
    path.write_bytes(
        {"changed": b"x" + content[1:], "shorter": content[:-1]}.get(damage, content * 2)
    )
    with pytest.raises(SystemExit, match="The pod cannot use the object store") as said:
        Objects(addresses).fetch(tmp_path / "pod")
    receiver = transfer.fetch(attempt, attempt.folder)
    receiver.take(f"{said.value}\n".encode())
    receiver.finish()
    Objects(told(transfer, attempt, package)).fetch(tmp_path / "pod")
    assert everything(tmp_path / "pod") == expected(package)


def test_a_form_sends_below_its_prefix_up_to_a_size_and_for_a_week(
    s3_server: s3.Server, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has it can leave results of one run, and do nothing else."""

    def leave(form: dict[str, Any], size: int = 1) -> None:
        FormObjects(form)._send(1, lambda: [b"x" * size])

    form = S3Transfer(store).form("run-1")
    leave(form, store.part_size)
    there = objects(s3_server, store, "attempts")
    assert [path.parts[-3] for path in there.values()] == ["run-1"]
    monkeypatch.setattr(s3_client, "LONGEST", -1)
    for wrong, size in (
        (form, store.part_size + 1),
        ({**form, "results": form["results"].replace("run-1", "run-2")}, 1),
        (S3Transfer(store).form("run-1"), 1),
    ):
        with pytest.raises(StoreError):
            leave(wrong, size)
    assert objects(s3_server, store, "attempts") == there


def test_an_address_that_has_expired_is_refused(
    store: ObjectStore,
    attempt: Attempt,
    package: Package,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transfer = S3Transfer(store)
    told(transfer, attempt, package)

    class Earlier(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) - timedelta(days=8)

    parts = [(part["digest"], part["spans"]) for part in told(transfer, attempt, package)["parts"]]
    monkeypatch.setattr(s3_client, "datetime", Earlier)
    addresses = transfer._addresses(attempt, parts)
    with pytest.raises(SystemExit, match="expired"):
        Objects(json.loads(json.dumps(addresses))).fetch(tmp_path / "pod")


def problem(store: ObjectStore) -> str:
    (found,) = S3Transfer(store).check()
    assert found.severity == "error"
    return found.message


def test_a_store_that_works_has_no_problem(s3_server: s3.Server, store: ObjectStore) -> None:
    assert S3Transfer(store).check() == []
    assert objects(s3_server, store, "") == {}


def test_the_check_names_what_is_wrong(
    s3_server: s3.Server, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert problem(make_store(s3_server, "nowhere")) == "The object store has no bucket nowhere."
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert problem(make_store_like(store, f"http://127.0.0.1:{port}")) == (
        f"The object store at 127.0.0.1:{port} cannot be reached: Connection refused."
    )
    unknown = problem(make_store_like(store, "http://nowhere.invalid"))
    assert unknown.startswith("The object store at nowhere.invalid cannot be reached: ")
    assert problem(make_store_like(store, s3_server.endpoint, region="eu-west-9")).startswith(
        f"The bucket {store.bucket} is not in region eu-west-9: "
    )
    refused = "The object store does not accept the credentials: "
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert problem(store).startswith(refused)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    assert problem(store).startswith(refused)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert problem(store) == "There are no credentials for the object store."


def test_clocks_that_differ_are_named(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    said = "The clocks of this machine and of the object store differ by "
    assert problem(store).startswith(said)


def test_credentials_may_be_a_secret_by_name(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("CONVECT_SECRET_LAKE_ACCESS_KEY", s3.ACCESS)
    monkeypatch.setenv("CONVECT_SECRET_LAKE_SECRET_KEY", s3.SECRET)
    store.credentials = "lake"
    assert S3Transfer(store).check() == []


def test_a_certificate_is_checked(
    tmp_path: Path, store: ObjectStore, attempt: Attempt, package: Package
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", key, "-out", certificate, "-subj", "/CN=s3"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    more = ("--cert", str(certificate), "--key", str(key))
    with s3.serving(tmp_path / "tls", "127.0.0.1", *more) as server:
        server.make_bucket("trusted")
        assert "is not trusted" in problem(make_store(server, "trusted"))
        trusting = make_store(server, "trusted", ca_file=str(certificate))
        assert S3Transfer(trusting).check() == []
        addresses = told(S3Transfer(trusting), attempt, package)
        Objects(addresses).fetch(tmp_path / "pod")
        assert everything(tmp_path / "pod") == expected(package)
        with pytest.raises(SystemExit, match="certificate verify failed"):
            Objects({**addresses, "ca": None}).fetch(tmp_path / "pod")


def test_what_nobody_asks_for_is_removed_and_what_is_used_stays(
    s3_server: s3.Server, store: ObjectStore, attempt: Attempt, package: Package
) -> None:
    transfer = S3Transfer(store)
    told(transfer, attempt, package)
    lone = Package({"attempt/step.json": b'{"alone": true}'}, {})
    (forgotten,) = (part["digest"] for part in told(transfer, attempt, lone)["parts"])
    for path in objects(s3_server, store).values():
        os.utime(path, (time.time() - 10 * DAY,) * 2)
    told(transfer, attempt, package)
    os.utime(objects(s3_server, store)[forgotten], (time.time() - 20 * DAY,) * 2)
    assert transfer.clean() == 1
    assert forgotten not in objects(s3_server, store)
    for path in objects(s3_server, store).values():
        assert time.time() - path.stat().st_mtime < DAY
    assert transfer.clean() == 0


LIST: dict[str, Any] = {
    "parts": [
        {"slot": 1, "digest": "0" * 64, "spans": [["files/x", 0, 5], ["made/y", 0, 0]]},
        {"slot": 2, "digest": "1" * 64, "spans": [["files/x", 5, 5]]},
    ]
}


def changed(**more: Any) -> dict[str, Any]:
    return {"parts": [{**LIST["parts"][0], **more}]}


def test_a_list_of_results_is_read() -> None:
    found = results_of(json.dumps(LIST).encode(), 10, 100)
    assert found.files == {"files/x": 10, "made/y": 0}
    assert [part.slot for part in found.parts] == [1, 2]


@pytest.mark.parametrize(
    "listed",
    [
        [],
        {},
        {"parts": 7},
        {"parts": [7]},
        {"parts": LIST["parts"] * 2},
        {"parts": LIST["parts"][1:]},
        {**LIST, "missing": ["../x"]},
        changed(slot=0),
        changed(slot=10),
        changed(slot="1"),
        changed(digest="../" * 22),
        changed(digest=None),
        changed(spans=[["../x", 0, 1]]),
        changed(spans=[["/etc/x", 0, 1]]),
        changed(spans=[["files/x", 0, 101]]),
        changed(spans=[["files/x", 1, 5]]),
        changed(spans=[["files/x", 0, -5]]),
        changed(spans=[["files/x", 0, 5], ["files/x", 0, 5]]),
        changed(spans=[["files/x", 0, 60], ["files/y", 0, 60]]),
        changed(spans=[["files/x", 0]]),
        changed(spans="files"),
        {"parts": [{"slot": n, "digest": "0" * 64, "spans": []} for n in range(1, 40)]},
    ],
)
def test_a_list_that_no_agent_makes_is_refused(listed: Any) -> None:
    with pytest.raises(Unusable):
        results_of(json.dumps(listed).encode(), 10, 100)


def test_no_bytes_get_past_the_check_with_another_error() -> None:
    chance = random.Random(5)
    good = json.dumps(LIST).encode()
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with contextlib.suppress(Unusable):
            results_of(bytes(data), 10, 100)


def test_a_list_of_a_stranger_writes_nothing_outside(
    store: ObjectStore, attempt: Attempt, tmp_path: Path
) -> None:
    transfer = S3Transfer(store)
    receiver = transfer.fetch(attempt, attempt.folder)
    content = json.dumps(changed(spans=[["run.json", 0, 5]])).encode()
    digest = s3_client.hashlib.sha256(content).hexdigest()
    transfer.bucket.put(receiver._key(0), lambda: [content], len(content), digest)
    receiver.finish()
    assert isinstance(receiver, StoreReceiver)
    outcome = json.loads((attempt.folder / "outputs.json").read_text())
    assert outcome["state"] == "failed"
    assert outcome["reason"].startswith("What came back from the pod cannot be used: ")
    assert set(everything(attempt.folder)) == {"step.json", "outputs.json"}
