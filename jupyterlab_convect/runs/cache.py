"""What the result of a step depends on, as digests that can be compared and explained."""

from __future__ import annotations

from collections.abc import Mapping

from ..pipeline.plan import Json, Step, digest_of, to_json

WORDS = {
    "code": "its code",
    "command": "its command",
    "parameters": "its parameters",
    "inputs": "the results it uses",
    "files": "the files it needs",
    "modules": "the code beside it",
    "variables": "its environment variables",
    "image": "its image",
    "environment": "Python or the packages",
    "kernel": "its kernel",
    "outputs": "the files it is to make",
    "folder": "its working folder",
}


def parts_of(
    step: Step,
    component: Json,
    upstream: Mapping[str, str],
    modules: str | None = None,
    environment: str | None = None,
) -> dict[str, str]:
    """Digests of what a bound step depends on.

    `upstream` has a fingerprint of each result it builds on, `modules` one of the code that
    it may have imported, `environment` one of the interpreter's packages. What only decides
    where and how patiently it runs is no part of it.
    """
    facts: dict[str, Json] = {
        "code": [step.kind, step.digest or step.path, step.component, component],
        "command": list(step.command),
        "parameters": dict(step.parameters),
        "inputs": dict(upstream),
        "files": to_json(step.dependencies),
        "modules": modules,
        "variables": [dict(step.env), to_json(step.secrets)],
        "image": step.image,
        "environment": environment,
        "kernel": step.kernel,
        "outputs": [list(step.outputs), dict(step.metrics)],
        "folder": step.working_folder,
    }
    return {name: _short(fact) for name, fact in facts.items()}


def fingerprint(values: Mapping[str, Json], files: list[dict[str, Json]], key: str) -> str:
    """What others can see of a result.

    A step that declares nothing may still leave something behind, so that its own
    dependencies stand for it.
    """
    if not values and not files:
        return key
    return _short([dict(values), [[file.get("path"), file.get("digest")] for file in files]])


def why_not(parts: Mapping[str, str], last: Mapping[str, str] | None, last_run: str) -> str:
    """Why no earlier result could be taken over, given the last one of this step."""
    if last is None:
        return "Not reused: there is no earlier result."
    names = [name for name in parts if parts[name] != last.get(name)]
    changed = [WORDS.get(name, name) for name in names]
    if not changed:
        return f"Not reused: the result of run {last_run} is not complete any more."
    verb = "have" if len(names) > 1 or names[0].endswith("s") else "has"
    return f"Not reused: {_listed(changed)} {verb} changed since run {last_run}."


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _short(value: Json) -> str:
    return digest_of(value)[7:31]
