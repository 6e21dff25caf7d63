"""Whatever goes wrong is told, tried again, and spoils nothing else."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, eventually, until

from jupyterlab_convect.background import Health
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runs.attempts import INTERRUPTED, judge
from jupyterlab_convect.runtimes.base import Attempt
from jupyterlab_convect.runtimes.kubernetes import api as api_module
from jupyterlab_convect.runtimes.kubernetes import observer
from jupyterlab_convect.runtimes.kubernetes.api import Api
from jupyterlab_convect.runtimes.kubernetes.jobs import job_of, labels_of
from jupyterlab_convect.runtimes.kubernetes.log_follower import LogFollower, PlainLog
from jupyterlab_convect.runtimes.kubernetes.reflector import Reflector
from jupyterlab_convect.transfer.shared_volume import write_stop


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried again at once."""
    monkeypatch.setattr("jupyterlab_convect.background.FIRST", 0.01)
    monkeypatch.setattr(api_module, "FIRST_PAUSE", 0.01)


class Waits(threading.Event):
    """Remembers for how long it should have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return super().wait(0.001)


@pytest.fixture
def reflect(api: Api) -> Iterator[Callable[..., Reflector]]:
    made = []

    def make(health: Health | None = None, **how: Any) -> Reflector:
        made.append(Reflector(api, "pods", lambda: None, health or Health(), **how))
        return made[-1]

    yield make
    for reflector in made:
        reflector.close()


def pod(name: str = "p", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "8", "labels": {}}, **more}


def change(kind: str, item: Any) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def test_credentials_that_cannot_be_renewed(
    server: Any, api: Api, reflect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = threading.Event()

    def settings() -> dict[str, Any]:
        if expired.is_set():
            raise KeyError("token_endpoint")
        return {}

    monkeypatch.setattr(api.client.configuration, "auth_settings", settings)
    health = Health()
    reflector = reflect(health)
    reflector.start()
    assert reflector.synced.wait(PATIENCE)
    expired.set()
    since = time.time()
    why, at = until(lambda: reflector.trouble)
    assert "credentials cannot be renewed (KeyError: 'token_endpoint')" in why
    assert at >= since - 1
    (trouble,) = until(health.troubles)
    assert trouble.name == "Watching pods in namespace default"
    expired.clear()
    server.answers["GET pods"] = lambda _: (200, {**EMPTY, "items": [pod()]})
    until(lambda: "p" in reflector.now()[0])
    assert reflector.trouble is None
    until(lambda: not health.troubles())


EMPTY = {"items": [], "metadata": {"resourceVersion": "7"}}


@pytest.mark.parametrize(
    "line",
    [
        b"<html>\n",
        b"[" * 100_000 + b"\n",
        b"[]\n",
        b'{"type": "ADDED"}\n',
        change("ADDED", {"metadata": {}}),
        change("ERROR", {"code": 500, "message": "no"}),
    ],
)
def test_answers_that_make_no_sense(server: Any, reflect: Any, line: bytes) -> None:
    lines = [line]
    server.watch = lambda _: iter([lines.pop()] if lines else [change("ADDED", pod())])
    reflector = reflect()
    reflector.start()
    until(lambda: "p" in reflector.now()[0])


def test_a_list_that_is_not_json(server: Any, reflect: Any) -> None:
    bad = [(200, b"<html>"), (200, {"items": [1]}), (200, [])]
    server.answers["GET pods"] = lambda _: bad.pop() if bad else (200, {**EMPTY, "items": [pod()]})
    reflector = reflect()
    reflector.start()
    until(lambda: "p" in reflector.now()[0])


@pytest.mark.parametrize("kind", ["ends", "forgotten"])
def test_a_watch_that_ends_at_once_is_begun_ever_more_seldom(
    server: Any, reflect: Any, kind: str
) -> None:
    gone = change("ERROR", {"code": 410, "message": "too old"})
    server.watch = lambda _: iter([gone] if kind == "forgotten" else [])
    reflector = reflect()
    waits = reflector._closing = Waits()
    reflector.start()
    server.wait_for(lambda: server.count("WATCH pods") >= 8)
    assert waits.seconds[:5] == [1, 2, 4, 8, 16]
    assert reflector.trouble is None


def test_what_we_are_not_allowed_to_see_is_no_trouble_when_nothing_depends_on_it(
    server: Any, reflect: Any
) -> None:
    server.answers["GET pods"] = lambda _: (403, {"message": "no", "reason": "Forbidden"})
    health = Health()
    reflector = reflect(health, optional=True)
    waits = reflector._closing = Waits()
    reflector.start()
    until(lambda: waits.seconds)
    assert (waits.seconds[0], health.troubles()) == (300, [])


def test_a_stream_that_was_left_early_does_not_spoil_the_next_request(
    server: Any, api: Api
) -> None:
    silent = threading.Event()

    def speak() -> Iterator[bytes]:
        yield b"hello"
        silent.wait(30)
        yield b"too late"

    server.answers["GET log"] = lambda _: (200, speak())
    with api.stream("/log", 60) as response:
        assert response.read1(100) == b"hello"
    assert api.get("/x") == EMPTY
    silent.set()


def test_a_log_that_cannot_be_kept_is_read_again(server: Any, api: Api, tmp_path: Path) -> None:
    """A full disk, whatever the container says, a container that says nothing."""
    server.answers["GET log"] = lambda _: (200, b"one\ntwo\n")
    full = [OSError(28, "No space left on device"), ValueError("odd")]

    class Log(PlainLog):
        def take(self, data: bytes) -> None:
            if full:
                raise full.pop()
            super().take(data)

    health = Health()
    path = tmp_path / "log.txt"
    follower = LogFollower(api, "p", "step", lambda: Log(path), lambda: True, lambda: None, health)
    follower.start()
    until(lambda: follower.done)
    assert path.read_text() == "one\ntwo\n"
    assert (follower.trouble, health.troubles()) == (None, [])


def attempt(folder: Path, name: str = "a", handle: Any = None, **how: Any) -> Attempt:
    folder = folder / name / "steps" / name / "1"
    folder.mkdir(parents=True)
    spec = {"source": None, "folder": str(folder), "inputs": [], "parameters": {}, "env": {},
            "command": [], "outputs": [], **how.pop("spec", {})}  # fmt: skip
    (folder / "step.json").write_text(json.dumps(spec))
    step = Step(name, how.pop("kind", "command"), name, **how)
    about = {"root": folder, "plan": Plan("p", (step,)), "runs": folder.parents[3]}
    return Attempt(name, step, 1, folder, handle, **about)


async def polled(runtime: Any, one: Attempt, likes: Callable[[Any], Any]) -> Any:
    """The status of an attempt, once it is as it should be."""

    async def look() -> Any:
        (status,) = await runtime.poll([one])
        return status if likes(status) else None

    return await eventually(look, "the status came")


def running(attempt: Attempt) -> dict[str, Any]:
    labels = {**labels_of(attempt.run, attempt.step.id, 1),
              "batch.kubernetes.io/job-name": job_of(attempt)}  # fmt: skip
    state = {"name": "step", "state": {"running": {}}}
    found = pod(f"{attempt.run}-pod", spec={"nodeName": "n", "containers": [{"name": "step"}]},
                status={"phase": "Running", "containerStatuses": [state]})  # fmt: skip
    found["metadata"]["labels"] = labels
    return found


async def test_a_cluster_that_cannot_be_reached_has_a_status_for_every_attempt(
    kubeconfig: Path, runtime: Any, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyterlab_convect.runtimes.kubernetes.runtime.SYNC", 0.01)
    server.answers["GET jobs"] = server.answers["GET pods"] = lambda _: (503, {"message": "busy"})
    one = attempt(tmp_path, "a", {"way": "shared"})
    other = attempt(tmp_path, "b", {"way": "shared"})
    (other.folder / observer.RECORD).write_text("{}")
    statuses = await runtime.poll([one, other])
    assert [(status.key, status.state) for status in statuses] == [
        (one.key, "starting"),
        (other.key, "running"),
    ]
    assert all("unreachable since" in status.reason for status in statuses)
    server.answers.clear()
    server.answers["GET pods"] = lambda _: (200, {**EMPTY, "items": [running(one)]})

    async def heard() -> bool:
        status = (await runtime.poll([one]))[0]
        return (status.state, status.reason) == ("running", None)

    await eventually(heard, "it heard of the pod")


async def test_old_states_are_not_shown_as_current(
    runtime: Any, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "SILENT", 0.0)
    one = attempt(tmp_path, "a", {"way": "shared"})
    server.answers["GET pods"] = lambda _: (200, {**EMPTY, "items": [running(one)]})
    assert (await runtime.poll([one]))[0].state == "running"
    for kind in ("jobs", "pods"):
        server.answers[f"GET {kind}"] = lambda _: (500, {"message": "no database"})
    server.watch = lambda _: iter([b"<html>\n"])
    status = await polled(runtime, one, lambda status: status.reason)
    assert status.state == "running"
    assert "this is the last known state" in status.reason
    assert status.detail
    assert {trouble.name for trouble in runtime.health.troubles()} & {
        "Watching jobs in namespace default", "Watching pods in namespace default"
    }  # fmt: skip


async def test_one_bad_attempt_spoils_only_itself(
    runtime: Any, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = attempt(tmp_path, "good", {"way": "shared"})
    bad = attempt(tmp_path, "bad", {"way": "shared"})
    broken = running(bad)
    broken["status"]["containerStatuses"] = 7
    server.answers["GET pods"] = lambda _: (200, {**EMPTY, "items": [broken, running(good)]})
    first, second = await runtime.poll([bad, good])
    assert (first.key, second.key) == (bad.key, good.key)
    assert (second.state, second.reason) == ("running", None)
    assert first.reason.startswith("Its state cannot be read: TypeError")
    assert [t.name for t in runtime.health.troubles()] == ["Watching step bad of run bad"]
    runtime.release(bad)
    assert runtime.health.troubles() == []


async def test_why_a_step_was_interrupted_is_told_and_its_result_stays_as_it_was_left(
    runtime: Any, tmp_path: Path
) -> None:
    one = attempt(tmp_path, "a", {"way": "shared"})
    left = json.dumps({"state": "failed", "reason": INTERRUPTED})
    (one.folder / "outputs.json").write_text(left)

    async def judged() -> tuple[str, str | None]:
        verdict = judge((await runtime.poll([one]))[0], one.folder, None, None)
        return verdict.state, verdict.reason

    assert await judged() == ("failed", INTERRUPTED)
    write_stop(one.folder, "cancelled", "Stopped.")
    assert await judged() == ("cancelled", "Stopped.")
    assert (one.folder / "outputs.json").read_text() == left


async def test_nodes_that_make_no_sense_are_told_as_health(
    runtime: Any, server: Any, tmp_path: Path
) -> None:
    one = attempt(tmp_path, "a", {"way": "shared"})
    pending = running(one)
    pending["spec"], pending["status"] = {"containers": []}, {"phase": "Pending"}
    server.answers["GET pods"] = lambda _: (200, {**EMPTY, "items": [pending]})
    server.answers["GET nodes"] = lambda _: (200, {**EMPTY, "items": [7]})

    async def told() -> bool:
        await runtime.poll([one])
        return "Reading the capacity of the cluster" in {
            trouble.name for trouble in runtime.health.troubles()
        }

    await eventually(told, "it told of the nodes")


COMPONENT = {"name": "c", "digest": "d", "outputs": [], "inputs": []}


@pytest.mark.parametrize("secret", [False, True])
async def test_a_component_whose_pod_vanished_with_its_results(
    runtime: Any, server: Any, tmp_path: Path, secret: bool
) -> None:
    from jupyterlab_convect.pipeline.plan import Secret

    secrets = (Secret("TOKEN", "s3", "key"),) if secret else ()
    spec = {"component": {"definition": COMPONENT, "arguments": {}, "root": "/"}}
    gone = attempt(
        tmp_path,
        "gone",
        {"way": "shared" if secret else "bundle"},
        kind="component",
        secrets=secrets,
        spec=spec,
    )
    ended = running(gone)
    end = {"exitCode": 0, "reason": "Completed"}
    ended["status"] = {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "step", "state": {"terminated": end}}],
    }
    changes = [change("DELETED", ended)]

    def watch(kind: str) -> Iterator[bytes]:
        if kind == "pods" and changes:
            yield changes.pop()

    server.answers["GET pods"] = lambda _: (200, {**EMPTY, "items": [ended]})
    server.watch = watch
    server.answers["GET log"] = lambda _: (503 if changes else 404, {"message": "gone"})
    status = await polled(runtime, gone, lambda status: status.state == "failed")
    expected = "secrets could not be hidden" if secret else "before its results were copied back"
    assert expected in status.reason
    assert json.loads((gone.folder / "outputs.json").read_bytes())["state"] == "failed"


def made(job: Any) -> Any:
    return 201, {**job, "metadata": {**job["metadata"], "uid": "u"}}


async def test_a_job_whose_secret_is_refused_is_deleted_again(
    runtime: Any, server: Any, tmp_path: Path
) -> None:
    one = attempt(tmp_path)
    refusal = {"reason": "Forbidden", "message": "exceeded quota: team"}
    server.answers["POST jobs"] = made
    server.answers["POST secrets"] = lambda _: (403, refusal)
    with pytest.raises(ConvectError, match="quota"):
        _ = [handle async for handle in runtime.start(one)]
    assert server.count(f"DELETE {job_of(one)}") == 1


async def test_starting_is_patient_and_holds_up_nothing_else(
    runtime: Any, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when more steps wait to be started than there are threads."""
    monkeypatch.setattr(api_module, "LONGEST_PAUSE", 0.02)
    busy = threading.Event()
    busy.set()

    def answer(body: Any) -> Any:
        return (503, {"message": "busy"}) if busy.is_set() else made(body)

    server.answers["POST jobs"] = answer
    server.answers["POST secrets"] = lambda _: (201, {})

    async def start(name: str) -> Any:
        return [handle async for handle in runtime.start(attempt(tmp_path, name))]

    starting = [asyncio.create_task(start(f"s{n}")) for n in range(40)]
    await asyncio.to_thread(server.wait_for, lambda: server.count("POST jobs") >= 80)
    one = attempt(tmp_path, "running", {"way": "shared"})
    assert len(await runtime.poll([one])) == 1
    await runtime.stop(one)
    busy.clear()
    assert [len(handles) for handles in await asyncio.gather(*starting)] == [1] * 40


