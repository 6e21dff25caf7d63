"""Every mistake gets a problem that says where, what and what to do."""

from __future__ import annotations

import copy
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.pipeline.files import FileCache
from jupyterlab_convect.pipeline.problems import Problem, did_you_mean
from jupyterlab_convect.pipeline.validate import validate

Edit = Callable[[dict[str, Any]], object]


def put(*path: str | int, value: Any) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        target: Any = document
        for step in path[:-1]:
            target = target.setdefault(step, {}) if isinstance(target, dict) else target[step]
        target[path[-1]] = value

    return edit


def train(*path: str | int, value: Any) -> Edit:
    return put("nodes", "train", *path, value=value)


def command(**distributed: Any) -> Edit:
    node = {"kind": "command", "command": ["true"], "distributed": distributed}
    return put("nodes", "c", value=node)


def errors(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]


def test_a_good_pipeline_has_no_problems(churn: dict[str, Any], root: Path) -> None:
    assert validate(churn, root=root, path="churn.pipeline", parameters={"lr": 1}) == []


@pytest.mark.parametrize(
    ("edit", "code", "node", "path", "words"),
    [
        # shape
        (put("nodes", value=[]), "wrong-type", None, ("nodes",), "must be an object"),
        (put("nodes", "train", value=3), "wrong-type", "train", (), "must be an object"),
        (train("timeout", value=[1]), "wrong-type", "train", ("timeout",), "a number or a string"),
        (train("retries", value=1.5), "wrong-type", "train", ("retries",), "a whole number"),
        (train("retries", value=True), "wrong-type", "train", ("retries",), "a boolean"),
        (train("after", value=[1]), "wrong-type", "train", ("after", 0), "Item 1 of “after”"),
        (train("kind", value="notebok"), "bad-value", "train", ("kind",), "“notebook”?"),
        (train("imagee", value="x"), "unknown-property", "train", ("imagee",), "“image”?"),
        (put("defualts", value={}), "unknown-property", None, ("defualts",), "“defaults”?"),
        (
            train("resources", "gpus", value=1),
            "unknown-property",
            "train",
            ("resources", "gpus"),
            "“gpu”?",
        ),
        (train("gpu", value=1), "unknown-property", "train", ("gpu",), "belongs in “resources”"),
        (train("depends_on", value=[]), "unknown-property", "train", ("depends_on",), "“after”?"),
        (train("after", value="x"), "wrong-type", "train", ("after",), 'Write a list: ["x"]'),
        (train("retries", value="2"), "wrong-type", "train", ("retries",), "without quotes"),
        (train("env", value={"A": 1}), "wrong-type", "train", ("env", "A"), 'in quotes: "1"'),
        (
            put("nodes", "c", value={"kind": "command", "command": "python x.py"}),
            "wrong-type",
            "c",
            ("command",),
            '["python", "x.py"]',
        ),
        (
            put("parameters", "lr", value=0.1),
            "wrong-type",
            None,
            ("parameters", "lr"),
            'Write {"default": 0.1}',
        ),
        (
            put("parameters", "lr", "type", value="float"),
            "bad-value",
            None,
            ("parameters", "lr", "type"),
            "“number”?",
        ),
        (train("pull_policy", value="always"), "bad-value", "train", ("pull_policy",), "“Always”?"),
        (lambda d: d["nodes"]["train"].pop("path"), "missing-property", "train", (), "“path”"),
        (lambda d: d["nodes"]["train"].pop("kind"), "missing-property", "train", (), "“kind”"),
        (train("after", value=["prepare"] * 2), "duplicate-item", "train", ("after", 1), "twice"),
        (put("layout", "train", value=[1]), "bad-value", None, ("layout", "train"), "2 to 4"),
        # amounts
        (
            train("resources", "memory", value="2GB"),
            "bad-quantity",
            "train",
            ("resources", "memory"),
            "Did you mean 2Gi?",
        ),
        (
            train("resources", "cpu", value={"request": 2, "limit": "1500m"}),
            "request-over-limit",
            "train",
            ("resources", "cpu"),
            "limit",
        ),
        (
            train("resources", "cpu", value=-1),
            "bad-value",
            "train",
            ("resources", "cpu"),
            "at least 0",
        ),
        (train("timeout", value="soon"), "bad-duration", "train", ("timeout",), "2h"),
        (train("timeout", value="2 hours"), "bad-duration", "train", ("timeout",), "mean 2h?"),
        # names
        (put("nodes", "a/b", value={"kind": "group", "members": []}), "bad-id", "a/b", (), "a-b"),
        (
            put("comments", value={"train": {"text": "x"}}),
            "duplicate-id",
            None,
            ("comments", "train"),
            "",
        ),
        (train("env", value={"A-B": "1"}), "bad-name", "train", ("env", "A-B"), "environment"),
        (
            train("secrets", value=[{"env": "1A", "name": "s", "key": "k"}]),
            "bad-name",
            "train",
            ("secrets", 0, "env"),
            "1A",
        ),
        (
            train("kubernetes", value={"labels": {"a b": "x"}}),
            "bad-label",
            "train",
            ("kubernetes", "labels", "a b"),
            "label",
        ),
        (
            train("kubernetes", value={"labels": {"a": "x" * 64}}),
            "bad-label",
            "train",
            ("kubernetes", "labels", "a"),
            "value",
        ),
        (
            train("kubernetes", value={"pull_secrets": ["No_Way"]}),
            "bad-name",
            "train",
            ("kubernetes", "pull_secrets", 0),
            "pull secret",
        ),
        (
            train("kubernetes", value={"tolerations": [{"value": "x"}]}),
            "bad-value",
            "train",
            ("kubernetes", "tolerations", 0),
            "Exists",
        ),
        (train("image", value="a b"), "bad-image", "train", ("image",), "image name"),
        (
            train("volumes", value=[{"claim": "c", "path": "data"}]),
            "bad-path",
            "train",
            ("volumes", 0, "path"),
            "data",
        ),
        (
            train("volumes", value=[{"claim": "c", "path": "/d"}, {"claim": "e", "path": "/d"}]),
            "duplicate-name",
            "train",
            ("volumes", 1, "path"),
            "/d",
        ),
        (
            train("metrics", value={"loss": "("}),
            "bad-pattern",
            "train",
            ("metrics", "loss"),
            "loss",
        ),
        (
            train("metrics", value={"loss": "x"}),
            "bad-pattern",
            "train",
            ("metrics", "loss"),
            "one group",
        ),
        # links
        (train("after", value=["prepar"]), "unknown-node", "train", ("after", 0), "“prepare”?"),
        (
            put("nodes", "g", value={"kind": "group", "members": ["nobody"]}),
            "unknown-node",
            "g",
            ("members", 0),
            "nobody",
        ),
        (
            put("nodes", "g", value={"kind": "group", "members": ["g"]}),
            "cycle",
            "g",
            ("members",),
            "inside itself",
        ),
        (
            put("nodes", "prepare", "after", value=["train"]),
            "cycle",
            "prepare",
            ("after",),
            "prepare → train → prepare",
        ),
        (train("after", value=["train"]), "cycle", "train", ("after",), "itself"),
        (
            put("nodes", "prepare", "env", value={"A": "${{ nodes.train.outputs.x }}"}),
            "cycle",
            "prepare",
            ("env", "A"),
            "the expression in “env.A” of “prepare”",
        ),
        # values
        (
            train("parameters", "lr", value="${{ parameters.lrr }}"),
            "unknown-parameter",
            "train",
            ("parameters", "lr"),
            "“lr”?",
        ),
        (
            train("env", value={"A": "${{ nodes.prepar.outputs.x }}"}),
            "unknown-node",
            "train",
            ("env", "A"),
            "“prepare”?",
        ),
        (
            train("parameters", "lr", value=["${{ nope }}"]),
            "bad-expression",
            "train",
            ("parameters", "lr", 0),
            "parameters.NAME",
        ),
        (
            train("parameters", "lr", value="${{ nodes.prepare.rows }}"),
            "bad-expression",
            "train",
            ("parameters", "lr"),
            "mean nodes.prepare.outputs.rows?",
        ),
        (
            train("parameters", "lr", value="${{ parameter.lr }}"),
            "bad-expression",
            "train",
            ("parameters", "lr"),
            "mean parameters.lr?",
        ),
        (
            train("image", value="${{ run.id }}"),
            "misplaced-expression",
            "train",
            ("image",),
            "image",
        ),
        (
            put("defaults", "env", value={"A": "${{ nodes.train.outputs.x }}"}),
            "misplaced-expression",
            None,
            ("defaults", "env", "A"),
            "every node",
        ),
        (
            put("parameters", "lr", "default", value="fast"),
            "wrong-parameter-type",
            None,
            ("parameters", "lr", "default"),
            "number",
        ),
        (
            put("parameters", "lr", "choices", value=[1, 2]),
            "not-a-choice",
            None,
            ("parameters", "lr", "default"),
            "choices",
        ),
        # paths
        (train("path", value="../x.ipynb"), "outside-root", "train", ("path",), "outside"),
        (train("path", value="/etc/x.ipynb"), "outside-root", "train", ("path",), "outside"),
        (
            train("dependencies", value=["../../*"]),
            "outside-root",
            "train",
            ("dependencies", 0),
            "",
        ),
        (train("working_folder", value="../up"), "outside-root", "train", ("working_folder",), ""),
        (train("outputs", value=["/tmp/x"]), "unreachable-output", "train", ("outputs", 0), ""),
        (train("path", value="train.txt"), "unknown-file-type", "train", ("path",), ".ipynb"),
        (train("path", value="train.py"), "unknown-file-type", "train", ("path",), "script"),
        # distributed
        (
            put(
                "nodes",
                "g",
                value={"kind": "component", "component": "sha256:0", "distributed": {}},
            ),
            "not-distributable",
            "g",
            ("distributed",),
            "Only a notebook, a script or a command",
        ),
        (
            command(processes="gpu"),
            "no-gpu-asked",
            "c",
            ("distributed", "processes"),
            "one process per GPU",
        ),
        (
            command(processes=4, outputs_from=4),
            "no-such-rank",
            "c",
            ("distributed", "outputs_from"),
            "the last one is 3",
        ),
        (
            command(nodes=2, min_nodes=3),
            "too-few-nodes",
            "c",
            ("distributed", "min_nodes"),
            "at least 3 nodes, but has 2",
        ),
        (
            command(nodes=3, min_nodes=2, processes=2, outputs_from=2),
            "no-such-rank",
            "c",
            ("distributed", "outputs_from"),
            "The node of rank 2 may be lost",
        ),
        (
            command(processes="tpu"),
            "bad-value",
            "c",
            ("distributed", "processes"),
            "gpu",
        ),
        (command(processes=0), "bad-value", "c", ("distributed", "processes"), "at least 1"),
        (command(process=2), "unknown-property", "c", ("distributed", "process"), "processes"),
        # components
        (
            put("nodes", "c", value={"kind": "component", "component": "sha256:0"}),
            "missing-component",
            "c",
            ("component",),
            "catalog",
        ),
        (
            put(
                "nodes",
                "c",
                value={"kind": "component", "component": "bash", "source": "x/bash_operator.py"},
            ),
            "missing-component",
            "c",
            ("component",),
            "operator of Airflow",
        ),
        # version
        (put("convect", value=2), "newer-version", None, ("convect",), "Update"),
        (put("convect", value="1"), "bad-version", None, ("convect",), "must be 1"),
    ],
)
def test_mistakes_are_found(
    churn: dict[str, Any],
    edit: Edit,
    code: str,
    node: str | None,
    path: tuple[Any, ...],
    words: str,
) -> None:
    before = copy.deepcopy(churn)
    edit(churn)
    broken = copy.deepcopy(churn)
    found = [p for p in validate(churn) if (p.code, p.node, p.path) == (code, node, path)]
    assert len(found) == 1, validate(churn)
    assert found[0].severity == "error"
    assert words in f"{found[0].message} {found[0].hint}"
    assert churn == broken != before


