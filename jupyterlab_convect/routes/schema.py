"""The OpenAPI document: what is served, and what request bodies are checked against."""

from __future__ import annotations

import functools
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ..errors import ConvectError
from ..pipeline.plan import Json

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.cache
def document() -> dict[str, Json]:
    text = Path(__file__).with_name("openapi.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Json] = yaml.load(text, Loader=Loader)  # noqa: S506 both are safe loaders
    return loaded


def check(value: Json, kind: str) -> None:
    """Refuse a body that the schema `kind` does not describe, naming the place."""
    error = best_match(_validator(kind).iter_errors(value))
    if error is None:
        return
    place = ".".join(str(part) for part in error.absolute_path)
    sentence = error.message if len(error.message) < 300 else error.message[:300] + "…"
    raise ConvectError(f"`{place}`: {sentence}." if place else f"The request is wrong: {sentence}.")


@functools.cache
def _validator(kind: str) -> Draft202012Validator:
    components = _nullable(document()["components"])
    return Draft202012Validator({"$ref": f"#/components/schemas/{kind}", "components": components})


def _nullable(schema: Json) -> Json:
    """OpenAPI 3.0 says `nullable` where JSON Schema lists the type null."""
    if isinstance(schema, list):
        return [_nullable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _nullable(item) for key, item in schema.items() if key != "nullable"}
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        changed["type"] = [schema["type"], "null"]
    return changed
