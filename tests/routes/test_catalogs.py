"""Catalogs and components, as the panel asks for them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from traitlets.config import Config
from waiting import eventually


def spec(name: str, word: str = "hello") -> str:
    container = {"image": "alpine", "command": ["echo", word]}
    return yaml.safe_dump({"name": name, "implementation": {"container": container}})


@pytest.fixture
def jp_server_config(jp_server_config: Config, tmp_path: Path) -> Config:
    jp_server_config.merge(
        Config({"Convect": {"catalog_hosts": ["127.0.0.1"], "runs_dir": str(tmp_path / "c/runs")}})
    )
    return jp_server_config


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server looks often whether a catalog is to be read again."""
    monkeypatch.setattr("jupyterlab_convect.app.CATALOG_PAUSE", 0.05)


async def refreshed(api: Any, catalog: str, after: float = 0.0) -> Any:
    async def look() -> Any:
        _, view = await api("GET", f"catalogs/{catalog}")
        return view if view["progress"] is None and (view["refreshed"] or 0) > after else None

    return await eventually(look, "the catalog was read")


async def add(api: Any, **body: Any) -> Any:
    status, view = await api("POST", "catalogs", {"name": "My Catalog", **body})
    assert status == 201, view
    return await refreshed(api, view["id"])


async def test_the_set_that_ships_is_there(api: Any) -> None:
    status, found = await api("GET", "catalogs")
    assert status == 200
    assert [item["id"] for item in found["catalogs"]] == ["shipped"]
    assert found["kinds"][:3] == ["url", "file", "folder"]
    _, found = await api("GET", "components", text="split rows")
    (summary,) = found["components"]
    assert summary["name"] == "Split CSV"
    assert "Data" in found["categories"]
    status, shown = await api("GET", f"components/{summary['digest']}")
    assert status == 200
    assert shown["inputs"][0] | {"description": ""} == {
        "name": "table",
        "type": "CSV",
        "kind": None,
        "description": "",
        "default": None,
        "required": True,
        "passed": "file",
    }
    assert shown["approved"]
    assert shown["text"].startswith("name: Split CSV")
    status, again = await api("POST", "components/preview", {"definition": shown["definition"]})
    assert status == 200
    assert again["digest"] == summary["digest"]


async def test_a_catalog_from_the_web_shows_good_and_bad_and_takes_updates(
    api: Any, site: Any
) -> None:
    site.put("/a.yaml", spec("A", "old"))
    site.put("/b.yaml", "implementation: 3")
    urls = [site.url + "/a.yaml", site.url + "/b.yaml", site.url + "/c.yaml"]
    view = await add(api, urls=urls, categories=["mine"])
    assert view["id"] == "my-catalog"
    assert view["counts"] == {"components": 1, "errors": 2, "updates": 0}
    _, found = await api("GET", "components", category="mine")
    assert [item["name"] for item in found["components"]] == ["A", "b.yaml", "c.yaml"]
    assert found["components"][1]["error"]["line"] == 1

    site.put("/a.yaml", spec("A", "new"))
    status, _ = await api("POST", "catalogs/my-catalog/refresh")
    assert status == 202
    view = await refreshed(api, "my-catalog", view["refreshed"])
    assert view["counts"]["updates"] == 1
    _, found = await api("GET", "components", catalog="my-catalog", limit=1)
    assert (len(found["components"]), found["total"]) == (1, 3)
    entry = found["components"][0]
    path = f"components/{entry['digest']}/difference/{entry['update']}"
    _, answer = await api("GET", path)
    assert "-  - old\n+  - new" in answer["difference"].replace("    ", "  ")
    status, view = await api("POST", "catalogs/my-catalog/take", {"digests": [entry["update"]]})
    assert view["counts"]["updates"] == 0
    assert (await api("POST", "catalogs/my-catalog/take", {"digests": ["x"]}))[0] == 404


async def test_a_catalog_is_configured_and_removed(api: Any, site: Any) -> None:
    site.put("/a.yaml", spec("A"))
    await add(api, urls=[site.url + "/a.yaml"], auth={"env": "SOME_TOKEN"})
    status, view = await api(
        "PATCH", "catalogs/my-catalog", {"name": "Other", "categories": ["c"], "auth": None}
    )
    assert status == 200
    assert (view["name"], view["auth"]) == ("Other", None)
    view = await refreshed(api, "my-catalog", 0.0)
    assert view["urls"] == [site.url + "/a.yaml"]
    assert (await api("DELETE", "catalogs/my-catalog"))[0] == 204
    assert (await api("GET", "catalogs/my-catalog"))[0] == 404
    assert (await api("DELETE", "catalogs/shipped"))[0] == 409


