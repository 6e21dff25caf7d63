from __future__ import annotations

import hmac
import json
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
    assert (await api("GET", f"schedules/{made['id']}/changes"))[1] == {"changes": []}
    _, calendar = await api("GET", f"schedules/{made['id']}/calendar")
    assert calendar["days"][1]["counts"] == {"due": 24}
    status, started = await api("POST", f"schedules/{made['id']}/run", {"due": 1_780_000_000})
    assert (status, started["sweep"]) == (201, None)
    for never in (1e40, -1e308):
        status, error = await api("POST", f"schedules/{made['id']}/run", {"due": never})
        assert (status, error["message"]) == (
            400,
            f"{never:g} is not a time that a calendar has.",
        )
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


async def test_a_sweep_at_each_due_time_becomes_a_run_again(api: Any, train: str) -> None:
    sweep = {"space": {"day": ["a", "${{ schedule.date }}"]}, "concurrency": 1}
    body = {"request": {"path": train}, "clock": {"cron": "@daily"}, "sweep": sweep}
    _, made = await api("POST", "schedules", body)
    assert (made["is_sweep"], made["sweep"]) == (True, sweep)
    status, edited = await api("PATCH", f"schedules/{made['id']}", {"name": "x"})
    assert (status, edited["sweep"]) == (200, sweep)
    status, edited = await api("PATCH", f"schedules/{made['id']}", {"sweep": None})
    assert (status, edited["is_sweep"]) == (200, False)
    _, started = await api("POST", f"schedules/{made['id']}/run", {})
    assert started["sweep"] is None


async def test_the_next_times_of_a_clock_are_told_before_anything_is_saved(api: Any) -> None:
    clock = {"cron": "30 2 * * *", "zone": "America/New_York"}
    status, found = await api("POST", "schedules/next", clock)
    assert (status, len(found["next"])) == (200, 5)
    assert {each["kind"] for each in found["shifts"]} == {"moved"}


@pytest.mark.parametrize(
    ("clock", "code"),
    [
        ({}, "malformed"),
        ({"cron": "0 0 30 2 * *"}, "bad-cron"),
        ({"cron": "0 0 30 2 *"}, "never-due"),
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


async def test_a_call_with_the_token_or_a_signature_makes_it_due_once(
    api: Any, jp_fetch: Any, train: str
) -> None:
    body = {
        "request": {"path": train, "parameters": {"day": "${{ schedule.body.ref }}"}},
        "trigger": {"call": {}},
        "name": "called",
    }
    status, made = await api("POST", "schedules", body)
    assert (status, made["trigger"], made["next"], made["overlap"]) == (
        201,
        {"call": {}},
        [],
        "queue",
    )
    _, hook = await api("GET", f"schedules/{made['id']}/hook")
    assert hook["address"].endswith(f"/hooks/{made['id']}")

    async def call(payload: bytes, status: int = 202, **headers: str) -> Any:
        """Without a login: only what is sent counts."""
        path = ("jupyterlab-convect", "api", "v1", "hooks", made["id"])
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await jp_fetch(
            *path,
            method="POST",
            body=payload,
            headers={"Authorization": "", **sent},
            raise_error=False,
        )
        assert answer.code == status, answer.body
        return json.loads(answer.body)

    payload = b'{"ref": "main"}'
    signature = hmac.new(hook["token"].encode(), payload, "sha256").hexdigest()
    signed = {"X_Hub_Signature_256": f"sha256={signature}", "X_GitHub_Delivery": "d-1"}
    first = await call(payload, **signed)
    again = await call(payload, **signed)
    assert first == again

    async def succeeded() -> Any:
        found = await lines(api, made["id"])
        return found if [line["state"] for line in found] == ["succeeded"] else None

    [line] = await eventually(succeeded, "the call had its run, and one only")
    assert line["happening"] == {"cause": "call", "values": {"body.ref": "main"}}
    _, run = await api("GET", f"runs/{line['run']}")
    assert run["parameters"]["day"] == "main"

    await call(payload, 404)
    await call(payload + b" ", 404, **signed)
    await call(b"{}", 400, Authorization=f"Bearer {hook['token']}")
    await call(b"x" * (1 << 20 | 1), 400, Authorization=f"Bearer {hook['token']}")
    ping = await call(b"{}", X_GitHub_Event="ping", X_Gitlab_Token=hook["token"])
    assert ping["due"] is None
    status, renewed = await api("POST", f"schedules/{made['id']}/hook", {})
    assert status == 201
    await call(payload, 404, X_Gitlab_Token=hook["token"])
    assert (await call(payload, X_Gitlab_Token=renewed["token"]))["due"] > first["due"]
    change = {"trigger": {"call": {}}, "name": "renamed"}
    await api("PATCH", f"schedules/{made['id']}", change)
    assert (await api("GET", f"schedules/{made['id']}/hook"))[1] == renewed


async def test_files_and_runs_trigger_while_the_server_is_up(
    api: Any, jp_root_dir: Path, train: str
) -> None:
    on = {"file": {"pattern": "*.csv", "settle": 0}}
    request = {"path": train, "parameters": {"day": "${{ schedule.file }}"}}
    _, by_file = await api(
        "POST", "schedules", {"request": request, "trigger": on, "name": "by file"}
    )
    _, by_run = await api(
        "POST",
        "schedules",
        {"request": {"path": train}, "trigger": {"run": {"name": "from-file"}}, "name": "by run"},
    )
    assert (await api("GET", f"schedules/{by_run['id']}/hook"))[0] == 422
    (jp_root_dir / "new.csv").write_text("1")

    async def done(schedule: Any) -> Any:
        found = await lines(api, schedule["id"])
        return found if found and found[0]["state"] == "succeeded" else None

    [line] = await eventually(lambda: done(by_file), "the file had its run")
    assert line["happening"]["values"] == {"file": "new.csv"}
    status, run = await api("POST", "runs", {"path": train, "name": "from-file"})
    assert status == 201
    [line] = await eventually(lambda: done(by_run), "the run that ended had its own")
    assert line["happening"]["values"] == {"run": run["id"], "state": "succeeded"}


@pytest.mark.parametrize(
    ("on", "status"),
    [
        ({"file": {"pattern": "../*"}}, 400),
        ({"file": {}}, 400),
        ({"run": {}}, 400),
        ({"run": {"name": "x", "states": ["running"]}}, 400),
        ({"mail": {}}, 400),
        ({}, 400),
    ],
)
async def test_a_bad_trigger_is_a_sentence(api: Any, train: str, on: Any, status: int) -> None:
    found, error = await api("POST", "schedules", {"request": {"path": train}, "trigger": on})
    assert found == status
    assert error["message"]
    assert (await api("GET", "schedules"))[1]["schedules"] == []
