"""A notebook, components and a graph in one pipeline, on the local runtime."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyterlab_convect.catalog.entries import Shelf
from jupyterlab_convect.catalog.sources import Catalog
from jupyterlab_convect.pipeline.plan import to_json
from jupyterlab_convect.runs.model import Request
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

pytestmark = pytest.mark.slow

COUNT = {
    "name": "Count lines",
    "inputs": [{"name": "text"}, {"name": "skip", "type": "Integer", "default": "0"}],
    "outputs": [{"name": "lines", "type": "Integer"}, {"name": "copy"}],
    "implementation": {
        "container": {
            "image": "alpine",
            "command": ["sh", "-ec", 'echo $(($(wc -l < "$0") - $1)) > "$2"; cp "$0" "$3"'],
            "args": [
                {"inputPath": "text"},
                {"inputValue": "skip"},
                {"outputPath": "lines"},
                {"outputPath": "copy"},
            ],
        }
    },
}


def graph() -> dict[str, Any]:
    """Counts the lines of a file twice, the second time from what the first left behind."""

    def output(name: str, task: str) -> dict[str, Any]:
        return {"taskOutput": {"taskId": task, "outputName": name}}

    return {
        "name": "Count twice",
        "inputs": [{"name": "data"}],
        "outputs": [{"name": "first", "type": "Integer"}, {"name": "second", "type": "Integer"}],
        "implementation": {
            "graph": {
                "tasks": {
                    "Once": {
                        "componentRef": {"spec": COUNT},
                        "arguments": {"text": {"graphInput": {"inputName": "data"}}},
                    },
                    "Again": {
                        "componentRef": {"spec": COUNT},
                        "arguments": {
                            "text": output("copy", "Once"),
                            "skip": output("lines", "Once"),
                        },
                    },
                },
                "outputValues": {
                    "first": output("lines", "Once"),
                    "second": output("lines", "Again"),
                },
            }
        },
    }


@pytest.fixture
async def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workspace]:
    monkeypatch.setenv("CONVECT_CONTAINER_ENGINE", "")
    folders = {"runs_dir": str(tmp_path / "c" / "runs"), "index_dir": str(tmp_path / "index")}
    made = Workspace(Settings(**folders))
    yield made
    await made.close()


def import_all(workspace: Workspace, folder: Path, *specs: dict[str, Any]) -> dict[str, Any]:
    """Import components, approve them, and give the definitions by name."""
    folder.mkdir()
    for number, spec in enumerate(specs):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    store = workspace.catalog
    store.add(Catalog(id="mine", name="Mine", kind="folder", path=str(folder)))
    shelf: Shelf = store.refresh("mine")
    found = {}
    for entry in shelf.entries:
        component = store.component(entry.digest)
        store.approvals.give(component)
        found[entry.name] = to_json(component)
    return found


async def run(workspace: Workspace, root: Path, nodes: Any, definitions: Any, **more: Any) -> Any:
    document = {
        "convect": 1,
        "name": "mixed",
        "nodes": nodes,
        "components": {item["digest"]: item for item in definitions.values()},
    }
    (root / "mixed.pipeline").write_text(json.dumps(document))
    made = workspace.make(Request(path="mixed.pipeline", root=str(root), **more))
    await workspace.submit(made)
    return await workspace.engine.wait(made.id, 120)


def explain(state: Any) -> Any:
    return {step.id: (step.state, step.reason, step.cache) for step in state.steps.values()}


async def test_notebook_component_and_graph_pass_data_both_ways(
    workspace: Workspace, tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    root = tmp_path / "root"
    write_notebook(
        root / "make.ipynb",
        "from pathlib import Path\n"
        "Path('made').mkdir(exist_ok=True)\n"
        "Path('made/text.txt').write_text('one\\ntwo\\nthree\\n')",
        ("outputs", "text = 'a\\nb\\n'\nskip = 1"),
    )
    write_notebook(
        root / "use.ipynb",
        ("parameters", "lines = 0\npath = ''\nfirst = 0\nsecond = 0"),
        "from pathlib import Path\nseen = Path(path).read_text()",
        ("outputs", "told = [lines, seen, first, second]"),
    )
    definitions = import_all(workspace, tmp_path / "specs", COUNT, graph())
    count, twice = (definitions[name]["digest"] for name in ("Count lines", "Count twice"))
    nodes = {
        "make": {"kind": "notebook", "path": "make.ipynb", "outputs": ["made/*.txt"]},
        "count": {
            "kind": "component",
            "component": count,
            "inputs": {
                "text": "${{ nodes.make.outputs.text }}",
                "skip": "${{ nodes.make.outputs.skip }}",
            },
        },
        "twice": {
            "kind": "component",
            "component": twice,
            "after": ["make"],
            "inputs": {"data": {"file": "made/text.txt"}},
        },
        "use": {
            "kind": "notebook",
            "path": "use.ipynb",
            "parameters": {
                "lines": "${{ nodes.count.outputs.lines }}",
                "path": "${{ nodes.count.outputs.copy }}",
                "first": "${{ nodes.twice.outputs.first }}",
                "second": "${{ nodes.twice.outputs.second }}",
            },
        },
    }
    state = await run(workspace, root, nodes, definitions)
    assert state.state == "succeeded", explain(state)
    assert set(state.steps) == {"make", "count", "twice.once", "twice.again", "use"}
    assert state.steps["use"].outputs == {"told": [1, "a\nb\n", 3, 0]}
    assert not (root / "outputs").exists(), "what components leave stays out of the user's folder"


async def test_a_component_is_reused_when_nothing_has_changed(
    workspace: Workspace, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "text.txt").write_text("one\n")
    definitions = import_all(workspace, tmp_path / "specs", COUNT)
    digest = definitions["Count lines"]["digest"]
    nodes = {
        "a": {
            "kind": "component",
            "component": digest,
            "cache": True,
            "inputs": {"text": {"file": "text.txt"}},
        },
        "b": {
            "kind": "component",
            "component": digest,
            "cache": True,
            "inputs": {"text": "${{ nodes.a.outputs.copy }}"},
        },
    }
    first = await run(workspace, root, nodes, definitions)
    assert first.state == "succeeded", explain(first)
    again = await run(workspace, root, nodes, definitions)
    assert {step.state for step in again.steps.values()} == {"cached"}, explain(again)
    (root / "text.txt").write_text("one\ntwo\n")
    changed = await run(workspace, root, nodes, definitions)
    assert {step.state for step in changed.steps.values()} == {"succeeded"}, explain(changed)
    assert changed.steps["b"].outputs["lines"] == 2


async def test_a_failing_part_of_a_graph_is_named_and_the_rest_is_skipped(
    workspace: Workspace, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    broken = graph()
    spec = json.loads(json.dumps(COUNT))
    spec["implementation"]["container"]["command"] = ["sh", "-c", "echo no luck; exit 4"]
    broken["implementation"]["graph"]["tasks"]["Once"]["componentRef"]["spec"] = spec
    definitions = import_all(workspace, tmp_path / "specs", broken)
    digest = definitions["Count twice"]["digest"]
    nodes = {"g": {"kind": "component", "component": digest, "inputs": {"data": "x"}}}
    state = await run(workspace, root, nodes, definitions)
    assert state.state == "failed"
    assert state.steps["g.once"].reason == "g.once exited with code 4: no luck"
    assert state.steps["g.again"].state == "skipped"


async def test_a_component_does_not_find_what_an_earlier_step_deleted(
    workspace: Workspace, tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    root = tmp_path / "root"
    write_notebook(root / "delete.ipynb", "import os; os.unlink('data.txt')")
    (root / "data.txt").write_text("old")
    definitions = import_all(workspace, tmp_path / "specs", COUNT)
    digest = definitions["Count lines"]["digest"]
    nodes = {
        "delete": {"kind": "notebook", "path": "delete.ipynb"},
        "count": {
            "kind": "component",
            "component": digest,
            "after": ["delete"],
            "inputs": {"text": {"file": "data.txt"}},
        },
    }
    state = await run(workspace, root, nodes, definitions)
    assert state.steps["count"].state == "failed", explain(state)
    assert "An earlier step deleted the file data.txt" in state.steps["count"].reason
