"""The inputs of a component node, in the three ways in which Elyra has written them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..document import shorten
from ..expressions import Reference
from ..plan import Json
from .bag import Bag, Unreadable, as_literal, as_name, as_object, as_text
from .node_settings import POD_PROPERTIES

CONTROLS = {"NestedEnumControl": "inputpath"}
"""The controls of version 7 whose values are not literal."""


def read_inputs(bag: Bag, ids: Mapping[str, str]) -> dict[str, Any]:
    """Take every input out of the bag and leave settings in it; `ids` are ours by Elyra's.

    Empty plain values are the marks that Elyra leaves for a component's outputs, and
    “None” is how its older forms write that there is no value.
    """
    inputs = {}
    for key, written in list(bag.content.items()):
        if key in POD_PROPERTIES and not (isinstance(written, dict) and "widget" in written):
            continue
        if written == "None":
            del bag.content[key]
            continue
        value = bag.take(key, lambda value: [_input(value, ids)])
        if value is not None and value[0] is not None:
            inputs[key] = value[0]
    return inputs


def _input(value: Json, ids: Mapping[str, str]) -> Json:
    match value:
        case {"widget": str(widget)}:
            return _by_widget(widget, value.get("value"), ids)
        case {"activeControl": str(control)}:
            return _by_widget(CONTROLS.get(control, ""), value.get(control), ids)
        case {"value": _, "option": _}:
            return _by_widget("inputpath", value, ids)
    return as_literal(value)


def _by_widget(widget: str, value: Json, ids: Mapping[str, str]) -> Json:
    if value is None:
        return None
    match widget:
        case "inputpath":
            return None if value == "" else _output_of_node(value, ids)
        case "parameter":
            return None if value == "" else str(Reference("parameters", as_name(value)))
        case "file":
            return None if value == "" else {"file": as_literal(as_text(value))}
    return as_literal(value)


def _output_of_node(value: Json, ids: Mapping[str, str]) -> str:
    """An output is named `output_x`, in older files `elyra_output_x`."""
    content = as_object(value)
    node, option = content.get("value"), content.get("option")
    if not isinstance(node, str) or node not in ids:
        raise Unreadable(f"the node {shorten(node)} that it comes from is not in the file")
    output = as_name(option).removeprefix("elyra_").removeprefix("output_")
    return str(Reference("nodes", as_name(output), ids[node]))