async def test_a_look_at_the_room_that_fails_once_is_tried_again(
    runtime: Any, server: Any, tmp_path: Path
) -> None:
    from jupyterlab_convect.pipeline.plan import Gpu, Resources

    troubled = [(503, {"message": "busy"})]
    server.answers["GET nodes"] = lambda _: troubled.pop() if troubled else (200, EMPTY)
    server.answers["GET apis"] = lambda _: (200, {"groups": []})
    server.answers["POST jobs"] = made
    server.answers["POST secrets"] = lambda _: (201, {})
    one = attempt(tmp_path, resources=Resources(gpu=Gpu(1)))
    (handle,) = [handle async for handle in runtime.start(one)]
    assert (handle["job"], troubled) == (job_of(one), [])


async def test_a_stop_ends_the_patience_of_a_start(
    runtime: Any, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_module, "FIRST_PAUSE", 1000.0)
    monkeypatch.setattr(api_module, "LONGEST_PAUSE", 1000.0)
    server.answers["POST jobs"] = lambda _: (503, {"message": "busy"})
    one = attempt(tmp_path)

    async def start() -> None:
        async for _ in runtime.start(one):
            pass

    task = asyncio.create_task(start())
    await asyncio.to_thread(server.wait_for, lambda: server.count("POST jobs") >= 1)
    await runtime.stop(one)
    with pytest.raises(ConvectError):
        await asyncio.wait_for(task, PATIENCE)
    assert (one.folder / "stop.json").exists()


