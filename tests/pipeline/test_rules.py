"""Conditions, loops, `run_if` and inner pipelines: every way to get them wrong has a sentence."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.errors import ConvectError, Refused
from jupyterlab_convect.pipeline.describe import describe, rule_of
from jupyterlab_convect.pipeline.expressions import (
    Unavailable,
    evaluate,
    explain_false,
    parse_one,
    write,
)
from jupyterlab_convect.pipeline.files import FileCache
from jupyterlab_convect.pipeline.plan import Plan, from_json, to_json
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.pipeline.validate import validate

RUN = {"kind": "command", "command": ["true"]}
VALUES = {"a.x": 3, "a.text": "t", "a.flag": True, "a.list": [1, "t"], "a.My value": 1.0}
VALUES |= {"a.flags": [True], "a.numbers": [math.nan], "a.long": 10**40 + 1}


def each(items: Any, name: str = "n", **more: Any) -> dict[str, Any]:
    return {"for_each": {"name": name, "in": items, **more}}


def use(text: str) -> dict[str, Any]:
    return {"parameters": {"p": text}}


def group(*members: str, **rule: Any) -> dict[str, Any]:
    return {"kind": "group", "members": list(members), **rule}


def document(nodes: dict[str, Any], **more: Any) -> Any:
    return {"convect": 1, "nodes": nodes, **more}


def look_up(reference: Any) -> Any:
    if reference.node == "gone":
        raise Unavailable
    return VALUES[f"{reference.node}.{reference.name}"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nodes.a.outputs.x >= 3", True),
        ("nodes.a.outputs.x < 3.5 && nodes.a.outputs.x != 4", True),
        ("!(nodes.a.outputs.flag) || false", False),
        ("nodes.a.outputs.x == 3.0", True),
        ("nodes.a.outputs.flag == 1", False),
        ("nodes.a.outputs.text in nodes.a.outputs.list", True),
        ("nodes.a.outputs.x in [1, 2, -3e1]", False),
        ('nodes.a.outputs.text == "t" && \'it\\\'s {}\' != "}}"', True),
        ('nodes.a.outputs["My value"] == 1', True),
        ("nodes.a.outputs.My value", 1.0),
        ("first(nodes.gone.outputs.x, nodes.a.outputs.x)", 3),
        ("first(nodes.gone.outputs.x > 1, null)", None),
        ("false && nodes.gone.outputs.x == 1", False),
        ("nodes.a.outputs.list == [1.0, 't']", True),
        ("nodes.a.outputs.flags == [1]", False),
        ("nodes.a.outputs.numbers == nodes.a.outputs.numbers", False),
        ("nodes.a.outputs.long > 1e39", True),
        (" && ".join(["true"] * 100), True),
    ],
)
def test_expressions_are_evaluated_and_written_back(text: str, value: Any) -> None:
    expression = parse_one(f"${{{{ {text} }}}}")
    assert expression is not None
    assert evaluate(expression, look_up) == value
    assert parse_one(f"${{{{ {write(expression)} }}}}") == expression


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nodes.a.outputs.text > 1", '"t" and 1 cannot be compared.'),
        ("nodes.a.outputs.x && true", "“&&” needs true or false, but 3 is neither."),
        ("1 in nodes.a.outputs.text", '“in” needs a list, but "t" is not one.'),
    ],
)
def test_types_that_do_not_fit_are_refused(text: str, sentence: str) -> None:
    expression = parse_one(f"${{{{ {text} }}}}")
    assert expression is not None
    with pytest.raises(Refused) as caught:
        evaluate(expression, look_up)
    assert caught.value.sentence == sentence


def test_why_a_condition_is_false() -> None:
    one, two = (
        parse_one(text)
        for text in (
            "${{ nodes.a.outputs.x > 4 }}",
            "${{ nodes.a.outputs.x > 4 || nodes.b.outputs.x > 1 }}",
        )
    )
    assert one is not None
    assert explain_false(one, look_up) == "Skipped: x > 4 was false, x was 3."
    values = {"a": 3, "b": 0}
    assert two is not None
    assert (
        explain_false(two, lambda reference: values[reference.node or ""])
        == "Skipped: a.x > 4 || b.x > 1 was false, with a.x = 3, b.x = 0."
    )


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"a": {**RUN, "when": "yes"}}, "not-an-expression", "“when” must be one expression"),
    ({"a": {**RUN, "when": "${{ 3 }}"}}, "not-a-condition", "is of type integer"),
    ({"a": {**RUN, "when": "${{ size(x) }}"}}, "bad-expression", "no function “size”"),
    (
        {"a": {**RUN, "when": f"${{{{ {' || '.join(['true'] * 5000)} }}}}"}},
        "bad-expression",
        "An expression has more than 100 operators.",
    ),
    (
        {"a": RUN, "b": {**RUN, "when": "${{ nodes.c.outputs.x }}"}},
        "unknown-node",
        "refers to a node",
    ),
    ({"a": {**RUN, **each("eu")}}, "not-a-list", "“in” must be a list, but it is a string."),
    ({"a": {**RUN, **each("${{ run.id }}")}}, "not-a-list", "is of type string"),
    ({"a": {**RUN, **each([1], "1x")}}, "bad-name", "cannot be the name of an item"),
    (
        {"a": {**RUN, **each([1])}, "g": group("a", **each([1]))},
        "name-clash",
        "The loops of “a” and of “g” around it both name their item “n”.",
    ),
    ({"a": {**RUN, **use("${{ each.n }}")}}, "each-outside-loop", "outside the loop over “n”"),
    (
        {"a": {**RUN, **each([1]), "when": "${{ each.n == 1 }}"}},
        "each-outside-loop",
        "“when” of “a” is decided before its loop begins",
    ),
    (
        {"g": group("a", **each("${{ nodes.a.outputs.x }}")), "a": RUN},
        "loop-over-itself",
        "“g” loops over an output of “a”, which is in it.",
    ),
    (
        {"a": {**RUN, **each("${{ nodes.a.outputs.x }}")}},
        "loop-over-itself",
        "“a” loops over its own output.",
    ),
    (
        {"g": group("a", when="${{ nodes.a.outputs.x > 1 }}"), "a": RUN},
        "decided-by-itself",
        "“g” is decided by an output of “a”, which is in it.",
    ),
    (
        {
            "a": {**RUN, "when": "${{ run.id == 'x' }}"},
            "b": {**RUN, **use("${{ nodes.a.outputs.x }}")},
        },
        "branch-output",
        "“a” may be skipped, so ${{ nodes.a.outputs.x }} may have no value here.",
    ),
    (
        {
            "g": group("a", when="${{ run.id == 'x' }}"),
            "a": RUN,
            "b": {**RUN, **use("${{ nodes.a.outputs.x }}")},
        },
        "branch-output",
        "“a” is in “g”, which may be skipped",
    ),
    (
        {
            "g": group("a", "b", run_if="always"),
            "a": {**RUN, "when": "${{ run.id == 'x' }}"},
            "b": {**RUN, **use("${{ nodes.a.outputs.x }}")},
        },
        "branch-output",
        "“a” may be skipped, so ${{ nodes.a.outputs.x }} may have no value here.",
    ),
    ({"g": group("a"), "a": {**RUN, "after": ["g"]}}, "after-own-group", "is a member of it"),
    ({"g": group("a", after=["a"]), "a": RUN}, "after-own-group", "which is a member of it"),
    (
        {
            "g": group("a", "b", **each([1])),
            "a": RUN,
            "b": {**RUN, "after": ["c"]},
            "c": {**RUN, "after": ["a"]},
        },
        "cycle",
        "These nodes wait for each other: c → g → c.",
    ),
    (
        {"a": RUN, "b": {**RUN, **use("${{ nodes.a.state }}")}},
        "misplaced-state",
        "is always “succeeded” here",
    ),
    ({"g": group("a", after=["g"]), "a": RUN}, "cycle", "Node “g” waits for itself."),
    ({"g": group("a", after=["g"], **each([1])), "a": RUN}, "cycle", "Node “g” waits for itself."),
    (
        {
            "s": {
                "kind": "pipeline",
                "path": "s.pipeline",
                "parameters": {"n": "${{ nodes.s.outputs.x }}"},
            }
        },
        "cycle",
        "Node “s” waits for itself.",
    ),
    (
        {"g": group("a", when="${{ nodes.a.state == 'failed' }}", run_if="always"), "a": RUN},
        "misplaced-state",
        "${{ nodes.a.state }} has no value here, because “a” has not finished at that point.",
    ),
    (
        {
            "g": group("a"),
            "a": RUN,
            "b": {**RUN, **use("${{ nodes.g.state }}"), "run_if": "failed"},
        },
        "link-to-group",
        "${{ nodes.g.state }} refers to a group without a rule, which has no state.",
    ),
    (
        {"g": group("a", run_if="always"), "a": {**RUN, **use("${{ nodes.g.state }}")}},
        "misplaced-state",
        "${{ nodes.g.state }} has no value here, because “g” has not finished at that point.",
    ),
    (
        {"a": {**RUN, "when": "${{ 'x' == 1 }}"}},
        "wrong-type-in-expression",
        '"x" is of type string and 1 of type integer, so they cannot be compared.',
    ),
    ({"a": {**RUN, "when": "${{ true < 1 }}"}}, "wrong-type-in-expression", "numbers or strings"),
    ({"a": {**RUN, "when": "${{ !1 }}"}}, "wrong-type-in-expression", "needs true or false"),
    ({"a": {**RUN, "when": "${{ 1 in 'ab' }}"}}, "wrong-type-in-expression", "needs a list"),
    ({"g": group("7", **each([1])), "7": RUN}, "bad-id", "numbers count the items"),
    (
        {"a": RUN, "p": {"kind": "pipeline", "path": "x.json"}},
        "unknown-file-type",
        "not a pipeline",
    ),
    (
        {"a": RUN, "b": {**RUN, **use("${{ nodes.g.outputs.x }}")}, "g": group("a")},
        "link-to-group",
        "refers to a group",
    ),
]


@pytest.mark.parametrize(("nodes", "code", "words"), WRONG)
def test_every_mistake_has_its_sentence(nodes: dict[str, Any], code: str, words: str) -> None:
    found = [problem for problem in validate(document(nodes)) if problem.severity == "error"]
    assert [problem.code for problem in found if words in problem.message] == [code], found


@pytest.mark.parametrize(
    "nodes",
    [
        {"a": {**RUN, **each([1], "x")}, "b": {**RUN, "when": "${{ nodes.a.outputs.y != null }}"}},
        {
            "a": {**RUN, "when": "${{ true }}"},
            "b": {**RUN, **use("${{ first(nodes.a.outputs.x, 1) }}")},
        },
        {
            "a": {**RUN, "when": "${{ true }}"},
            "b": {**RUN, **use("${{ nodes.a.outputs.x }}"), "run_if": "always"},
        },
        {
            "g": group("a", "b", when="${{ true }}"),
            "a": RUN,
            "b": {**RUN, **use("${{ nodes.a.outputs.x }}")},
        },
        {
            "a": {**RUN, "when": "${{ true }}"},
            "g": group("b", run_if="always"),
            "b": {**RUN, **use("${{ nodes.a.outputs.x }}")},
        },
        {"1": RUN, "g": group("1")},
    ],
)
def test_what_is_right_is_not_refused(nodes: dict[str, Any]) -> None:
    assert [each for each in validate(document(nodes)) if each.severity == "error"] == []


def test_what_waits_for_nothing_is_told() -> None:
    found = validate(document({"a": {**RUN, "run_if": "always"}, "b": {**RUN, "run_if": "failed"}}))
    assert [problem.message for problem in found] == [
        "Node “a” waits for nothing, so it runs at once.",
        "Node “b” waits for nothing that could fail, so it never runs.",
    ]


def test_edges_across_a_border_are_those_of_the_group() -> None:
    nodes = {
        "before": RUN,
        "outer": group("inner", when="${{ true }}"),
        "inner": group("a", "b", **each([1])),
        "a": {**RUN, **use("${{ nodes.before.outputs.x }}")},
        "b": {**RUN, "after": ["a"]},
        "after": {**RUN, **use("${{ first(nodes.b.outputs.y, 1) }}")},
    }
    plan = resolve(document(nodes), root=Path())
    found = {unit.id: (unit.group, unit.after, unit.weak) for unit in plan.parts}
    assert found == {
        "outer": (None, ("before",), ()),
        "inner": ("outer", (), ()),
        "before": (None, (), ()),
        "a": ("inner", (), ()),
        "b": ("inner", ("a",), ()),
        "after": (None, ("outer",), ("outer",)),
    }
    assert [step.id for step in plan.steps] == ["before", "a", "b", "after"]
    assert from_json(Plan, json.loads(json.dumps(to_json(plan)))) == plan


INNER = {
    "parameters": {"n": {"type": "integer", "required": True}, "who": {"default": "x"}},
    "outputs": {"y": "${{ nodes.i.outputs.y }}"},
    "nodes": {"i": {**RUN, "parameters": {"n": "${{ parameters.n }}"}}},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    def write(name: str, content: dict[str, Any]) -> None:
        (tmp_path / name).write_text(json.dumps({"convect": 1, **content}))

    write("inner.pipeline", INNER)
    for name, other in (("me", "me"), ("one", "two"), ("two", "one")):
        node = {"kind": "pipeline", "path": f"{other}.pipeline"}
        write(f"{name}.pipeline", {"nodes": {"again": node}})
    write("numbers.pipeline", {"nodes": {"7": RUN}})
    write("bad.pipeline", {"nodes": {"b": {**RUN, "when": "${{ 1 }}"}}})
    return tmp_path


def inner(path: str = "inner.pipeline", **given: Any) -> dict[str, Any]:
    return {"kind": "pipeline", "path": path, "parameters": given}


@pytest.mark.parametrize(
    ("nodes", "path", "code", "words"),
    [
        (
            {"p": inner("me.pipeline")},
            "me.pipeline",
            "contains-itself",
            "“me.pipeline” contains itself: me.pipeline → me.pipeline.",
        ),
        (
            {"p": inner("one.pipeline")},
            "x.pipeline",
            "bad-pipeline",
            "contains itself: one.pipeline → two.pipeline → one.pipeline.",
        ),
        (
            {"p": inner("inne.pipeline")},
            "x.pipeline",
            "missing-file",
            "There is no file “inne.pipeline”.",
        ),
        (
            {"p": inner("bad.pipeline")},
            "x.pipeline",
            "bad-pipeline",
            "In “bad.pipeline”, node “b”: “when” must be true or false",
        ),
        ({"p": inner()}, "x.pipeline", "missing-parameter", "needs a value for its parameter “n”"),
        (
            {"p": inner(n="x")},
            "x.pipeline",
            "wrong-parameter-type",
            'expects “n” to be of type integer, but "x" is not.',
        ),
        ({"p": inner(n=1, m=2)}, "x.pipeline", "unknown-parameter", "has no parameter “m”"),
        (
            {"p": inner(n=1, who="a ${{ run.id }}")},
            "x.pipeline",
            "mixed-parameter",
            "a value or a single expression",
        ),
        (
            {"p": inner(n=1), "a": {**RUN, **use("${{ nodes.p.outputs.z }}")}},
            "x.pipeline",
            "unknown-output",
            "The pipeline “p” has no output “z”.",
        ),
    ],
)
def test_a_pipeline_in_a_pipeline_is_checked(
    root: Path, nodes: dict[str, Any], path: str, code: str, words: str
) -> None:
    found = [
        problem
        for problem in validate(document(nodes), path=path, files=FileCache(root))
        if problem.severity == "error"
    ]
    assert [problem.code for problem in found if words in problem.message] == [code], found


def test_a_node_of_a_pipeline_in_a_loop_is_not_called_by_a_number(root: Path) -> None:
    def problems(**rule: Any) -> list[str]:
        nodes = {"p": {"kind": "pipeline", "path": "numbers.pipeline", **rule}}
        found = validate(document(nodes), path="x.pipeline", files=FileCache(root))
        return [problem.message for problem in found]

    assert problems() == []
    (message,) = problems(**each([1]))
    assert message.startswith("“numbers.pipeline” has a node “7” and runs in a loop")


def test_a_parameter_that_is_no_list_is_refused_before_the_run() -> None:
    nodes = {"a": {**RUN, **each("${{ parameters.regions }}")}}
    made = document(nodes, parameters={"regions": {}})
    with pytest.raises(Refused, match="runs for each item of a list, but what it is given is a"):
        resolve(made, root=Path(), parameters={"regions": "eu"})


def test_rules_are_described_in_words(root: Path) -> None:
    nodes = {
        "a": {**RUN, **each("${{ nodes.p.outputs.y }}", parallel=4)},
        "p": {**inner(n=1), "when": "${{ run.name == 'x' }}"},
        "c": {**RUN, "after": ["a"], "run_if": "always"},
    }
    nodes["a"]["for_each"]["in"] = "${{ first(nodes.p.outputs.y, null) }}"
    plan = resolve(document(nodes), root=root, path="x.pipeline")
    words = {unit.id: rule_of(unit) for unit in plan.parts}
    assert words == {
        "p": 'when run.name == "x"; runs inner.pipeline',
        "p.i": "",
        "a": "for each n in first(nodes.p.outputs.y, null), 4 at a time",
        "c": "always",
    }
    told = describe(document(nodes), root=root, path="x.pipeline")
    assert list(told["rules"]) == ["a", "c", "p"]


def test_pipelines_inside_are_described_too(root: Path) -> None:
    (root / "sub").mkdir()
    fit = {"kind": "script", "path": "fit.py", "image": "gpu", "when": "${{ parameters.n > 1 }}"}
    inner_one = {"convect": 1, "parameters": {"n": {"default": 1}}, "nodes": {"fit": fit}}
    (root / "sub/one.pipeline").write_text(json.dumps(inner_one))
    nodes = {"p": {**inner("sub/one.pipeline"), "for_each": {"name": "k", "in": [1]}}}
    told = describe(document(nodes), root=root, path="x.pipeline")
    assert told["kinds"] == {"pipeline": 1}
    assert told["images"] == {"gpu": ["p.fit"]}
    assert told["rules"]["p.fit"] == {"when": "${{ parameters.n > 1 }}"}
    assert {
        (file["path"], file["role"], *file["nodes"], file["exists"]) for file in told["files"]
    } == {
        ("sub/one.pipeline", "pipeline", "p", True),
        ("sub/fit.py", "source", "p.fit", False),
    }
    for path, words in (("bad", "In “bad.pipeline”"), ("me", "contains itself")):
        with pytest.raises(ConvectError, match=words):
            describe(document({"p": inner(f"{path}.pipeline")}), root=root, path="x.pipeline")


def test_the_file_of_a_pipeline_inside_is_listed(root: Path) -> None:
    told = describe(document({"p": inner(n=1)}), root=root, path="x.pipeline")
    assert {"path": "inner.pipeline", "role": "pipeline", "nodes": ["p"], "exists": True} in told[
        "files"
    ]