def test_a_default_distributes_what_can_be_distributed(churn: dict[str, Any]) -> None:
    churn["defaults"] = {**churn.get("defaults", {}), "distributed": {"processes": 2}}
    assert errors(validate(churn)) == []


def test_a_broken_node_does_not_make_its_neighbours_wrong(churn: dict[str, Any]) -> None:
    churn["nodes"]["prepare"] = {"kind": "notebook", "path": 7, "outputs": "x"}
    assert {problem.path for problem in validate(churn)} == {("path",), ("outputs",)}


@pytest.mark.parametrize("document", [None, 3, [], "x", {}, {"convect": 1}, {"convect": None}])
def test_what_is_no_pipeline_gives_problems_and_not_exceptions(document: Any) -> None:
    assert errors(validate(document))


def test_components_are_checked_against_their_definition(churn: dict[str, Any]) -> None:
    ends = {
        "inputs": [{"name": "a"}, {"name": "b", "optional": True}],
        "outputs": [{"name": "sum"}],
    }
    churn["components"] = {"sha256:0": ends}
    churn["nodes"]["add"] = {"kind": "component", "component": "sha256:0", "inputs": {"c": 1}}
    churn["nodes"]["train"]["parameters"]["rows"] = "${{ nodes.add.outputs.summ }}"
    found = {(p.code, p.node, p.path) for p in validate(churn)}
    assert found == {
        ("unknown-input", "add", ("inputs", "c")),
        ("missing-input", "add", ("inputs",)),
        ("unknown-output", "train", ("parameters", "rows")),
    }
    churn["nodes"]["add"]["inputs"] = {"a": "${{ run.id }}"}
    churn["nodes"]["train"]["parameters"]["rows"] = "${{ nodes.add.outputs.sum }}"
    assert validate(churn) == []
    state = "${{ nodes.add.state }} ${{ nodes.prepare.state }}"
    last = {"kind": "command", "command": ["echo", state], "run_if": "always"}
    churn["nodes"]["last"] = last
    assert validate(churn) == []


