from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


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
    assert (holder["step"], holder["name"], holder["mine"]) == ("long", "long", True)
    assert {"name": "cpu", "amount": 0.25} in holder["resources"]
    (node,) = found["nodes"]
    cpu = next(each for each in node["resources"] if each["name"] == "cpu")
    assert cpu["free"] <= cpu["total"] - 0.25
    assert found["offers"][0]["now"] is (cpu["free"] >= 0.25)
    status, _ = await api("POST", "give-back", {"kind": "run", "id": run["id"]})
    assert status == 204
    assert (await api.ended(run["id"]))["state"] == "cancelled"
    status, said = await api("POST", "give-back", {"kind": "run", "id": run["id"]})
    assert (status, said["message"]) == (422, "The run has ended already.")


async def test_a_kernel_of_this_server_is_named_and_given_back(
    api: Any, server: Any, jp_root_dir: Path
) -> None:
    (jp_root_dir / "open.ipynb").write_text("{}")
    manager, sessions = server.kernel_manager, server.session_manager
    session = await sessions.create_session(path="open.ipynb", type="notebook", kernel_name=None)
    kernel = session["kernel"]["id"]
    holder: dict[str, Any] = {}
    while not holder:
        _, found = await api("GET", "runtimes/local/top")
        holder = next((each for each in found["holders"] if each["id"] == kernel), {})
    assert (holder["kind"], holder["name"], holder["mine"]) == ("kernel", "open.ipynb", True)
    assert holder["idle"] is not None
    assert any(each["name"] == "memory" and each["amount"] > 0 for each in holder["resources"])
    status, _ = await api("POST", "give-back", {"kind": "kernel", "id": kernel})
    assert status == 204
    assert kernel not in manager.list_kernel_ids()
    status, said = await api("POST", "give-back", {"kind": "kernel", "id": kernel})
    assert (status, said["message"]) == (404, "This server has no such kernel.")


async def test_profiles_and_images_are_those_of_the_configuration(api: Any, server: Any) -> None:
    settings = server.web_app.settings["jupyterlab_convect"]
    settings.profiles = [{"name": "Small", "cpu": 1, "image": "ghcr.io/team/a:1", "notes": "n"}]
    settings.images = ["ghcr.io/team/a:1", {"image": "python:3.12", "notes": "Plain"}]
    status, found = await api("GET", "profiles")
    assert status == 200
    (profile,) = found["profiles"]
    assert profile["settings"] == {"image": "ghcr.io/team/a:1", "resources": {"cpu": 1}}
    assert found["images"][1] == {"image": "python:3.12", "notes": "Plain"}
    _, top = await api("GET", "runtimes/local/top")
    assert [offer["profile"] for offer in top["offers"]] == ["Small"]


async def test_a_wrong_list_of_profiles_is_one_sentence(api: Any, server: Any) -> None:
    server.web_app.settings["jupyterlab_convect"].profiles = [{"name": "x", "memory": "2GB"}]
    status, said = await api("GET", "profiles")
    assert status == 400
    assert said["message"].startswith("c.Convect.profiles is wrong: `memory` of 'x'")


async def test_a_run_that_waits_for_room_is_queued_and_says_who_has_it(
    api: Any, server: Any, jp_root_dir: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(jp_root_dir / "long.ipynb", "import time; time.sleep(600)")
    local = server.web_app.settings["jupyterlab_convect"].workspace.runtimes["local"]
    body = {"path": "long.ipynb", "settings": {"resources": {"cpu": local.size.cpu}}}
    runs = [(await api("POST", "runs", {**body, "name": name}))[1] for name in "ab"]
    waiting: dict[str, Any] = {}
    while not (waiting.get("reason") or "").startswith("Waiting for"):
        _, page = await api("GET", "runs", state="queued")
        waiting = next(iter(page["runs"]), {})
    assert waiting["reason"].endswith("are in use by “long”.")
    _, view = await api("GET", f"runs/{waiting['id']}")
    assert (view["state"], view["started"]) == ("queued", None)
    for run in reversed(runs):
        await api("POST", f"runs/{run['id']}/stop")
        await api.ended(run["id"])


async def test_an_unknown_runtime_has_nothing_to_show(api: Any) -> None:
    status, _ = await api("GET", "runtimes/moon/top")
    assert status == 404


async def test_a_kind_of_runtime_that_never_tells_is_no_place_of_the_page(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KF_PIPELINES_ENDPOINT", raising=False)
    status, said = await api("GET", "runtimes/kfp/top")
    assert (status, said["code"]) == (404, "no-capacity"), "also while it is not configured"