def ended_pod(of: Attempt) -> dict[str, Any]:
    found = running(of)
    end = {"exitCode": 0, "reason": "Completed"}
    found["status"] = {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "step", "state": {"terminated": end}}],
    }
    return found


@pytest.mark.parametrize("kind", ["command", "component", "component with secrets"])
async def test_logs_that_nobody_lets_us_read_end_the_step_and_say_so(
    runtime: Any, server: Any, tmp_path: Path, kind: str
) -> None:
    from jupyterlab_convect.pipeline.plan import Secret

    spec = {"component": {"definition": COMPONENT, "arguments": {}, "root": "/"}}
    one = attempt(
        tmp_path,
        "a",
        {"way": "bundle"},
        kind=kind.partition(" ")[0],
        secrets=(Secret("TOKEN", "s3", "key"),) if "secrets" in kind else (),
        spec={} if kind == "command" else spec,
    )
    server.answers["GET pods"] = lambda _: (200, {**EMPTY, "items": [ended_pod(one)]})
    refusal = {"reason": "Forbidden", "message": 'cannot get resource "pods/log"'}
    server.answers["GET log"] = lambda _: (403, refusal)
    status = await polled(runtime, one, lambda status: status.state == "failed")
    assert status.reason.startswith(
        "Its results could not be copied back. You are not allowed to read logs in namespace "
    )
    assert runtime.health.troubles() == []


def test_each_container_of_a_pod_has_a_name_of_its_own_in_health(
    server: Any, api: Api, tmp_path: Path
) -> None:
    """One that works says nothing of the other, which does not."""
    server.answers["GET log"] = lambda _: (503, {"message": "busy"})
    health = Health()
    log = tmp_path / "log.txt"

    def follow(container: str) -> LogFollower:
        return LogFollower(
            api, "p", container, lambda: PlainLog(log), lambda: True, lambda: None, health
        )

    followers = [follow("step"), follow("agent")]
    for follower in followers:
        follower.start()
    until(lambda: len(health.troubles()) == 2)
    followers[0].close()
    (left,) = health.troubles()
    assert left.name == "Reading the log of container agent in pod p"
    followers[1].close()
    assert health.troubles() == []