@pytest.mark.parametrize(
    ("kind", "value", "severity"),
    [
        ("Integer", 3, None),
        ("Integer", 3.0, None),
        ("Integer", "3", None),
        ("Integer", None, None),
        ("Integer", {"file": "n.txt"}, None),
        ("Integer", "${{ parameters.name }}", None),
        ("Integer", "${{ parameters.lr }}", None),
        ("Integer", "${{ nodes.prepare.outputs.rows }}", None),
        ("String", 3, None),
        ({"GCSPath": {"data_type": "CSV"}}, 3, None),
        (None, [1], None),
        ("Integer", 3.5, "error"),
        ("Integer", True, "error"),
        ("JsonArray", 3, "error"),
        ("Integer", "many", "warning"),
        ("Bool", "${{ parameters.lr }}", "warning"),
        ("Float", "${{ parameters.names }}", "warning"),
    ],
)
def test_inputs_of_components_are_of_their_type(
    churn: dict[str, Any], kind: Any, value: Any, severity: str | None
) -> None:
    churn["parameters"] |= {"name": {"type": "string"}, "names": {"type": "array"}}
    churn["components"] = {"sha256:0": {"inputs": [{"name": "a", "type": kind, "optional": True}]}}
    churn["nodes"]["add"] = {"kind": "component", "component": "sha256:0", "inputs": {"a": value}}
    found = [(p.severity, p.code, p.path) for p in validate(churn)]
    wrong = (severity, "wrong-type-for-component", ("inputs", "a"))
    assert found == ([] if severity is None else [wrong])