async def test_a_folder_of_the_root_is_a_catalog_and_nothing_outside_is(
    api: Any, jp_root_dir: Path
) -> None:
    (jp_root_dir / "mine").mkdir()
    (jp_root_dir / "mine" / "a.yaml").write_text(spec("A"))
    view = await add(api, kind="folder", path="mine")
    assert view["path"] == "mine"
    assert view["counts"]["components"] == 1
    for path in ("../outside", "/etc", "mine/../../x"):
        body = {"name": "x", "kind": "folder", "path": path}
        assert (await api("POST", "catalogs", body))[0] == 400


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x", "urls": ["file:///etc/passwd"]},
        {"name": "x", "urls": ["https://user:secret@host/x"]},
        {"name": "x", "urls": "https://host"},
        {"name": "x", "kind": "nobody"},
        {"name": "x", "more": 1},
    ],
)
async def test_a_malformed_catalog_is_refused(api: Any, body: Any) -> None:
    status, error = await api("POST", "catalogs", body)
    assert status in (400, 422)
    assert "user:secret" not in json.dumps(error)
    assert [item["id"] for item in (await api("GET", "catalogs"))[1]["catalogs"]] == ["shipped"]


async def test_an_internal_address_is_an_error_of_the_catalog(api: Any) -> None:
    await add(api, urls=["http://localhost:1/x.yaml"])
    _, found = await api("GET", "components", catalog="my-catalog")
    assert "internal address" in found["components"][0]["error"]["message"]


async def test_approval_is_asked_for_and_given(
    api: Any, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVECT_CONTAINER_ENGINE", "")
    site.put("/a.yaml", spec("A"))
    await add(api, urls=[site.url + "/a.yaml"])
    _, found = await api("GET", "components", catalog="my-catalog")
    digest = found["components"][0]["digest"]
    _, shown = await api("GET", f"components/{digest}")
    assert not shown["approved"]
    assert not shown["contained"]
    document = {
        "convect": 1,
        "nodes": {"a": {"kind": "component", "component": digest}},
        "components": {digest: shown["definition"]},
    }
    status, error = await api("POST", "runs", {"document": document})
    assert (status, error["code"]) == (422, "component-not-approved")
    assert "echo hello" in error["message"]
    _, checked = await api("POST", "runtimes/local/check", {"document": document})
    (problem,) = [each for each in checked["problems"] if each["severity"] == "error"]
    assert (problem["code"], problem["node"]) == ("component-not-approved", "a")
    body = {"definition": shown["definition"]}
    status, shown = await api("POST", "components/approve", body)
    assert (status, shown["approved"]) == (200, True)
    status, run = await api("POST", "runs", {"document": document})
    assert status == 201, run
    assert (await api.ended(run["id"]))["state"] == "succeeded"
    _, shown = await api("POST", "components/approve", {**body, "approved": False})
    assert not shown["approved"]


async def test_a_damaged_definition_is_refused(api: Any) -> None:
    for definition in ({}, {"name": 3}, {"name": "x", "format": "v1", "container": 3}):
        status, error = await api("POST", "components/preview", {"definition": definition})
        assert (status, error["code"]) == (400, "damaged-component")
    assert (await api("GET", "components/sha256:" + "0" * 64))[0] == 404
    assert (await api("GET", "components/..%2F..%2Fetc"))[0] == 404


async def test_the_server_looks_for_changes_by_itself(
    api: Any, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.put("/a.yaml", spec("A", "old"))
    view = await add(api, urls=[site.url + "/a.yaml"], refresh=60)
    assert view["refresh"] == 60
    site.put("/a.yaml", spec("A", "new"))
    later = time.time() + 61
    monkeypatch.setattr("jupyterlab_convect.catalog.store.time.time", lambda: later)
    view = await refreshed(api, "my-catalog", view["refreshed"])
    assert view["counts"]["updates"] == 1
    _, view = await api("PATCH", "catalogs/my-catalog", {"refresh": None})
    assert view["refresh"] is None


async def test_slow_catalogs_hold_nobody_up(
    api: Any, site: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than any pool has threads."""
    site.slow |= {f"/{number}" for number in range(20)}
    for number in range(20):
        url = site.put(f"/{number}", "x", content_length="5000")
        status, _ = await api("POST", "catalogs", {"name": f"slow {number}", "urls": [url]})
        assert status == 201
    await eventually(lambda: len(site.asked) >= 8)
    for path in ("runs", "catalogs", "components"):
        status, _ = await api("GET", path)
        assert status == 200
    _, found = await api("GET", "catalogs")
    assert all(item["progress"] for item in found["catalogs"] if item["id"] != "shipped")
    site.closing.set()


async def test_a_path_that_is_too_long_is_refused_and_breaks_nothing(api: Any) -> None:
    body = {"name": "mine", "kind": "file", "path": "z" * 300}
    status, error = await api("POST", "catalogs", body)
    assert (status, error["code"]) == (400, "path-too-long")
    status, found = await api("GET", "catalogs")
    assert status == 200
    assert [item["id"] for item in found["catalogs"]] == ["shipped"]
