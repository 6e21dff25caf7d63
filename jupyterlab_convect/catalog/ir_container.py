"""Containers of compiled pipelines: placeholders inside text, and what they ask of a machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ..pipeline.plan import Amount, Gpu, Json, Resources
from .model import Component, Container, placeholders
from .text import At

PLACEHOLDER = re.compile(r"\{\{\$([^{}]*)\}\}")
_LONGEST = 500
_NAMED = re.compile(
    r"\.(inputs|outputs)\.(parameters|artifacts)\[(?:'|\")(.+?)(?:'|\")\](?:\.(\w+))?"
    r"(?:\[(?:'|\")?(.+?)(?:'|\")?\])?$"
)
_CONTEXT = {
    ".pipeline_job_name": "run.name",
    ".pipeline_job_resource_name": "run.name",
    ".pipeline_job_uuid": "run.id",
    ".pipeline_task_name": "step.id",
    ".pipeline_task_uuid": "step.uid",
    ".pipeline_root": "root",
    ".pipeline_job_create_time_utc": "time",
    ".pipeline_job_schedule_time_utc": "time",
    ".workspace_path": "root",
}
_OUTPUT_FILES = (".outputs.output_file", ".outputMetadataUri", ".outputs.output_metadata_uri")


def read_executor(container: At, component: Component) -> Container:
    env = container.get("env")
    variables = {}
    for item in env.each("“env”") if env else ():
        value = item.get("value")
        key = item.need("name", "A variable").text("The name of a variable")
        variables[key] = _argument(value) if value else ""
    command = tuple(_arguments(container, "command"))
    args = tuple(_arguments(container, "args"))
    inputs = {item.name for item in component.inputs}
    outputs = {item.name for item in component.outputs}
    for kind, name in placeholders([command, args, *variables.values()]):
        if name not in (outputs if kind.startswith("output") else inputs):
            raise container.fail(f"The command names “{name}”, which is neither input nor output.")
    return Container(
        image=container.need("image", "The container").text("The image"),
        command=command,
        args=args,
        env=variables,
        resources=_resources(container.get("resources")),
    )


def _arguments(container: At, key: str) -> Iterator[Json]:
    listed = container.get(key)
    for item in listed.each(f"“{key}”") if listed else ():
        yield _argument(item)


def _argument(item: At) -> Json:
    text = item.scalar("An argument")
    if text.startswith(('{"Concat":', '{"IfPresent":')):
        try:
            return _structure(json.loads(text), item)
        except (ValueError, RecursionError):
            raise item.fail("A placeholder in the command is not JSON.") from None
    return joined(text, item)


def _structure(value: Json, item: At) -> Json:
    if isinstance(value, str):
        return joined(value, item)
    if isinstance(value, dict) and isinstance(value.get("Concat"), list):
        return {"concat": [_structure(part, item) for part in value["Concat"]]}
    if isinstance(value, dict) and isinstance(value.get("IfPresent"), dict):
        body = value["IfPresent"]
        if isinstance(body.get("InputName"), str):
            choice = {
                "cond": {"isPresent": body["InputName"]},
                "then": _branch(body.get("Then"), item),
            }
            if body.get("Else") is not None:
                choice["else"] = _branch(body["Else"], item)
            return {"if": choice}
    raise item.fail("A placeholder in the command cannot be understood.")


def _branch(value: Json, item: At) -> list[Json]:
    return [_structure(part, item) for part in (value if isinstance(value, list) else [value])]


def joined(text: str, item: At) -> Json:
    """Text with placeholders in it as one argument."""
    parts: list[Json] = []
    end = 0
    for match in PLACEHOLDER.finditer(text):
        if match.start() > end:
            parts.append(text[end : match.start()])
        parts.append(_placeholder(match.group(1), item))
        end = match.end()
    if end < len(text) or not parts:
        parts.append(text[end:])
    return parts[0] if len(parts) == 1 else {"concat": parts}


def _placeholder(body: str, item: At) -> Json:
    if body == "" or body.startswith(".json_escape"):
        return {"executorInput": True}
    if body in _OUTPUT_FILES:
        return {"executorOutput": True}
    if body in _CONTEXT:
        return {"context": _CONTEXT[body]}
    match = _NAMED.match(body) if len(body) <= _LONGEST else None
    if match:
        side, kind, name, part, key = match.groups()
        if kind == "parameters":
            return {"inputValue" if side == "inputs" else "outputPath": name}
        if part in ("path", "uri"):
            return {f"{side[:-1]}{part.capitalize()}": name}
        if part in ("metadata", "name", "value"):
            return {"metadata": {side[:-1]: name, "part": part, **({"key": key} if key else {})}}
        if part is None and key is None:
            return {"metadata": {side[:-1]: name, "part": "artifacts"}}
    raise item.fail(f"“{{{{${body}}}}}” is not a placeholder that is known.")


def _resources(item: At | None) -> Resources:
    if item is None:
        return Resources()
    item.mapping("“resources”")
    gpu = item.get("accelerator")
    return Resources(
        cpu=_amount(item, "cpu"),
        memory=_amount(item, "memory", unit="G"),
        gpu=_gpu(gpu) if gpu else None,
    )


def _amount(item: At, name: str, unit: str = "") -> Amount | None:
    """Quantities are text under a newer key, plain numbers (of gigabytes) under an older one."""

    def text(kind: str) -> str | None:
        written = item.get(f"resource{name.capitalize()}{kind}")
        number = item.get(f"{name}{kind}")
        if written:
            return written.scalar("A quantity")
        return number.scalar("A quantity") + unit if number else None

    request, limit = text("Request"), text("Limit")
    return Amount(request, limit) if request or limit else None


def _gpu(item: At) -> Gpu | None:
    item.mapping("“accelerator”")
    count = item.get("resourceCount") or item.get("count")
    kind = item.get("resourceType") or item.get("type")
    try:
        number = float(count.scalar("The count")) if count else 1.0
    except ValueError:
        return None
    return Gpu(number, resource=kind.text("The type") if kind else None)
