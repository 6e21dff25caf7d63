"""`convect component`, as it is called from a terminal."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONVECT_RUNS_DIR", str(tmp_path / "convect" / "runs"))
    monkeypatch.setenv("CONVECT_INDEX_DIR", str(tmp_path / "index"))
    monkeypatch.setenv("CONVECT_CONTAINER_ENGINE", "")
    return tmp_path


@pytest.fixture
def call(folder: Path, convect: Call) -> Call:
    return functools.partial(convect, "component")


def spec(name: str, script: str = 'echo "$0" > "$1"') -> str:
    return yaml.safe_dump(
        {
            "name": name,
            "inputs": [{"name": "word", "type": "String"}],
            "outputs": [{"name": "said", "type": "String"}],
            "implementation": {
                "container": {
                    "image": "alpine",
                    "command": ["sh", "-ec", script],
                    "args": [{"inputValue": "word"}, {"outputPath": "said"}],
                }
            },
        }
    )


def test_what_ships_is_listed_and_shown(call: Call) -> None:
    code, out, _ = call("list")
    assert code == 0
    assert "Split CSV" in out
    code, out, _ = call("list", "sql", "--json")
    assert [item["name"] for item in json.loads(out)] == ["SQL query"]
    code, out, _ = call("show", "split csv")
    assert "required" in out
    assert "{inputPath: table}" in out
    code, out, _ = call("show", "Split CSV", "--text")
    assert out.startswith("name: Split CSV")


def test_a_folder_is_added_updated_and_removed(call: Call, folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "a.yaml").write_text(spec("Say"))
    (folder / "mine" / "bad.yaml").write_text("implementation: [\n")
    code, out, err = call("add", "mine", "--category", "talk")
    assert code == 0
    assert "1 imported into the catalog mine: Say" in out
    assert "bad.yaml, line" in err
    assert "Say" in call("list", "--category", "talk")[1]
    assert "mine" in call("list", "--catalogs")[1]
    assert call("remove", "mine")[0] == 0
    assert call("remove", "mine")[0] == 2


def test_what_holds_nothing_is_not_kept(call: Call, folder: Path) -> None:
    (folder / "bad.yaml").write_text("name: x\n")
    code, _, err = call("add", "bad.yaml")
    assert code == 1
    assert "The component has no “implementation”" in err
    assert "bad" not in call("list", "--catalogs")[1]
    assert call("add", "nowhere.yaml")[0] == 2
    assert call("add", "file:///etc/passwd")[0] == 2
    assert call("add", "http://localhost:1/x.yaml")[0] == 1


def test_components_are_checked(call: Call, folder: Path) -> None:
    (folder / "good.yaml").write_text(spec("Good"))
    (folder / "bad.yaml").write_text("name: x\nimplementation: {container: {}}\n")
    assert call("check", "good.yaml")[0] == 0
    code, out, err = call("check", "good.yaml", "bad.yaml")
    assert code == 2
    assert "1 good: Good; 1 bad." in out
    assert "bad.yaml, line 2: The container has no “image”." in err
    code, out, _ = call("check", "bad.yaml", "--json")
    assert json.loads(out)["errors"][0]["code"] == "unreadable-component"


def test_an_update_of_an_address_is_shown_and_taken(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, site: Any
) -> None:
    config = folder / "jupyter"
    config.mkdir()
    settings = {"Convect": {"catalog_hosts": ["127.0.0.1"]}}
    (config / "jupyter_jupyterlab_convect_config.json").write_text(json.dumps(settings))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(config))
    url = site.put("/say.yaml", spec("Say", "one"))
    assert call("add", url, "--name", "Web")[0] == 0
    site.put("/say.yaml", spec("Say", "two"))
    code, out, _ = call("update")
    assert code == 0
    assert "-    - one" in out
    assert "+    - two" in out
    assert "1 can be updated" in out
    assert "1 updated" in call("update", "--take")[1]
    assert "up to date" in call("update")[1]


def test_a_component_runs_when_it_is_approved(call: Call, folder: Path) -> None:
    (folder / "say.yaml").write_text(spec("Say"))
    call("add", "say.yaml")
    code, _, err = call("run", "Say", "-i", "word=hello")
    assert code == 2
    assert "has not been approved" in err
    assert "convect component approve" in err
    assert call("approve", "Say")[0] == 2, "nobody is there to ask"
    assert call("approve", "Say", "--yes")[0] == 0
    code, out, err = call("run", "Say", "-i", "word=hello", "--json")
    assert code == 0, err
    (step,) = json.loads(out)["steps"].values()
    assert step["outputs"] == {"said": "hello\n"}
    assert call("approve", "Say", "--withdraw")[0] == 0
    assert call("run", "Say", "-i", "word=hello")[0] == 2


def test_files_go_in_with_an_at_sign(call: Call, folder: Path) -> None:
    (folder / "t.csv").write_text("a,b\n1,2\n3,4\n")
    code, out, err = call("run", "Split CSV", "-i", "table=@t.csv", "-i", "fraction=0.5", "--json")
    assert code == 0, err
    (step,) = json.loads(out)["steps"].values()
    assert step["outputs"]["rows"] == {"first": 1, "second": 1}
    assert call("run", "Split CSV", "-i", "table=@nowhere.csv")[0] in (1, 2)
    assert call("run", "Split CSV", "-i", "table=@/etc/passwd")[0] == 2
    assert call("run", "Split CSV", "-i", "nothing=1")[0] == 2
    assert call("run", "Split CSV", "-i", "table")[0] == 2
    code, _, err = call("run", "Split CSV", "-i", "table=@t.csv", "-i", "fraction=lots")
    assert code == 2
    assert "“fraction” is a number, not “lots”." in err


def test_a_name_that_is_not_clear_says_what_there_is(call: Call, folder: Path) -> None:
    code, _, err = call("run", "Spilt CSV")
    assert code == 2
    assert "Did you mean “Split CSV”?" in err
    for name in ("one", "two"):
        (folder / f"{name}.yaml").write_text(spec("Say", f"echo {name}"))
        call("add", f"{name}.yaml")
    code, _, err = call("show", "Say")
    assert code == 2
    assert "(one.yaml)" in err
    digest = err.partition(" (one.yaml)")[0][-12:]
    assert "echo one" in call("show", digest)[1]


def test_a_folder_is_checked_as_it_would_be_imported(call: Call, folder: Path) -> None:
    graph = {
        "name": "Graph",
        "implementation": {
            "graph": {
                "tasks": {"a": {"componentRef": {"url": "say.yaml"}, "arguments": {"word": "x"}}}
            }
        },
    }
    (folder / "both").mkdir()
    (folder / "both/say.yaml").write_text(spec("Say"))
    (folder / "both/graph.yaml").write_text(yaml.safe_dump(graph))
    assert call("check", "both")[0] == 0
    assert "2 imported" in call("add", "both")[1]


def test_a_graph_is_approved_part_by_part(call: Call, folder: Path) -> None:
    tasks = {
        name: {"componentRef": {"spec": yaml.safe_load(spec(name, f"echo {name}"))}}
        for name in ("a", "b")
    }
    for task in tasks.values():
        task["arguments"] = {"word": "x"}
    graph = {"name": "Graph", "implementation": {"graph": {"tasks": tasks}}}
    (folder / "graph.yaml").write_text(yaml.safe_dump(graph))
    call("add", "graph.yaml")

    def approved() -> bool:
        return bool(json.loads(call("show", "Graph", "--json")[1])["approved"])

    assert not approved()
    call("approve", "Graph", "--yes")
    assert approved()
    call("approve", "Graph", "--withdraw")
    assert not approved()


def test_a_list_without_a_match_says_so(work: Path, convect: Any) -> None:
    code, out, err = convect("component", "list", "xyzzy")
    assert (code, out) == (0, "")
    assert "No component matches." in err


def test_a_source_of_an_impossible_name_is_refused(work: Path, convect: Any) -> None:
    code, _, err = convect("component", "add", "z" * 300)
    assert code == 2
    assert "There is no file or folder" in err


def test_the_steps_of_a_graph_are_stopped_together(
    work: Path, convect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVECT_CONTAINER_ENGINE", "")
    task = {
        "componentRef": {
            "spec": {
                "name": "Echo",
                "implementation": {"container": {"image": "alpine", "command": ["true"]}},
            }
        }
    }
    spec = {"name": "Two", "implementation": {"graph": {"tasks": {"a": task, "b": task}}}}
    (work / "two.yaml").write_text(json.dumps(spec))
    assert convect("component", "add", "two.yaml")[0] == 0
    assert convect("component", "approve", "--yes", "Two")[0] == 0
    code, out, err = convect("component", "run", "--json", "Two")
    assert code == 0, err
    run = json.loads(out)["id"]
    code, out, err = convect("runs", "stop", run, "two")
    assert (code, out) == (0, "two.a: succeeded\ntwo.b: succeeded\n"), err
    code, out, err = convect("runs", "stop", run, "three")
    assert (code, out) == (2, "")
    assert "has no step" in err
