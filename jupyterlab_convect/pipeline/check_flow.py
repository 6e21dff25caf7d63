"""Checks of conditions, loops and what runs after a failure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ConvectError
from .document import describe_type
from .expression_types import Types, faults, type_of_expression
from .expressions import Expression, Reference, parse, parse_one, weighed_references
from .flow import Flow, expressive_texts, has_rule, weighed_references_of
from .problems import Path, Problem, did_you_mean

_NAME = re.compile(r"[^\W\d]\w{0,62}")


def check_flow(document: Mapping[str, Any], types: Types) -> Iterator[Problem]:
    """`types` has the types of outputs that are known."""
    nodes = document.get("nodes", {})
    flow = Flow(nodes)
    for name, node in nodes.items():
        if has_rule(node) or node.get("kind") == "pipeline" or flow.scopes(name):
            yield from _check_id(name, flow)
        if "when" in node:
            yield from _check_condition(name, node["when"], flow, types)
        if "for_each" in node:
            yield from _check_loop(name, node["for_each"], flow, types)
        yield from _check_run_if(name, node, flow)
        yield from _check_references(name, node, flow)
        yield from _check_types(name, node, types.seen_from(flow, name))
    yield from _check_outputs(document, flow)


def _check_id(name: str, flow: Flow) -> Iterator[Problem]:
    if name.isdecimal() and any("for_each" in flow.nodes[each] for each in flow.around(name)):
        yield Problem(
            "error",
            "bad-id",
            f"“{name}” cannot be the id of a node in a loop, where numbers count the items.",
            name,
            (),
            f"Use “item-{name}”, for example.",
        )
    if flow.nodes[name].get("kind") == "group" and not flow.nodes[name].get("members"):
        yield Problem(
            "warning",
            "empty-group",
            f"Group “{name}” has a rule and no members, so there is nothing to run.",
            name,
            ("members",),
            "Add members, or remove the group.",
        )


def _check_condition(name: str, text: str, flow: Flow, types: Types) -> Iterator[Problem]:
    kind, problem = _type_of(name, text, ("when",), flow, types)
    if problem is not None:
        yield problem
    if kind not in (None, "boolean", "null"):
        yield Problem(
            "error",
            "not-a-condition",
            f"“when” must be true or false, but {text.strip()[:60]} is of type {kind}.",
            name,
            ("when",),
            "Compare it with something, as in ${{ nodes.train.outputs.auc >= 0.8 }}.",
        )


def _expression(name: str, text: str, path: Path) -> tuple[Expression | None, Problem | None]:
    """The expression that a text is; one that cannot be read is told with all the others."""
    try:
        found = parse_one(text)
    except ConvectError:
        return None, None
    if found is not None:
        return found, None
    place = ".".join(map(str, path))
    hint = (
        "Remove the words around it." if "${{" in text else f"Write ${{{{ {text.strip()[:60]} }}}}."
    )
    sentence = f"“{place}” must be one expression, but it is a string."
    return None, Problem("error", "not-an-expression", sentence, name, path, hint)


def _check_loop(name: str, loop: Mapping[str, Any], flow: Flow, types: Types) -> Iterator[Problem]:
    variable, items = loop.get("name"), loop.get("in")
    if variable is not None and not _NAME.fullmatch(variable):
        yield Problem(
            "error",
            "bad-name",
            f"“{variable[:60]}” cannot be the name of an item.",
            name,
            ("for_each", "name"),
            "A name consists of letters, digits and “_”, and does not start with a digit.",
        )
    for outer in flow.around(name):
        if variable is not None and _variable(flow.nodes[outer]) == variable:
            yield Problem(
                "error",
                "name-clash",
                f"The loops of “{name}” and of “{outer}” around it both name their item "
                f"“{variable}”.",
                name,
                ("for_each", "name"),
                "Choose another name for one of them.",
            )
    if isinstance(items, str):
        yield from _check_items(name, items, flow, types)


def _check_items(name: str, text: str, flow: Flow, types: Types) -> Iterator[Problem]:
    path = ("for_each", "in")
    if "${{" not in text:
        yield Problem(
            "error",
            "not-a-list",
            f"“in” must be a list, but it is {describe_type(text)}.",
            name,
            path,
            "Write a list, or an expression that gives one, such as ${{ parameters.regions }}.",
        )
        return
    kind, problem = _type_of(name, text, path, flow, types)
    if problem is not None:
        yield problem
    if kind not in (None, "array", "null"):
        yield Problem(
            "error",
            "not-a-list",
            f"“in” must be a list, but {text.strip()[:60]} is of type {kind}.",
            name,
            path,
            "Loop over something that is a list.",
        )


def _type_of(
    name: str, text: str, path: Path, flow: Flow, types: Types
) -> tuple[str | None, Problem | None]:
    """The type of an expression, if that is known, and what is wrong with it."""
    expression, problem = _expression(name, text, path)
    if expression is None:
        return None, problem
    return type_of_expression(expression, types.seen_from(flow, name)), problem


def _check_run_if(name: str, node: Mapping[str, Any], flow: Flow) -> Iterator[Problem]:
    run_if = node.get("run_if", "succeeded")
    if run_if == "succeeded" or flow.edges.get(name):
        return
    yield Problem(
        "warning",
        "waits-for-nothing",
        f"Node “{name}” waits for nothing, so it runs at once."
        if run_if == "always"
        else f"Node “{name}” waits for nothing that could fail, so it never runs.",
        name,
        ("run_if",),
        "List in “after” what it comes after.",
    )


def _check_references(name: str, node: Mapping[str, Any], flow: Flow) -> Iterator[Problem]:
    for path, reference, is_weak in weighed_references_of(node):
        if reference.kind == "each":
            yield from _check_each(name, path, reference, flow)
        elif reference.of == "state":
            yield from _check_state(name, path, reference, flow)
        elif reference.node is not None and reference.node in flow.nodes:
            yield from _check_member(name, path, reference.node, flow)
            if not is_weak:
                yield from _check_branch(name, path, reference, flow)


def _check_state(name: str, path: Path, reference: Reference, flow: Flow) -> Iterator[Problem]:
    """The state of a node is used after its end, and where it can be more than one."""
    other = reference.node or ""
    if flow.is_plain(other):
        sentence = f"{reference} refers to a group without a rule, which has no state."
        hint = "Name the member you mean, or give the group a rule."
        yield Problem("error", "link-to-group", sentence, name, path, hint)
    elif other in (name, *flow.around(name)) or name in flow.around(other):
        sentence = (
            f"{reference} has no value here, because “{other}” has not finished at that point."
        )
        hint = "Use it in a node that comes after it."
        yield Problem("error", "misplaced-state", sentence, name, path, hint)
    elif not _runs_anyway(name, flow):
        yield Problem(
            "error",
            "misplaced-state",
            f"{reference} is always “succeeded” here.",
            name,
            path,
            "Only a node whose “run_if” is “failed” or “always” can see anything else.",
        )


def _runs_anyway(name: str, flow: Flow) -> bool:
    """Whether it, or a group that it is in, runs after a failure."""
    return any(_is_lenient(flow.nodes[each]) for each in (name, *flow.around(name)))


def _is_lenient(node: Mapping[str, Any]) -> bool:
    return bool(node.get("run_if", "succeeded") != "succeeded")


def _check_each(name: str, path: Path, reference: Reference, flow: Flow) -> Iterator[Problem]:
    inside = path[0] not in ("when", "for_each")
    groups = [*([name] if inside else []), *flow.around(name)]
    known = [found for each in groups if (found := _variable(flow.nodes[each])) is not None]
    if reference.name in known:
        return
    if reference.name == _variable(flow.nodes[name]):
        yield Problem(
            "error",
            "each-outside-loop",
            f"“{path[0]}” of “{name}” is decided before its loop begins, so there is no "
            f"{reference} yet.",
            name,
            path,
            "Put the node into a group that has the loop.",
        )
        return
    yield Problem(
        "error",
        "each-outside-loop",
        f"{reference} is outside the loop over “{reference.name}”.",
        name,
        path,
        did_you_mean(reference.name, known)
        or "Give the node, or a group around it, a “for_each” of that name.",
    )


def _variable(node: Mapping[str, Any]) -> str | None:
    found: str | None = node.get("for_each", {}).get("name")
    return found


def _check_member(name: str, path: Path, other: str, flow: Flow) -> Iterator[Problem]:
    """A group cannot use what its own members give: it is decided before they run."""
    if path[0] not in ("when", "for_each"):
        return
    if other == name or name in flow.around(other):
        code, own = "loop-over-itself", f"“{name}” loops over its own output."
        inner = f"“{name}” loops over an output of “{other}”, which is in it."
        if path[0] == "when":
            code, own = "decided-by-itself", f"“{name}” is decided by its own output."
            inner = f"“{name}” is decided by an output of “{other}”, which is in it."
        sentence = own if other == name else inner
        hint = "Use the output of a node before it."
        yield Problem("error", code, sentence, name, path, hint)


def _check_branch(
    name: str | None, path: Path, reference: Reference, flow: Flow
) -> Iterator[Problem]:
    """What may be skipped is used outside of its branch only through `first`."""
    other = reference.node or ""
    around = set() if name is None else {name, *flow.around(name)}
    if any(_is_lenient(flow.nodes[each]) for each in around - {other, *flow.around(other)}):
        return  # It sees the outputs that exist.
    for branch in (other, *flow.around(other)):
        rule = flow.nodes[branch]
        is_branch = "when" in rule or rule.get("run_if", "succeeded") == "failed"
        if is_branch and branch not in around:
            sentence = f"“{other}” may be skipped, so {reference} may have no value here."
            if branch != other:
                sentence = (
                    f"“{other}” is in “{branch}”, which may be skipped, so {reference} may "
                    "have no value here."
                )
            hint = (
                f"Write ${{{{ first({reference.path}, …) }}}} with the output of another branch "
                "or a value, or move the node into the branch."
            )
            yield Problem("error", "branch-output", sentence, name, path, hint)
            return


def _check_outputs(document: Mapping[str, Any], flow: Flow) -> Iterator[Problem]:
    for name, text in document.get("outputs", {}).items():
        path = ("outputs", name)
        try:
            expression = parse_one(text)
        except ConvectError as error:
            yield Problem("error", error.code, error.sentence, None, path, error.hint)
            continue
        if expression is None:
            sentence = f"The output “{name}” must be one expression, but it is a string."
            hint = "Write ${{ nodes.ID.outputs.NAME }}."
            yield Problem("error", "not-an-expression", sentence, None, path, hint)
            continue
        yield from _check_output(expression, path, flow)


def _check_output(expression: Expression, path: Path, flow: Flow) -> Iterator[Problem]:
    for reference, is_weak in weighed_references(expression):
        if reference.kind == "each" or reference.of == "state":
            sentence = f"{reference} has no meaning in an output of the pipeline."
            yield Problem("error", "misplaced-expression", sentence, None, path)
        elif reference.node is not None and reference.node not in flow.nodes:
            sentence = f"{reference} refers to a node that does not exist."
            hint = did_you_mean(reference.node, flow.nodes)
            yield Problem("error", "unknown-node", sentence, None, path, hint)
        elif reference.node is not None and not is_weak:
            yield from _check_branch(None, path, reference, flow)


def _check_types(name: str, node: Mapping[str, Any], types: Types) -> Iterator[Problem]:
    """What expressions compare that cannot be compared."""
    for path, text in expressive_texts(node):
        try:
            parts = parse(text)
        except ConvectError:
            continue
        for part in parts:
            for sentence in () if isinstance(part, str) else faults(part, types):
                yield Problem("error", "wrong-type-in-expression", sentence, name, path)