def test_outputs_of_components_have_types_too(churn: dict[str, Any], root: Path) -> None:
    outputs = [{"name": "sum", "type": "Float"}, {"name": "table", "type": "CSV"}]
    churn["components"] = {"sha256:0": {"outputs": outputs}}
    churn["nodes"]["add"] = {"kind": "component", "component": "sha256:0"}
    churn["nodes"]["train"]["parameters"]["rows"] = "${{ nodes.add.outputs.sum }}"
    assert validate(churn, root=root) == []
    churn["nodes"]["train"]["parameters"]["rows"] = "${{ nodes.add.outputs.table }}"
    (problem,) = validate(churn, root=root)
    assert (problem.code, problem.path) == ("wrong-type-for-notebook", ("parameters", "rows"))


@pytest.mark.parametrize(
    ("text", "almost"),
    [
        ("{{ parameters.lr }}", True),
        ("${ nodes.prepare.outputs.rows }", True),
        ("a {{run.id}} b", True),
        ("${{ parameters.lr }}", False),
        ("${HOME} {{ other }} {parameters.x}", False),
    ],
)
def test_what_is_almost_an_expression_is_told(
    churn: dict[str, Any], text: str, almost: bool
) -> None:
    churn["nodes"]["train"]["env"] = {"A": text}
    found = [(p.severity, p.code, p.path) for p in validate(churn)]
    assert found == ([("warning", "almost-expression", ("env", "A"))] if almost else [])


