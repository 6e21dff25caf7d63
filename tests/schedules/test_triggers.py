"""What makes schedules due beside their clocks, with real files, runs and leases."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from schedule_bench import BEGIN, HOUR, Bench, Started

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runs.model import Request, new_id
from jupyterlab_convect.schedules.hooks import delivery_of, hook_token, is_allowed
from jupyterlab_convect.schedules.keeper import Keeper
from jupyterlab_convect.schedules.schedule import (
    Schedule,
    at_due,
    check_schedule,
    values_of_body,
)
from jupyterlab_convect.schedules.schedule_store import Schedules
from jupyterlab_convect.schedules.times import Clock
from jupyterlab_convect.schedules.triggers import (
    CallTrigger,
    EndedRun,
    FileTrigger,
    Happening,
    Noticed,
    RunTrigger,
    Trigger,
    scan,
)


class Project(Bench):
    """A bench with a folder of files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = folder.parent / "project"
        (self.root / "data").mkdir(parents=True)

    def watch(self, on: Trigger, cron: str | None = None, **how: Any) -> str:
        request = Request("a.ipynb", str(self.root))
        schedule = Schedule(
            new_id(),
            "s",
            self.time.wall,
            request,
            Clock(cron=cron),
            trigger=on,
            overlap="queue",
            **how,
        )
        self.schedules.add(schedule, {"time": BEGIN, "type": "seen", "files": self.files()})
        return schedule.id

    def files(self) -> dict[str, str]:
        return scan(self.root, "data/*.csv")

    def write(self, name: str, text: str, time: int = 0) -> None:
        path = self.root / "data" / name
        path.write_text(text)
        os.utime(path, ns=(time, time))

    def causes(self, schedule_id: str) -> list[tuple[Any, str]]:
        """What made it due and what became of it, the first first."""
        ledger = Schedules(self.store).read(schedule_id)
        lines = reversed([line for line, _ in ledger.latest(self.time.wall)])
        return [
            (None if line.happening is None else dict(line.happening.values), line.outcome)
            for line in lines
        ]

    async def pass_by(self, keeper: Keeper, seconds: int) -> None:
        for _ in range(seconds):
            self.time.pass_by(1)
            await keeper.look()
            self.started.over |= self.started.ids


@pytest.fixture
async def project(tmp_path: Path) -> AsyncIterator[Project]:
    project = Project(tmp_path / "runs")
    yield project
    project.store.close()


CSV = Trigger(file=FileTrigger("data/*.csv", settle=3))


async def test_a_file_that_appears_or_changes_counts_once_it_has_settled(project: Project):
    project.write("old.csv", "there before")
    schedule_id = project.watch(CSV)
    keeper = project.keeper()
    await project.pass_by(keeper, 10)
    assert project.causes(schedule_id) == []
    project.write("new.csv", "a", time=1)
    project.write(".new.csv.part", "hidden")
    project.write("other.txt", "not asked for")
    await project.pass_by(keeper, 2)
    project.write("new.csv", "a and more", time=2)  # It is still being written.
    await project.pass_by(keeper, 3)
    assert project.causes(schedule_id) == []
    await project.pass_by(keeper, 10)
    assert project.causes(schedule_id) == [({"file": "data/new.csv"}, "ran")]
    project.write("old.csv", "changed", time=5)
    await project.pass_by(keeper, 10)
    assert project.causes(schedule_id)[1:] == [({"file": "data/old.csv"}, "ran")]
    assert len(project.started.runs) == 2
    await keeper.close()


async def test_each_file_once_means_that_changes_do_not_count(project: Project):
    schedule_id = project.watch(Trigger(file=FileTrigger("data/*.csv", 0, changed=False)))
    keeper = project.keeper()
    await project.pass_by(keeper, 2)
    project.write("a.csv", "1", time=1)
    await project.pass_by(keeper, 3)
    project.write("a.csv", "2", time=2)
    await project.pass_by(keeper, 3)
    assert project.causes(schedule_id) == [({"file": "data/a.csv"}, "ran")]
    await keeper.close()


async def test_files_that_came_while_nobody_looked_count_when_somebody_does(project: Project):
    schedule_id = project.watch(CSV)
    first = project.keeper()
    await project.pass_by(first, 2)
    await first.close()
    for number in range(5):
        project.write(f"{number}.csv", "x")
    project.time.pass_by(8 * HOUR)
    second = project.keeper(Schedules(project.store))
    await project.pass_by(second, 12)
    found = project.causes(schedule_id)
    assert found == [({"file": f"data/{number}.csv"}, "ran") for number in range(5)]
    assert len({due for _, due in project.started.runs}) == 5
    await second.close()


