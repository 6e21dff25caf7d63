from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


async def test_this_machine_says_what_is_free_and_who_holds_the_rest(
    api: Any, jp_root_dir: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(jp_root_dir / "long.ipynb", "import time; time.sleep(600)")
    body = {"path": "long.ipynb", "settings": {"resources": {"cpu": 0.25, "memory": "64Mi"}}}
    _, run = await api("POST", "runs", body)
    while run["state"] != "running":
        _, run = await api("GET", f"runs/{run['id']}")
    status, found = await api("GET", "runtimes/local/top")
    assert status == 200
    (holder,) = (each for each in found["holders"] if each["run"] == run["id"])
    assert (holder["step"], holder["pod"]) == ("long", "long")
    assert {"name": "cpu", "amount": 0.25} in holder["resources"]
    (node,) = found["nodes"]
    cpu = next(each for each in node["resources"] if each["name"] == "cpu")
    assert cpu["free"] <= cpu["total"] - 0.25
    await api("POST", f"runs/{run['id']}/stop")
    await api.ended(run["id"])


async def test_a_run_that_waits_for_room_is_queued_and_says_who_has_it(
    api: Any, server: Any, jp_root_dir: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(jp_root_dir / "long.ipynb", "import time; time.sleep(600)")
    local = server.web_app.settings["jupyterlab_convect"].workspace.runtimes["local"]
    body = {"path": "long.ipynb", "settings": {"resources": {"cpu": local.capacity.cpu}}}
    runs = [(await api("POST", "runs", {**body, "name": name}))[1] for name in "ab"]
    waiting: dict[str, Any] = {}
    while not (waiting.get("reason") or "").startswith("Waiting for"):
        _, page = await api("GET", "runs", state="queued")
        waiting = next(iter(page["runs"]), {})
    assert waiting["reason"].endswith("are in use by long.")
    _, view = await api("GET", f"runs/{waiting['id']}")
    assert (view["state"], view["started"]) == ("queued", None)
    for run in reversed(runs):
        await api("POST", f"runs/{run['id']}/stop")
        await api.ended(run["id"])


async def test_an_unknown_runtime_has_nothing_to_show(api: Any) -> None:
    status, _ = await api("GET", "runtimes/moon/top")
    assert status == 404