def test_a_tangle_of_cycles_is_told_in_short_sentences() -> None:
    nodes = {f"n{i}": {"kind": "command", "command": ["x"]} for i in range(40)}
    for name, node in nodes.items():
        node["after"] = [other for other in nodes if other != name]
    found = validate({"convect": 1, "nodes": nodes})
    assert {problem.code for problem in found} == {"cycle", "more-cycles"}
    assert max(len(problem.message) for problem in found) < 200


def test_a_thousand_mistakes_are_told_as_soon_as_none(root: Path) -> None:
    """By the work that is done, not by a clock: similar names are compared among few only."""
    compared = Counter[int]()

    def count(name: str, known: Any, **options: Any) -> list[str]:
        compared[len(known)] += 1
        return []

    nodes = {
        f"n{i}": {
            "kind": "script",
            "path": f"gone{i}.py",
            "after": [f"m{i}"],
            "env": {"A": f"${{{{ nodes.o{i}.outputs.x }}}}"},
        }
        for i in range(1000)
    }
    for i in range(500):
        (root / f"here{i}.py").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("difflib.get_close_matches", count)
        found = validate({"convect": 1, "nodes": nodes}, root=root)
    assert len(found) == 3000
    assert max(compared, default=0) <= 100


def test_values_of_a_run(churn: dict[str, Any]) -> None:
    churn["parameters"]["who"] = {"type": "string", "required": True, "choices": ["me", "you"]}

    def codes(**values: Any) -> list[str]:
        return [problem.code for problem in validate(churn, parameters=values)]

    assert codes(who="me") == codes(who="me", lr=2) == []
    assert codes() == ["missing-parameter"]
    assert codes(who="me", lr="x") == ["wrong-parameter-type"]
    assert codes(who="they") == ["not-a-choice"]
    assert codes(who="me", rl=1) == ["unknown-parameter"]
    assert codes(who="me", lr="${{ run.id }}") == ["wrong-parameter-type", "misplaced-expression"]
    assert "missing-parameter" not in [problem.code for problem in validate(churn)]


def test_files_are_not_alike_because_both_are_notebooks() -> None:
    assert did_you_mean("gone.ipynb", ["slow.ipynb"], suffix=".ipynb") is None
    meant = did_you_mean("laod.ipynb", ["load.ipynb"], suffix=".ipynb")
    assert meant == "Did you mean “load.ipynb”?"


