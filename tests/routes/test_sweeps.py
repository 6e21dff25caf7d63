from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually


@pytest.fixture
def train(jp_root_dir: Path, write_notebook: Callable[..., Path]) -> str:
    write_notebook(
        jp_root_dir / "train.ipynb",
        ("parameters", "lr = 0.1"),
        "assert lr < 1, 'too fast'",
        ("outputs", "accuracy = 1 - lr"),
    )
    return "train.ipynb"


async def ended(api: Any, sweep_id: str) -> Any:
    async def look() -> Any:
        _, sweep = await api("GET", f"sweeps/{sweep_id}")
        return sweep if sweep["ended"] is not None else None

    return await eventually(look, f"sweep {sweep_id} ended")


async def test_the_best_is_told_by_itself_and_chosen_anew(api: Any, train: str) -> None:
    body: dict[str, Any] = {"request": {"path": train}, "space": {"lr": [0.2, 0.1]}}
    status, refused = await api("POST", "sweeps", {**body, "select": "max:acuracy"})
    assert (status, refused["code"]) == (422, "no-such-metric")
    _, checked = await api("POST", "runtimes/local/check", {"path": train})
    assert checked["metrics"] == {"names": ["accuracy"], "complete": True, "best": "max:accuracy"}
    _, sweep = await api("POST", "sweeps", body)
    sweep = await ended(api, sweep["id"])
    assert sweep["select"] == "max:accuracy"
    first = sweep["best"]
    status, sweep = await api("PATCH", f"sweeps/{sweep['id']}", {"select": "min:accuracy"})
    assert (status, sweep["select"]) == (200, "min:accuracy")
    assert sweep["best"] not in (None, first)
    status, sweep = await api("PATCH", f"sweeps/{sweep['id']}", {"name": "learning rates"})
    assert (status, sweep["name"], sweep["select"]) == (200, "learning rates", "min:accuracy")
    _, listed = await api("GET", "sweeps")
    assert [each["name"] for each in listed["sweeps"]] == ["learning rates"]
    for wrong in ({"name": " "}, {"name": ""}, {}):
        status, _ = await api("PATCH", f"sweeps/{sweep['id']}", wrong)
        assert status == 400, wrong
    _, sweep = await api("PATCH", f"sweeps/{sweep['id']}", {"select": None})
    assert (sweep["select"], sweep["best"]) == (None, None)
    status, _ = await api("PATCH", f"sweeps/{sweep['id']}", {"select": "best"})
    assert status == 400


async def test_a_sweep_runs_and_grows(api: Any, train: str) -> None:
    body = {
        "request": {"path": train},
        "space": {"lr": [0.2, 0.1]},
        "mode": "grid",
        "concurrency": 1,
        "select": "max:accuracy",
    }
    status, sweep = await api("POST", "sweeps", body)
    assert status == 201
    sweep = await ended(api, sweep["id"])
    assert (sweep["state"], sweep["total"]) == ("succeeded", 2)
    best = next(run for run in sweep["runs"] if run["id"] == sweep["best"])
    assert best["metrics"]["accuracy"] == 0.9

    status, _ = await api("POST", f"sweeps/{sweep['id']}/points", {"space": {"lr": [0.05, 2]}})
    assert status == 200
    sweep = await ended(api, sweep["id"])
    assert (sweep["state"], sweep["total"], sweep["counts"]["failed"]) == ("failed", 4, 1)

    status, _ = await api("POST", f"sweeps/{sweep['id']}/rerun")
    assert status == 200
    again = await ended(api, sweep["id"])
    assert {run["id"] for run in again["runs"]} != {run["id"] for run in sweep["runs"]}
    _, listed = await api("GET", "sweeps")
    assert [item["id"] for item in listed["sweeps"]] == [sweep["id"]]
    _, page = await api("GET", "runs", sweep=sweep["id"], state="failed")
    assert page["total"] == 2


async def test_a_sweep_is_stopped(
    api: Any, jp_root_dir: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(jp_root_dir / "long.ipynb", "import time; time.sleep(600)")
    body = {"request": {"path": "long.ipynb"}, "space": {"n": [1, 2, 3]}}
    _, sweep = await api("POST", "sweeps", body)
    status, _ = await api("POST", f"sweeps/{sweep['id']}/stop")
    assert status == 200
    assert (await ended(api, sweep["id"]))["state"] == "cancelled"


@pytest.mark.parametrize(
    "wrong",
    [
        {"space": {}},
        {"space": {"lr": []}},
        {"space": {"lr": 0.1}},
        {"space": {"lr": {"from": 1, "to": 0, "step": 0}}},
        {"mode": "spiral"},
        {"mode": "random"},
        {"samples": 0},
        {"concurrency": "many"},
        {"select": "best"},
        {"request": {}},
        {"request": {"path": "train.ipynb", "root": "/"}},
        {"colour": "red"},
    ],
    ids=str,
)
async def test_a_sweep_that_makes_no_sense_is_refused(
    api: Any, train: str, wrong: dict[str, Any]
) -> None:
    body = {"request": {"path": train}, "space": {"lr": [0.1]}, **wrong}
    status, error = await api("POST", "sweeps", body)
    assert status == 400, error
    assert error["message"]
    assert (await api("GET", "sweeps"))[1]["total"] == 0
    assert (await api("GET", "runs"))[1]["total"] == 0


async def test_a_sweep_that_is_not_there_is_missing(api: Any) -> None:
    for verb, path in (("GET", ""), ("POST", "/stop"), ("POST", "/rerun")):
        status, _ = await api(verb, f"sweeps/none{path}")
        assert status == 404


@pytest.mark.parametrize(
    "sources",
    [
        {"files": {}},
        {"files": {"kinds": {}, "matches": {}, "digests": ["train.ipynb"]}},
        {"files": None},
        {},
        "of last week",
        {"files": {"kinds": {}, "matches": {}, "digests": {}}, "snapshot": 7},
    ],
)
async def test_a_sweep_with_damaged_sources_says_so(
    api: Any, train: str, tmp_path: Path, sources: Any
) -> None:
    """Its points would otherwise be made from other files than those that it was submitted with."""
    _, made = await api("POST", "sweeps", {"request": {"path": train}, "space": {"lr": [0.1]}})
    await ended(api, made["id"])
    (file,) = tmp_path.rglob("sweep.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "sources": sources}))
    status, told = await api("GET", f"sweeps/{made['id']}")
    assert status == 400
    assert told["message"].startswith(f"The sweep {made['id']} is damaged")
    status, told = await api("GET", "sweeps")
    assert (status, told["sweeps"]) == (200, [])
