from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually


@pytest.fixture
def train(jp_root_dir: Path, write_notebook: Callable[..., Path]) -> str:
    write_notebook(
        jp_root_dir / "train.ipynb", ("parameters", "day = ''"), ("outputs", "seen = day")
    )
    return "train.ipynb"


async def lines(api: Any, schedule_id: str) -> list[Any]:
    _, found = await api("GET", f"schedules/{schedule_id}/ledger")
    return list(found["lines"])


async def test_a_schedule_fires_while_the_server_is_up(api: Any, train: str) -> None:
    _, nothing = await api("GET", "schedules")
    assert nothing == {"schedules": [], "keeper": None}
    body = {
        "request": {"path": train, "parameters": {"day": "${{ schedule.date }}"}},
        "clock": {"every": 1, "zone": "Asia/Shanghai"},
        "overlap": "queue",
        "name": "often",
    }
    status, made = await api("POST", "schedules", body)
    assert status == 201
    assert (made["name"], made["overlap"], made["paused"]) == ("often", "queue", None)
    assert len(made["next"]) == 5

    async def succeeded() -> Any:
        found = await lines(api, made["id"])
        return next((line for line in found if line["state"] == "succeeded"), None)

    line = await eventually(succeeded, "a run of the schedule succeeded")
    _, run = await api("GET", f"runs/{line['run']}")
    assert run["labels"] == {"schedule": "often"}
    assert run["parameters"]["day"] == time.strftime("%Y-%m-%d", time.gmtime(line["due"] + 28800))
    _, listed = await api("GET", "schedules")
    assert [each["id"] for each in listed["schedules"]] == [made["id"]]
    assert listed["keeper"]["kind"] == "server"
    status, paused = await api("PATCH", f"schedules/{made['id']}", {"paused": True})
    assert (status, paused["due"]) == (200, None)
    assert paused["paused"] is not None


async def test_it_is_edited_run_now_and_removed(api: Any, train: str) -> None:
    body = {"request": {"path": train}, "clock": {"cron": "30 2 * * *", "zone": "Europe/Berlin"}}
    _, made = await api("POST", "schedules", body)
    assert {each["kind"] for each in made["shifts"]} == {"moved", "twice"}
    change = {"clock": {"cron": "@hourly"}, "missed": "none", "name": "hourly", "pinned": True}
    status, edited = await api("PATCH", f"schedules/{made['id']}", change)
    assert (status, edited["name"], edited["missed"]) == (200, "hourly", "none")
    assert (edited["pinned"], edited["changed"], edited["shifts"]) == (True, [], [])
    _, calendar = await api("GET", f"schedules/{made['id']}/calendar")
    assert calendar["days"][1]["counts"] == {"due": 24}
    status, started = await api("POST", f"schedules/{made['id']}/run", {"due": 1_780_000_000})
    assert (status, started["sweep"]) == (201, None)
    _, run = await api("GET", f"runs/{started['run']}")
    assert run["name"] == "train"
    begin = 1_780_000_000 // 3600 * 3600
    body = {"begin": begin - 1, "end": begin + 3600, "parameter": "day", "which": "all"}
    status, started = await api("POST", f"schedules/{made['id']}/backfill", body)
    assert (status, started["run"]) == (201, None)
    _, sweep = await api("GET", f"sweeps/{started['sweep']}")
    assert sweep["total"] == 2
    status, _ = await api("DELETE", f"schedules/{made['id']}")
    assert status == 204
    assert (await api("GET", f"schedules/{made['id']}"))[0] == 404
    assert (await api("GET", f"sweeps/{started['sweep']}"))[0] == 200


async def test_the_next_times_of_a_clock_are_told_before_anything_is_saved(api: Any) -> None:
    clock = {"cron": "30 2 * * *", "zone": "America/New_York"}
    status, found = await api("POST", "schedules/next", clock)
    assert (status, len(found["next"])) == (200, 5)
    assert {each["kind"] for each in found["shifts"]} == {"moved"}


@pytest.mark.parametrize(
    ("clock", "code"),
    [
        ({}, "malformed"),
        ({"cron": "0 0 30 2 *"}, "bad-cron"),
        ({"cron": "0 0 * * *", "zone": "Nowhere"}, "bad-zone"),
        ({"cron": "0 0 * * *", "start": 10, "end": 5}, "bad-schedule"),
        ({"every": 0}, "bad-schedule"),
        ({"every": "6h"}, "malformed"),
        ({"cron": "0 0 1 1 *", "start": 2e9, "end": 2e9 + 5}, "never-due"),
        ({"every": 1e300}, "bad-schedule"),
    ],
)
async def test_a_bad_clock_is_a_sentence(api: Any, train: str, clock: Any, code: str) -> None:
    status, error = await api("POST", "schedules/next", clock)
    assert (status, error["code"]) == (400, code)
    status, error = await api("POST", "schedules", {"request": {"path": train}, "clock": clock})
    assert (status, error["code"]) == (400, code)
    assert (await api("GET", "schedules"))[1]["schedules"] == []


async def test_what_cannot_run_is_not_scheduled(api: Any, train: str) -> None:
    clock = {"cron": "@daily"}
    for request in ({"path": "none.ipynb"}, {"path": "../x.ipynb"}):
        status, _ = await api("POST", "schedules", {"request": request, "clock": clock})
        assert status in (400, 404)
    body = {
        "request": {"path": train, "parameters": {"day": "${{ schedule.then }}"}},
        "clock": clock,
    }
    status, error = await api("POST", "schedules", body)
    assert (status, error["code"]) == (400, "no-such-value")


async def test_a_schedule_that_is_not_there(api: Any) -> None:
    for verb, path in (("GET", ""), ("DELETE", ""), ("GET", "/ledger"), ("POST", "/run")):
        status, _ = await api(verb, f"schedules/20260101-000000000-abcdef{path}")
        assert status == 404
