"""What was imported stays as it was, works offline, and changes by choice."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyterlab_convect.catalog.approvals import Approvals
from jupyterlab_convect.catalog.entries import catalog_from_json, new_catalog_id
from jupyterlab_convect.catalog.fetch import Folder, folder_of, plain_address
from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.sources import Auth, Catalog, addresses_in, hosts_of
from jupyterlab_convect.catalog.store import CatalogStore
from jupyterlab_convect.errors import Conflict, ConvectError, Missing

SpecText = Callable[..., str]


def test_the_set_that_ships_is_there_from_the_start(store: CatalogStore) -> None:
    (shelf,) = store.catalogs()
    assert shelf.catalog.kind == "shipped"
    assert not [entry for entry in shelf.entries if entry.error]
    assert all(store.approvals.has(store.component(entry.digest)) for entry in shelf.entries)


def add_urls(store: CatalogStore, *urls: str, **more: Any) -> Any:
    store.add(Catalog(id="web", name="Web", urls=urls, **more))
    return store.refresh("web")


def test_good_and_bad_ones_stand_side_by_side(
    store: CatalogStore, site: Any, spec_text: SpecText
) -> None:
    shelf = add_urls(
        store,
        site.put("/good.yaml", spec_text("Good")),
        site.put("/bad.yaml", "name: 3\nimplementation: {}\n"),
        site.url + "/dead.yaml",
        site.put("/page.yaml", "<html>", content_type="text/html"),
    )
    assert [entry.name for entry in shelf.entries if entry.digest] == ["Good"]
    errors = {entry.name: entry.error for entry in shelf.entries if entry.error}
    assert errors["bad.yaml"]["line"] == 2
    assert "was not found (404)" in errors["dead.yaml"]["message"]
    assert "web page" in errors["page.yaml"]["message"]


def test_what_was_imported_works_when_its_source_is_gone(
    store: CatalogStore, site: Any, spec_text: SpecText
) -> None:
    text = spec_text("Good")
    (entry,) = add_urls(store, site.put("/good.yaml", text)).entries
    site.pages.clear()
    again = CatalogStore(store.folder, store.policy)
    assert again.component(entry.digest).name == "Good"
    assert again.text(entry.digest) == text
    (kept,) = again.refresh("web").entries
    assert kept.digest == entry.digest
    assert kept.error is not None
    site.close()
    (kept,) = again.refresh("web").entries
    assert kept.digest == entry.digest


def test_an_update_is_shown_and_taken_by_choice(
    store: CatalogStore, site: Any, spec_text: SpecText
) -> None:
    url = site.put("/a.yaml", spec_text("A", "old"))
    (first,) = add_urls(store, url).entries
    site.put("/a.yaml", spec_text("A", "new"))
    (seen,) = store.refresh("web").entries
    assert seen.digest == first.digest
    assert seen.update not in (None, first.digest)
    difference = store.difference(seen.digest, seen.update)
    assert "-    - old\n+    - new\n" in difference
    with pytest.raises(Missing):
        store.take("web", ["sha256:" + "0" * 64])
    (taken,) = store.take("web", [seen.update]).entries
    assert (taken.digest, taken.update) == (seen.update, None)


def test_an_update_that_cannot_be_read_changes_nothing(
    store: CatalogStore, site: Any, spec_text: SpecText
) -> None:
    (first,) = add_urls(store, site.put("/a.yaml", spec_text("A"))).entries
    site.put("/a.yaml", "implementation: [")
    (kept,) = store.refresh("web").entries
    assert kept.digest == first.digest
    assert kept.error is not None
    assert kept.update is None


def test_a_list_is_one_catalog_of_many(store: CatalogStore, site: Any, spec_text: SpecText) -> None:
    for number in range(40):
        site.put(f"/parts/c{number}.yaml", spec_text(f"C{number}"))
    lines = "\n".join(["# mine", *(f"parts/c{number}.yaml" for number in range(40))])
    shelf = add_urls(store, site.put("/list.txt", lines))
    assert len(shelf.entries) == 40
    assert shelf.entries[39].source == site.url + "/parts/c39.yaml"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://h/a.yaml\nhttps://h/b\n", ["https://h/a.yaml", "https://h/b"]),
        ("- a.yaml\n- 'b/c.yml'\n", ["https://h/l/a.yaml", "https://h/l/b/c.yml"]),
        ("components:\n- a.yaml\n", ["https://h/l/a.yaml"]),
        ("name: x\n", None),
        ("", None),
        ("implementation: a.yaml\n", None),
    ],
)
def test_lists_are_told_from_components(text: str, found: list[str] | None) -> None:
    assert addresses_in(text.encode(), "https://h/l/list") == found


def test_a_folder_is_watched(store: CatalogStore, tmp_path: Path, spec_text: SpecText) -> None:
    folder = tmp_path / "mine"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "a.yaml").write_text(spec_text("A"))
    (folder / "sub" / "component.yaml").write_text(spec_text("B"))
    (folder / "values.yaml").write_text("replicas: 3\n")
    (folder / ".git" / "c.yaml").write_text(spec_text("C"))
    store.add(Catalog(id="mine", name="Mine", kind="folder", path=str(folder)))
    assert [entry.name for entry in store.refresh("mine").entries] == ["A", "B"]
    (folder / "d.yaml").write_text(spec_text("D"))
    (folder / "a.yaml").write_text(spec_text("A2"))
    (folder / "sub" / "component.yaml").unlink()
    assert [entry.name for entry in store.entries(catalog="mine")] == ["A2", "D"]


def test_a_folder_that_is_gone_keeps_its_components(
    store: CatalogStore, tmp_path: Path, spec_text: SpecText
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "a.yaml").write_text(spec_text("A"))
    store.add(Catalog(id="mine", name="Mine", kind="folder", path=str(folder)))
    store.refresh("mine")
    folder.rename(tmp_path / "elsewhere")
    shelf = store.catalog("mine")
    assert [entry.name for entry in shelf.entries] == ["A"]
    assert shelf.error is not None
    assert "does not exist" in shelf.error["message"]


def test_a_list_on_this_machine_stays_in_its_folder(
    store: CatalogStore, tmp_path: Path, site: Any, spec_text: SpecText
) -> None:
    folder = tmp_path / "lists"
    folder.mkdir()
    (tmp_path / "outside.yaml").write_text(spec_text("Outside"))
    (folder / "a.yaml").write_text(spec_text("A"))
    web = site.put("/web.yaml", spec_text("B"))
    (folder / "list.txt").write_text(f"a.yaml\n../outside.yaml\nnone.yaml\n{web}\n")
    store.add(Catalog(id="l", name="L", kind="file", path=str(folder / "list.txt")))
    entries = store.refresh("l").entries
    assert [entry.name for entry in entries if entry.digest] == ["A", "B"]
    assert [str(entry.error["message"]) for entry in entries if entry.error] == [
        "It is outside the folder of its list.",
        "It does not exist.",
    ]


@pytest.mark.parametrize(
    ("page", "archive"),
    [
        ("/group/sub/repo/-/tree/main/components", "/group/sub/repo/-/archive/main/repo-main.zip"),
        ("/me/repo/src/branch/main/components", "/me/repo/archive/main.zip"),
    ],
)
def test_a_folder_of_a_repository_is_one_catalog(
    store: CatalogStore, site: Any, spec_text: SpecText, page: str, archive: str
) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("repo-main/README.md", "x")
        file.writestr("repo-main/components/a/component.yaml", spec_text("A"))
        file.writestr("repo-main/components/b.yaml", spec_text("B"))
        file.writestr("repo-main/components/values.yaml", "x: 1")
        file.writestr("repo-main/other/component.yaml", spec_text("Other"))
    address = site.put(archive, data.getvalue(), content_type="application/zip")
    root = address.removesuffix(archive)
    store.add(Catalog(id="repo", name="Repo", urls=(root + page,)))
    entries = store.refresh("repo").entries
    assert [entry.name for entry in entries] == ["A", "B"]
    assert all(entry.source.startswith(root) and "/raw/" in entry.source for entry in entries)
    site.put(archive, b"not a zip", content_type="application/zip")
    (broken,) = store.refresh("repo").entries[:1]
    assert broken.error is not None
    assert "damaged" in broken.error["message"]


@pytest.mark.parametrize(
    ("page", "file"),
    [
        (
            "https://github.com/o/r/blob/main/a/c.yaml",
            "https://raw.githubusercontent.com/o/r/main/a/c.yaml",
        ),
        ("https://git.lab/g/s/r/-/blob/main/c.yaml?x=1", "https://git.lab/g/s/r/-/raw/main/c.yaml"),
        (
            "https://gitea.io/o/r/src/branch/main/c.yaml",
            "https://gitea.io/o/r/raw/branch/main/c.yaml",
        ),
        (" https://host/c.yaml ", "https://host/c.yaml"),
    ],
)
def test_the_page_of_a_file_leads_to_the_file(page: str, file: str) -> None:
    assert plain_address(page) == file
    assert folder_of(page) is None


def test_folders_of_github_are_read_where_it_keeps_them() -> None:
    folder = folder_of("https://github.com/o/r/tree/v1/components/")
    assert folder == Folder(
        "https://codeload.github.com/o/r/zip/v1",
        "https://raw.githubusercontent.com/o/r/v1/",
        "components",
    )
    whole = folder_of("https://github.com/o/r")
    assert whole is not None
    assert (whole.archive.endswith("/zip/HEAD"), whole.path) == (True, "")
    catalog = Catalog(id="x", name="X", urls=("https://github.com/o/r",))
    assert hosts_of(catalog) == {"github.com", "codeload.github.com", "raw.githubusercontent.com"}


def test_thousands_are_listed_and_searched(
    store: CatalogStore, tmp_path: Path, spec_text: SpecText
) -> None:
    documents = [
        spec_text(
            f"Component {number}",
            description=f"Does thing {number % 7}",
            inputs=[{"name": f"col{number % 5}"}],
        )
        for number in range(2000)
    ]
    path = tmp_path / "all.yaml"
    path.write_text("---\n".join(documents))
    store.add(Catalog(id="all", name="All", kind="file", path=str(path), categories=("bulk",)))
    store.refresh("all")
    assert len(store.entries(category="bulk")) == 2000
    assert [entry.name for entry in store.entries("COMPONENT 1234")] == ["Component 1234"]
    assert len(store.entries("thing col3")) == 400
    assert store.entries("nowhere") == []


def test_a_name_of_several_is_not_guessed(
    store: CatalogStore, tmp_path: Path, spec_text: SpecText
) -> None:
    (tmp_path / "a.yaml").write_text(spec_text("Same", "1") + "---\n" + spec_text("Same", "2"))
    store.add(Catalog(id="x", name="X", kind="file", path=str(tmp_path / "a.yaml")))
    first, second = store.refresh("x").entries
    with pytest.raises(ConvectError, match="several components"):
        store.find("Same")
    assert store.find(first.digest).part == 0
    assert store.find(second.digest[7:19]).part == 1
    with pytest.raises(Missing):
        store.find("Other")


def test_approval_is_given_to_commands_and_can_be_withdrawn(
    store: CatalogStore, component: Callable[..., Component]
) -> None:
    one, other = component(["x"]), component(["y"])
    assert not store.approvals.has(one)
    store.approvals.give(one, user="me")
    again = CatalogStore(store.folder)
    assert again.approvals.has(one)
    assert not again.approvals.has(other)
    again.approvals.withdraw(one)
    assert not store.approvals.has(one)


def test_catalogs_are_configured_and_removed(
    store: CatalogStore, site: Any, spec_text: SpecText
) -> None:
    add_urls(store, site.put("/a.yaml", spec_text("A")))
    with pytest.raises(Conflict):
        store.add(Catalog(id="web", name="Again"))
    shelf = store.configure(Catalog(id="web", name="New", categories=("c",)))
    assert [entry.categories for entry in shelf.entries] == [("c",)]
    store.remove("web")
    with pytest.raises(Missing):
        store.catalog("web")
    with pytest.raises(Conflict):
        store.remove("shipped")
    with pytest.raises(Missing):
        store.catalog("../../etc")


def test_a_secret_is_named_and_never_stored(
    store: CatalogStore, site: Any, spec_text: SpecText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    add_urls(store, site.put("/a.yaml", spec_text("A")), auth=Auth(env="MY_TOKEN"))
    assert site.asked[0][1]["Authorization"] == "Bearer s3cret"
    for path in store.folder.rglob("*"):
        assert not path.is_file() or b"s3cret" not in path.read_bytes()
    monkeypatch.delenv("MY_TOKEN")
    shelf = store.refresh("web")
    assert shelf.error is not None
    assert "MY_TOKEN" in shelf.error["message"]
    assert shelf.entries[0].digest


def test_a_secret_is_not_sent_over_an_open_connection(store: CatalogStore) -> None:
    shelf = add_urls(store, "http://example.org/a.yaml", auth=Auth(env="HOME"))
    assert shelf.error is not None
    assert "unencrypted connection" in shelf.error["message"]


def test_a_dead_reference_can_be_replaced(
    store: CatalogStore, site: Any, spec_text: SpecText
) -> None:
    dead = site.url + "/dead.yaml"
    graph = {
        "name": "G",
        "implementation": {
            "graph": {"tasks": {"t": {"componentRef": {"url": dead, "digest": "0" * 64}}}}
        },
    }
    url = site.put("/g.yaml", yaml.safe_dump(graph))
    (entry,) = add_urls(store, url).entries
    assert entry.error is not None
    assert dead in str(entry.error["hint"])
    twin = site.put("/twin.yaml", spec_text("Twin"))
    store.configure(Catalog(id="web", name="Web", urls=(url,), replacements={dead: twin}))
    (entry,) = store.refresh("web").entries
    assert entry.format == "graph"
    assert entry.error is None


@pytest.mark.parametrize(
    "value",
    [
        {"id": "a", "name": " "},
        {"id": "a"},
        {"id": "a", "name": 3},
        {"id": "a", "name": "A", "urls": ["file:///etc/passwd"]},
        {"id": "a", "name": "A", "urls": [3]},
        {"id": "a", "name": "A", "urls": 3},
        {"id": "a", "name": "A", "replacements": {"x": "file:///etc"}},
        {"id": "a", "name": "A", "refresh": 1},
        {"id": "a", "name": "A", "refresh": "often"},
    ],
)
def test_a_malformed_configuration_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(ConvectError):
        catalog_from_json(value)


def test_a_damaged_catalog_says_which_file(store: CatalogStore) -> None:
    store.add(Catalog(id="a", name="A"))
    path = store.folder / "catalogs" / "a.json"
    path.write_text(json.dumps({"catalog": 3}))
    with pytest.raises(ConvectError, match="damaged"):
        store.catalog("a")
    path.write_text("{")
    with pytest.raises(ConvectError, match="cannot be read"):
        store.catalog("a")


def test_ids_come_from_names_and_differ() -> None:
    assert new_catalog_id("My Catalog!", []) == "my-catalog"
    assert new_catalog_id("My Catalog!", ["my-catalog"]) == "my-catalog-2"
    assert new_catalog_id("目录", []) == "catalog"


def test_a_catalog_that_is_removed_while_it_is_read_stays_removed(
    store: CatalogStore, site: Any, spec_text: SpecText
) -> None:
    store.add(Catalog(id="web", name="Web", urls=(site.put("/a.yaml", spec_text("A")),)))
    real = store._import

    def removed_meanwhile(*arguments: Any) -> Any:
        store.remove("web")
        return real(*arguments)

    store._import = removed_meanwhile  # type: ignore[method-assign]
    with pytest.raises(Missing):
        store.refresh("web")
    assert [shelf.catalog.id for shelf in store.catalogs()] == ["shipped"]


def test_a_damaged_catalog_leaves_the_others_alone(store: CatalogStore) -> None:
    store.add(Catalog(id="a", name="A"))
    (store.folder / "catalogs" / "a.json").write_text("{")
    damaged = store.catalogs()[1]
    assert damaged.error is not None
    assert store.entries("split")
    store.remove("a")
    assert len(store.catalogs()) == 1


def test_a_graph_whose_parts_changed_shows_what_changed(
    store: CatalogStore, tmp_path: Path, site: Any, spec_text: SpecText
) -> None:
    leaf = site.put("/leaf.yaml", spec_text("Leaf", "old"))
    tasks = {"t": {"componentRef": {"url": leaf}}}
    graph = {"name": "G", "implementation": {"graph": {"tasks": tasks}}}
    add_urls(store, site.put("/g.yaml", yaml.safe_dump(graph)))
    site.put("/leaf.yaml", spec_text("Leaf", "new"))
    (entry,) = store.refresh("web").entries
    assert entry.update is not None
    difference = store.difference(entry.digest, entry.update)
    assert '-      "old"' in difference
    assert '+      "new"' in difference


def test_a_file_may_stand_in_for_a_dead_reference_of_a_file(
    store: CatalogStore, tmp_path: Path, spec_text: SpecText
) -> None:
    dead = "https://host.invalid/x.yaml"
    tasks = {"t": {"componentRef": {"url": dead}}}
    graph = {"name": "G", "implementation": {"graph": {"tasks": tasks}}}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "g.yaml").write_text(yaml.safe_dump(graph))
    (tmp_path / "mine" / "twin.yaml").write_text(spec_text("Twin"))
    (tmp_path / "outside.yaml").write_text(spec_text("Outside"))
    for name, works in (("twin.yaml", True), ("../outside.yaml", False)):
        catalog = Catalog(
            id="f" if works else "g",
            name="F",
            kind="file",
            path=str(tmp_path / "mine" / "g.yaml"),
            replacements={dead: name},
        )
        store.add(catalog)
        (entry,) = store.refresh(catalog.id).entries
        assert bool(entry.digest) is works


def test_a_catalog_is_looked_at_again_when_its_time_has_come(
    store: CatalogStore, site: Any, spec_text: SpecText, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = site.put("/a.yaml", spec_text("A", "old"))
    before = add_urls(store, url, refresh=3600.0)
    store.add(Catalog(id="asked", name="Only when asked", urls=(url,)))
    site.put("/a.yaml", spec_text("A", "new"))
    assert store.refresh_due() == []
    later = time.time() + 3601
    monkeypatch.setattr("jupyterlab_convect.catalog.store.time.time", lambda: later)
    assert store.refresh_due() == ["web"]
    # What is newer is offered; what is pinned stays.
    (entry,) = store.catalog("web").entries
    assert entry.digest == before.entries[0].digest
    assert entry.update not in (None, entry.digest)
    assert store.refresh_due() == []


@pytest.mark.parametrize("path", ["z" * 300, "/" + "a/" * 3000, "a\0b", "a\nb"])
def test_a_path_that_cannot_be_spoils_no_other_catalog(
    store: CatalogStore, tmp_path: Path, path: str
) -> None:
    """Not even when it was stored by somebody who did not look."""
    stored = {"catalog": {"id": "odd", "name": "odd", "kind": "folder", "path": path}}
    (store.folder / "catalogs").mkdir(parents=True, exist_ok=True)
    (store.folder / "catalogs" / "odd.json").write_text(json.dumps(stored))
    odd = next(shelf for shelf in store.catalogs() if shelf.catalog.id == "odd")
    assert odd.error is not None
    assert store.entries("split rows")
    store.remove("odd")
    assert [shelf.catalog.id for shelf in store.catalogs()] == ["shipped"]


@pytest.mark.parametrize("name", ["a.yaml", "component.yaml"])
def test_a_pipe_in_a_folder_holds_nobody_up(store: CatalogStore, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / name)
    store.add(Catalog(id="pipes", name="pipes", kind="folder", path=str(folder)))
    (entry,) = store.catalog("pipes").entries
    assert entry.error is not None
    assert "not a regular file" in entry.error["message"]


def test_a_file_that_must_not_be_read_is_an_error_of_its_catalog(
    store: CatalogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "list.yaml").write_text("x")

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("jupyterlab_convect.catalog.sources._bytes", refuse)
    store.add(Catalog(id="one", name="one", kind="file", path=str(tmp_path / "list.yaml")))
    error = store.catalog("one").error
    assert error is not None
    assert "Permission denied" in error["message"]


def test_approvals_given_at_the_same_time_are_all_kept(
    tmp_path: Path, component: Callable[..., Component]
) -> None:
    components = [component([str(number)]) for number in range(40)]
    approvals = [Approvals(tmp_path) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        for number, each in enumerate(components):
            pool.submit(approvals[number % 4].give, each)
    assert all(approvals[0].has(each) for each in components)


def test_all_dead_references_of_a_graph_are_told_at_once(store: CatalogStore, site: Any) -> None:
    dead = [f"{site.url}/dead-{number}.yaml" for number in range(3)]
    tasks = {f"t{number}": {"componentRef": {"url": url}} for number, url in enumerate(dead)}
    text = yaml.safe_dump({"name": "G", "implementation": {"graph": {"tasks": tasks}}})
    (entry,) = add_urls(store, site.put("/graph.yaml", text)).entries
    assert entry.error is not None
    assert entry.error["hint"] == f"Give a replacement for {', '.join(dead)}."
    assert str(entry.error["message"]).endswith("Nor can 2 more.")