def test_files_are_checked_against_the_document(
    churn: dict[str, Any], root: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(root / "train.ipynb", ("parameters", "rate = 0.5\nrows = 'many'\nkey: str"))
    churn["nodes"]["train"]["parameters"]["rows"] = 3
    churn["nodes"]["train"]["dependencies"] = ["none.csv", "*.none", "data/x.csv"]
    churn["nodes"]["train"]["env"] = {"N": "${{ nodes.prepare.outputs.row }}"}
    last = {"kind": "command", "command": ["echo", "${{ nodes.prepare.state }}"]}
    churn["nodes"]["last"] = {**last, "run_if": "always"}
    churn["nodes"]["gone"] = {"kind": "script", "path": "gone.py"}
    (root / "gon.py").touch()
    problems = validate(churn, root=root)
    assert "Did you mean “gon.py”?" in [problem.hint for problem in problems]
    found = {(p.severity, p.code, p.node, p.path) for p in problems}
    assert found == {
        ("warning", "unknown-parameter-of-notebook", "train", ("parameters", "lr")),
        ("warning", "wrong-type-for-notebook", "train", ("parameters", "rows")),
        ("error", "missing-parameter-of-notebook", "train", ("parameters",)),
        ("error", "missing-file", "train", ("dependencies", 0)),
        ("warning", "no-match", "train", ("dependencies", 1)),
        ("warning", "unknown-output", "train", ("env", "N")),
        ("error", "missing-file", "gone", ("path",)),
    }


def test_a_broken_notebook_is_a_problem(churn: dict[str, Any], root: Path) -> None:
    (root / "train.ipynb").write_text("{")
    assert [problem.code for problem in errors(validate(churn, root=root))] == ["bad-notebook"]


def test_paths_start_from_the_folder_of_the_pipeline(
    churn: dict[str, Any], root: Path, write_notebook: Callable[..., Path]
) -> None:
    churn["nodes"]["train"]["path"] = "../train.ipynb"
    write_notebook(root / "sub/prepare.ipynb", ("outputs", "rows = 1"))
    assert validate(churn, root=root, path="sub/churn.pipeline") == []


def test_no_file_is_touched_twice(
    churn: dict[str, Any], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = ["prepare.ipynb", "train.ipynb", "gone.csv", "data.csv", "*.txt"]
    node = {**churn["nodes"]["train"], "dependencies": needed}
    churn["nodes"] |= {f"n{i}": node for i in range(20)}
    churn["nodes"]["gone"] = {"kind": "script", "path": "gone.py", "dependencies": ["gone.py"]}
    for name in ("data.csv", "a.txt"):
        (root / name).touch()
    touched: Counter[str] = Counter()
    original_open = Path.open
    original_stat: Any = os.stat if sys.version_info >= (3, 11) else Path.stat

    def count(path: Any) -> None:
        touched[os.path.relpath(path, root)] += 1

    def spy_open(self: Path, *arguments: Any, **options: Any) -> Any:
        count(self)
        return original_open(self, *arguments, **options)

    def spy_stat(path: Any, *arguments: Any, **options: Any) -> Any:
        count(path)
        return original_stat(path, *arguments, **options)

    files = FileCache(root)
    monkeypatch.setattr(Path, "open", spy_open)
    # In Python 3.10 a path has its own way to the system.
    place = os if sys.version_info >= (3, 11) else Path
    monkeypatch.setattr(place, "stat", spy_stat)
    validate(churn, files=files)
    files.digest("train.ipynb")
    monkeypatch.undo()
    files_touched = {name: touched[name] for name in touched if not name.startswith((".", "*"))}
    assert files_touched == dict.fromkeys(
        ("prepare.ipynb", "train.ipynb", "gone.csv", "data.csv", "a.txt", "gone.py"), 1
    )


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "a\r", "\x7f", "z" * 256, "数" * 86])
@pytest.mark.parametrize("place", ["outputs", "dependencies", "working_folder", "path"])
def test_names_that_no_file_can_have_are_refused(
    churn: dict[str, Any], root: Path, place: str, name: str
) -> None:
    value = {"path": f"{name}.py", "working_folder": name}.get(place, [name])
    train(place, value=value)(churn)
    found = [problem for problem in errors(validate(churn, root=root)) if problem.node == "train"]
    assert "bad-path" in {problem.code for problem in found}
    assert "\0" not in "".join(problem.message for problem in found if problem.code == "bad-path")
