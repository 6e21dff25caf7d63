"""The files that runs made, by REST."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., Path]

MAKES = (
    ("parameters", "text = 'weights'"),
    "import os, pathlib\n"
    "pathlib.Path('model.txt').write_text(text)\n"
    "pathlib.Path('out').mkdir(exist_ok=True)\n"
    "pathlib.Path('out/图.csv').write_text('a,b')\n"
    "os.path.lexists('away') or os.symlink('/etc/passwd', 'away')\n"
    "pathlib.Path('old.txt').unlink(missing_ok=True)",
)


@pytest.fixture(autouse=True)
def project(jp_root_dir: Path) -> None:
    (jp_root_dir / "work" / ".convect").mkdir(parents=True)


def became(made: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {file["path"]: (file["change"], file["kept"], file["file"]) for file in made["files"]}


async def test_made_and_declared_files_are_one_list_that_is_served(
    api: Any, jp_root_dir: Path, write_notebook: Write
) -> None:
    folder = jp_root_dir / "work" / "sub"
    write_notebook(folder / "makes.ipynb", *MAKES)
    (folder / "old.txt").write_text("old")
    (folder / "same.txt").write_text("same")
    settings = {"outputs": ["model.txt", "same.txt"]}
    _, run = await api("POST", "runs", {"path": "work/sub/makes.ipynb", "settings": settings})
    run = await api.ended(run["id"])
    assert run["state"] == "succeeded", run["reason"]

    _, made = await api("GET", f"runs/{run['id']}/made")
    assert made["project"] == str(jp_root_dir / "work")
    assert became(made) == {
        "sub/model.txt": ("created", True, "made/sub/model.txt"),
        "sub/out/图.csv": ("created", True, "made/sub/out/图.csv"),
        "sub/away": ("created", True, None),
        "sub/old.txt": ("deleted", False, None),
        "sub/same.txt": (None, True, "files/same.txt"),
    }
    assert {(file["step"], file["attempt"]) for file in made["files"]} == {("makes", 1)}
    place = f"runs/{run['id']}/steps/makes/1"
    for path, content in (("made/sub/out/图.csv", b"a,b"), ("files/same.txt", b"same")):
        response = await api.response("GET", f"{place}/{path}")
        assert (response.code, response.body) == (200, content)
        assert response.headers["Content-Type"] == "application/octet-stream"
    for path in ("sub/away", "sub/old.txt", "../step.json", "sub"):
        assert (await api.response("GET", f"{place}/made/{path}")).code in (400, 404)


async def test_asking_again_keeps_saying_what_is_in_the_project(
    api: Any, jp_root_dir: Path, write_notebook: Write
) -> None:
    write_notebook(jp_root_dir / "work" / "makes.ipynb", *MAKES)
    (jp_root_dir / "work" / "old.txt").write_text("old")
    _, run = await api("POST", "runs", {"path": "work/makes.ipynb"})
    run = await api.ended(run["id"])
    paths = ["away", "model.txt", "old.txt", "out/图.csv"]
    assert run["files"] == {"put": paths, "kept": {}}
    (jp_root_dir / "work" / "model.txt").write_text("by hand")
    _, made = await api("POST", f"runs/{run['id']}/made")
    assert made["kept"] == {"model.txt": "somebody made it after the run was submitted"}
    assert made["put"] == [path for path in paths if path != "model.txt"]
    _, made = await api("POST", f"runs/{run['id']}/made", {"replace": True})
    assert (made["put"], made["kept"]) == (paths, {})
    assert (jp_root_dir / "work" / "model.txt").read_text() == "weights"
    assert (await api("POST", f"runs/{run['id']}/made", {"replace": 1}))[0] == 400


async def test_the_files_of_a_step_that_failed_can_be_looked_at(
    api: Any, jp_root_dir: Path, write_notebook: Write
) -> None:
    write_notebook(jp_root_dir / "work" / "fails.ipynb", *MAKES, "raise ValueError('no')")
    _, run = await api("POST", "runs", {"path": "work/fails.ipynb"})
    run = await api.ended(run["id"])
    _, made = await api("GET", f"runs/{run['id']}/made")
    assert became(made)["model.txt"] == ("created", True, "made/model.txt")
    assert (made["put"], (jp_root_dir / "work" / "model.txt").exists()) == ([], False)
    response = await api.response("GET", f"runs/{run['id']}/steps/fails/1/made/model.txt")
    assert response.body == b"weights"


async def test_the_files_of_many_items_are_given_by_page(api: Any, jp_root_dir: Path) -> None:
    folder = jp_root_dir / "work"
    (folder / "write.py").write_text(
        "import os\nopen(os.environ['NAME'], 'w').write(os.environ['NAME'])\n"
        "open('same.txt', 'w').write('same')\n"
    )
    nodes = {
        "write": {
            "kind": "script",
            "path": "write.py",
            "env": {"NAME": "${{ each.name }}"},
            "for_each": {"name": "name", "in": ["a", "b", "c"]},
        }
    }
    document = {"convect": 1, "nodes": nodes}
    _, run = await api("POST", "runs", {"path": "work/w.pipeline", "document": document})
    run = await api.ended(run["id"])
    assert run["state"] == "succeeded", run["reason"]
    address = f"runs/{run['id']}/made"
    _, made = await api("GET", address, step="write.1", limit=3)
    assert (made["total"], made["to_put"], len(made["files"])) == (6, 4, 3)
    assert [file["step"] for file in made["files"][:2]] == ["write.1", "write.1"]
    replaced = {file["path"]: file["replaced_by"] for file in made["files"][:2]}
    assert replaced == {"b": None, "same.txt": "write.2"}
    _, rest = await api("GET", address, step="write.1", limit=3, offset=3)
    assert len(rest["files"]) == 3
    _, wanted = await api("GET", address, to_put="true")
    assert sorted(file["path"] for file in wanted["files"]) == ["a", "b", "c", "same.txt"]
    assert (await api("GET", address, limit="x"))[0] == 400