@pytest.mark.parametrize("when", ["before the ledger", "before the decision", "before the run"])
async def test_whenever_the_keeper_is_killed_a_file_counts_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, when: str
):
    schedule_id = project.watch(Trigger(file=FileTrigger("data/*.csv", 0)))
    keeper = project.keeper()
    await project.pass_by(keeper, 2)
    project.write("a.csv", "x")

    class Killed(BaseException):
        pass

    write = project.schedules.write
    kinds = {"before the ledger": "happened", "before the decision": "run", "before the run": ""}

    def write_but(schedule_id: str, *events: Any) -> None:
        if events[0]["type"] == kinds[when]:
            raise Killed
        write(schedule_id, *events)

    def kill(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(project.schedules, "write", write_but)
        if when == "before the run":
            patched.setattr(project.started, "start", kill)
        with pytest.raises(Killed):
            await project.pass_by(keeper, 3)
    assert keeper._lease is not None
    keeper._lease.give_back()
    after = project.keeper(Schedules(project.store))
    await project.pass_by(after, 5)
    assert project.causes(schedule_id) == [({"file": "data/a.csv"}, "ran")]
    assert len(project.started.runs) == 1
    await after.close()


async def test_two_hosts_that_notice_the_same_write_one_line(project: Project):
    schedule_id = project.watch(CSV)
    noticed = Noticed("file data/a.csv 1-1", Happening("file", {"file": "data/a.csv"}), "1-1")
    other = Schedules(project.store)
    events = [
        each.happened(schedule_id, noticed, project.time.wall + number)
        for number, each in enumerate((project.schedules, other))
    ]
    assert events[0]["due"] == events[1]["due"]
    for event in events:
        project.schedules.write(schedule_id, event)
    assert project.causes(schedule_id) == [({"file": "data/a.csv"}, "waiting")]


async def test_what_happens_in_the_same_moment_has_a_line_each(project: Project):
    schedule_id = project.watch(CSV)
    dues = {
        project.schedules.happened(
            schedule_id, Noticed(f"call {number}", Happening("call")), BEGIN
        )["due"]
        for number in range(50)
    }
    assert len(dues) == 50


async def test_what_happens_while_it_is_paused_is_recorded_and_not_run(project: Project):
    schedule_id = project.watch(Trigger(file=FileTrigger("data/*.csv", 0)))
    keeper = project.keeper()
    await project.pass_by(keeper, 2)
    project.schedules.pause(schedule_id)
    project.write("a.csv", "x")
    await project.pass_by(keeper, 3)
    project.schedules.resume(schedule_id)
    await project.pass_by(keeper, 3)
    assert project.causes(schedule_id) == [({"file": "data/a.csv"}, "paused")]
    project.write("b.csv", "x")
    await project.pass_by(keeper, 3)
    assert project.causes(schedule_id)[1:] == [({"file": "data/b.csv"}, "ran")]
    await keeper.close()


async def test_a_clock_and_a_trigger_share_one_ledger_and_lose_nothing(project: Project):
    """A file in the second before a due time must not hide that time."""
    schedule_id = project.watch(Trigger(file=FileTrigger("data/*.csv", 0)), cron="0 * * * *")
    keeper = project.keeper()
    await project.pass_by(keeper, 2)
    project.time.pass_by(HOUR - 3)
    project.write("a.csv", "x")
    await project.pass_by(keeper, 10)
    assert sorted(project.causes(schedule_id), key=str) == [
        (None, "ran"),
        ({"file": "data/a.csv"}, "ran"),
    ]
    counts = Schedules(project.store).read(schedule_id).counts(project.time.wall)
    assert counts == {"ran": 2}
    await keeper.close()


async def test_the_rules_of_overlap_hold_for_what_happens(project: Project):
    schedule_id = project.watch(Trigger(file=FileTrigger("data/*.csv", 0)))
    keeper = project.keeper()
    await keeper.look()
    for name in ("a.csv", "b.csv"):
        project.write(name, "x")
    for _ in range(5):
        project.time.pass_by(1)
        await keeper.look()
    assert [outcome for _, outcome in project.causes(schedule_id)] == ["ran", "queued"]
    await project.pass_by(keeper, 3)
    assert [outcome for _, outcome in project.causes(schedule_id)] == ["ran", "ran"]
    await keeper.close()


class Runs(Started):
    """Runs of others that ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[float, EndedRun]] = []

    def ended_runs(self, schedule: Schedule, since: float) -> list[EndedRun]:
        return [run for time, run in self.ended if time > since]


async def test_a_run_that_ended_counts_once_and_never_its_own(project: Project):
    project.started = runs = Runs()
    schedule_id = project.watch(Trigger(run=RunTrigger("prepare.ipynb")))
    keeper = project.keeper()
    runs.ended = [
        (BEGIN - 5, EndedRun("earlier", "succeeded", "prepare", "prepare.ipynb")),
        (BEGIN + 1, EndedRun("good", "succeeded", "prepare", "prepare.ipynb")),
        (BEGIN + 1, EndedRun("bad", "failed", "prepare", "prepare.ipynb")),
        (BEGIN + 1, EndedRun("other", "succeeded", "train", "train.ipynb")),
    ]
    await project.pass_by(keeper, 5)
    assert project.causes(schedule_id) == [({"run": "good", "state": "succeeded"}, "ran")]
    own = next(iter(runs.ids))
    runs.ended.append((BEGIN + 6, EndedRun(own, "succeeded", "prepare", "prepare.ipynb")))
    await project.pass_by(keeper, 5)
    await keeper.close()
    runs.ended.append((BEGIN + 20, EndedRun("late", "succeeded", "x", "prepare.ipynb")))
    project.time.pass_by(40 * HOUR)
    after = project.keeper(Schedules(project.store))
    await project.pass_by(after, 5)
    assert [values["run"] for values, _ in project.causes(schedule_id)] == ["good", "late"]
    await after.close()


def test_tokens_are_derived_and_signatures_are_those_of_the_git_hosts(tmp_path: Path):
    token = hook_token(tmp_path, "s", CallTrigger())
    assert token == hook_token(tmp_path, "s", CallTrigger())
    others = [("t", CallTrigger()), ("s", CallTrigger(2))]
    assert token not in [hook_token(tmp_path, *each) for each in others]
    assert (tmp_path / "hooks.key").stat().st_mode & 0o077 == 0
    body = b'{"ref": "refs/heads/main"}'
    signature = hmac.new(token.encode(), body, hashlib.sha256).hexdigest()
    good: list[dict[str, str]] = [
        {"Authorization": f"Bearer {token}"},
        {"X-Gitlab-Token": token},
        {"X-Hub-Signature-256": f"sha256={signature}"},
        {"X-Gitea-Signature": signature},
    ]
    assert all(is_allowed(token, headers, body) for headers in good)
    bad: list[dict[str, str]] = [
        {},
        {"Authorization": token},
        {"Authorization": "Bearer "},
        {"X-Gitlab-Token": "x"},
        {"X-Hub-Signature-256": ""},
        {"X-Hub-Signature-256": f"sha1={signature}"},
        {"X-Hub-Signature-256": f"sha256={signature[:-1]}é"},
    ]
    assert not any(is_allowed(token, headers, body) for headers in bad)
    assert not is_allowed(token, good[2], body + b" ")
    assert delivery_of({"X-GitHub-Delivery": "1"}) == "call 1"
    assert delivery_of({}) != delivery_of({})


def schedule(on: Trigger, root: Path, clock: Clock | None = None, **parameters: Any) -> Schedule:
    request = Request("a.ipynb", str(root), parameters=parameters)
    return Schedule(new_id(), "s", BEGIN, request, clock or Clock(), trigger=on)


def test_parameters_see_what_happened(tmp_path: Path):
    found = schedule(
        Trigger(call=CallTrigger()),
        tmp_path,
        branch="${{ schedule.body.ref }}",
        count="${{ schedule.body.list.n }}",
        text="at ${{ schedule.body.ref }}",
    )
    body = json.loads('{"ref": "main", "list": {"n": 3}, "secret": "not kept"}')
    values = values_of_body(found, body)
    assert values == {"body.ref": "main", "body.list.n": 3}
    request, _ = at_due(found, BEGIN, Happening("call", values))
    assert request.parameters == {"branch": "main", "count": 3, "text": "at main"}
    for odd in ({}, [], None, {"ref": 1, "list": 2}):
        with pytest.raises(ConvectError, match="has no"):
            values_of_body(found, odd)


@pytest.mark.parametrize(
    ("on", "parameters", "sentence"),
    [
        (Trigger(file=FileTrigger("/etc/*")), {}, "not a pattern of files inside"),
        (Trigger(file=FileTrigger("a/../../*")), {}, "not a pattern of files inside"),
        (Trigger(file=FileTrigger("")), {}, "not a pattern of files inside"),
        (Trigger(file=FileTrigger("*", settle=-1)), {}, "between 0 seconds and a day"),
        (Trigger(run=RunTrigger()), {}, "Specify which runs count"),
        (Trigger(run=RunTrigger("a", states=("running",))), {}, "is not a state in which"),
        (Trigger(run=RunTrigger("a", states=())), {}, "is not a state in which"),
        (Trigger(run=RunTrigger("none.ipynb")), {}, "There is no file “none.ipynb” whose runs"),
        (CSV, {"x": "${{ schedule.run }}"}, "There is no “schedule.run”."),
    ],
)
def test_a_bad_trigger_is_one_sentence(tmp_path: Path, on: Trigger, parameters: Any, sentence: str):
    with pytest.raises(ConvectError, match=sentence):
        check_schedule(schedule(on, tmp_path, **parameters), BEGIN)


def test_a_clock_cannot_give_what_only_a_file_gives(tmp_path: Path):
    found = schedule(CSV, tmp_path, Clock(cron="@daily"), x="${{ schedule.file }}")
    with pytest.raises(ConvectError, match=r"There is no “schedule\.file”"):
        check_schedule(found, BEGIN)
    check_schedule(schedule(CSV, tmp_path, x="${{ schedule.file }}"), BEGIN)


def test_a_pattern_that_matches_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("jupyterlab_convect.schedules.triggers.MOST_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.csv").touch()
    with pytest.raises(ConvectError, match="More than 3 files match"):
        scan(tmp_path, "*.csv")
