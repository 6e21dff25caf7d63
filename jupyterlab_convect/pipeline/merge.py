"""How settings of the pipeline and of a node become one: the only place where that is decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .plan import Json
from .schema import schema

_IDENTITY = {"secrets": "env", "volumes": "path"}
_NOT_INHERITED = {
    "notebook": frozenset(("distributed",)),
    "component": frozenset(("image", "kernel", "parameters", "distributed", "dask")),
    "script": frozenset(("kernel",)),
    "command": frozenset(("kernel",)),
}


def settings_of(
    node: Mapping[str, Json], *defaults: Mapping[str, Json] | None, alone: bool = False
) -> dict[str, Json]:
    """The settings that hold for a node, from the farthest defaults to the node itself.

    `alone`: there is no other node that the defaults could be meant for.
    """
    skipped = _NOT_INHERITED.get(node["kind"], frozenset())
    if alone and node["kind"] == "notebook":
        skipped = frozenset()
    merged: dict[str, Json] = {}
    for layer in defaults:
        merged = merge(merged, {k: v for k, v in (layer or {}).items() if k not in skipped})
    names = schema()["$defs"]["settings"]["properties"]
    return merge(merged, {key: node[key] for key in names if key in node})


def merge(base: Mapping[str, Json], over: Mapping[str, Json]) -> dict[str, Json]:
    """Objects merge key by key, lists are joined, single values of `over` win.

    Values of parameters are single values, whatever they are.
    """
    merged = dict(base)
    for key, value in over.items():
        merged[key] = _merge_one(key, base.get(key), value)
    return merged


def _merge_one(key: str, base: Json, over: Json) -> Json:
    if key == "gpu":
        base, over = _gpu(base), _gpu(over)
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        return {**base, **over} if key == "parameters" else merge(base, over)
    if isinstance(base, list) and isinstance(over, list):
        return _join(base, over, _IDENTITY.get(key))
    return over


def _gpu(value: Json) -> Json:
    return value if value is None or isinstance(value, Mapping) else {"count": value}


def _join(base: list[Any], over: list[Any], identity: str | None) -> list[Any]:
    if identity is None:
        return base + [item for item in over if item not in base]
    replaced = {item[identity] for item in over}
    return [item for item in base if item[identity] not in replaced] + over
