"""Boxes on Elyra's canvas as nodes of ours."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import ConvectError
from ..document import parse_json, shorten
from ..expressions import Reference
from ..plan import Json
from ..problems import Problem
from .bag import Bag, Report, Unreadable, as_literal, as_name, as_object, as_text
from .canvas import Box, Canvas, Raw, raw_object, raw_objects
from .node_settings import POD_PROPERTIES, read_pod_settings, read_settings, without_empty

KINDS = {
    "execute-notebook-node": "notebook",
    "execute-python-node": "script",
    "execute-r-node": "script",
}
OLDEST_NAMES = {
    "artifact": "filename",
    "image": "runtime_image",
    "vars": "env_vars",
    "file_dependencies": "dependencies",
    "recursive_dependencies": "include_subdirectories",
}
"""What version 0 calls the properties of a node."""

BESIDE_PROPERTIES = ("ui_data", "label", "component_source", "component_description")
USUAL_NODE = {"id", "type", "op", "app_data", "inputs", "outputs", "subflow_ref"}
USUAL_LINK = {"id", "node_id_ref", "port_id_ref"}
GROUP_SHAPE = ("is_expanded", "expanded_width", "expanded_height")
STOCK_DESCRIPTIONS = (
    "Notebook file",
    "Python file",
    "R file",
    "Run notebook file",
    "Run Python script",
    "Run R script",
    "This supernode was created by common-canvas.",
)
STOCK_ICONS = ("data:", "/static/", "useDefaultIcon")
"""Elyra draws its own icons into the file; ours are drawn by the editor."""


@dataclass(frozen=True, slots=True)
class Context:
    canvas: Canvas
    ids: Mapping[str, str]
    """Our ids of nodes by Elyra's."""
    group_ids: Mapping[str, str]
    members: Mapping[str, list[str]]
    """Our ids of what is in a group, by Elyra's id of the group."""
    path: str | None
    """Where the file lies, relative to the root folder."""
    report: Report


def read_node(box: Box, context: Context) -> Raw:
    node_id = context.ids[box.id]
    app, properties = _split(box.raw, context.canvas.version)
    ui = app.open("ui_data")
    kind = _kind(box.raw, app, properties)
    is_component = kind == "component"
    node: Raw = {
        "kind": kind,
        **_words(node_id, ui, app, Bag({}) if is_component else properties),
        "after": [context.ids[source] for source in context.canvas.sources[box.id]],
    }
    if is_component:
        node |= _component(node_id, box.raw, app, properties, context)
    else:
        node |= _file(properties, context)
    node = without_empty(node)
    bags = {"component_parameters": properties, "app_data": app, "ui_data": ui}
    context.report.keep(node, bags, _odd(box.raw), node=node_id)
    return node


def read_group(box: Box, context: Context) -> Raw:
    group_id = context.group_ids[box.id]
    app = Bag(raw_object(box.raw.get("app_data"), "“app_data”"))
    ui = app.open("ui_data")
    for key in GROUP_SHAPE:
        ui.content.pop(key, None)
    words = without_empty(_words(group_id, ui, app, Bag({})))
    group = {"kind": "group", **words, "members": context.members.get(box.id, [])}
    context.report.keep(group, {"app_data": app, "ui_data": ui}, _odd(box.raw), node=group_id)
    return group


def wished_id(box: Box, label: str) -> str:
    """What a node should be called: its file without the suffix, or its label."""
    app, properties = _split(box.raw, 0)
    path = properties.content.get("filename")
    if isinstance(path, str) and _kind(box.raw, app, properties) != "component":
        return posixpath.splitext(posixpath.basename(path))[0]
    return label


def _split(raw: Raw, version: float) -> tuple[Bag, Bag]:
    """What belongs to the node as such, and its properties: one object before version 4."""
    app_data = raw_object(raw.get("app_data"), "“app_data”")
    if "component_parameters" in app_data:
        app = Bag(app_data)
        return app, app.open("component_parameters")
    beside = {key: item for key, item in app_data.items() if key in BESIDE_PROPERTIES}
    names = OLDEST_NAMES if version == 0 else {}
    properties = {names.get(key, key): item for key, item in app_data.items() if key not in beside}
    return Bag(beside), Bag(properties)


def _kind(raw: Raw, app: Bag, properties: Bag) -> str:
    operation, path = raw.get("op"), properties.content.get("filename")
    if isinstance(operation, str) and operation:
        return KINDS.get(operation, "component")
    if "component_source" in app.content or not isinstance(path, str):
        return "component"
    return "notebook" if path.endswith(".ipynb") else "script"


def _words(node_id: str, ui: Bag, app: Bag, properties: Bag) -> Raw:
    """What people read on the node: a name, unless it only repeats the file's, and more."""
    label = ui.take("label", as_text)
    for bag in (app, properties):
        if label is None or bag.content.get("label") == label:
            label = bag.take("label", as_text) or label
    path = properties.content.get("filename")
    file = posixpath.basename(path) if isinstance(path, str) else ""
    repeats = label == node_id or (label == file and posixpath.splitext(file)[0] == node_id)
    description = ui.take("description", as_text)
    if app.content.get("component_description") == description:
        app.content.pop("component_description", None)
    icon = ui.content.get("image")
    if isinstance(icon, str) and icon.startswith(STOCK_ICONS):
        del ui.content["image"]
    for key in ("x_pos", "y_pos"):
        ui.content.pop(key, None)
    return {
        "name": None if repeats else label,
        "description": None if description in STOCK_DESCRIPTIONS else description,
    }


def _file(properties: Bag, context: Context) -> Raw:
    """A notebook or a script. Elyra hands it pipeline parameters as environment variables."""
    path = properties.take("filename", as_text)
    names = properties.take_each("pipeline_parameters", as_name)
    settings = read_settings(properties)
    env = settings.get("env", {})
    for name in names:
        env.setdefault(name, str(Reference("parameters", name)))
    return {"path": path and _from_pipeline(path, context), **settings, "env": env}


def _from_pipeline(path: str, context: Context) -> str:
    """A path relative to the pipeline; before version 2 they are relative to the root folder."""
    if context.canvas.version >= 2 or posixpath.isabs(path):
        return path
    if context.path is None or posixpath.isabs(context.path):
        return path
    return posixpath.relpath(path, posixpath.dirname(context.path) or ".")


def _component(node_id: str, raw: Raw, app: Bag, properties: Bag, context: Context) -> Raw:
    inputs = read_inputs(properties, context.ids)
    written = app.content.get("component_source")
    source = describe_source(written)
    if source == written:
        app.content.pop("component_source", None)
    context.report.problems.append(
        Problem(
            "warning",
            "elyra-component",
            f"The component of node “{node_id}” has to be imported again, because Elyra keeps no "
            "definitions in its files.",
            node=node_id,
            path=("component",),
            hint=f"It came from {source}." if source else None,
        )
    )
    operation = raw.get("op")
    return {
        "component": operation if isinstance(operation, str) and operation else node_id,
        "source": source,
        "inputs": inputs,
        **read_pod_settings(properties),
    }


def _odd(raw: Raw) -> dict[str, Any]:
    """What Elyra itself does not write beside a node's properties."""
    links = [
        link
        for port in raw_objects(raw.get("inputs"), "“inputs”")
        for link in raw_objects(port.get("links"), "“links”")
        if link.keys() - USUAL_LINK
    ]
    others = {key: item for key, item in raw.items() if key not in USUAL_NODE}
    return {**others, "links": links} if links else others


def describe_source(value: Json) -> str | None:
    """A URL or a path where there is one, else the catalog and what it calls the component.

    Up to version 5 it is that text already, from version 6 on JSON in a text:
    `{"catalog_type": "url-catalog", "component_ref": {"url": "https://…"}}`.
    """
    content = _content(value)
    if content is None:
        return value if isinstance(value, str) else None
    reference = content.get("component_ref")
    if isinstance(reference, dict):
        texts = {key: item for key, item in reference.items() if isinstance(item, str)}
        if "url" in texts:
            return texts["url"]
        if "path" in texts:
            return posixpath.join(texts.get("base_dir", ""), texts["path"])
        reference = next(iter(texts.values()), None)
    parts = (content.get("catalog_type"), reference)
    return ":".join(part for part in parts if isinstance(part, str) and part) or None


def _content(value: Json) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return None
    try:
        content = parse_json(value)
    except ConvectError:
        return None
    return content if isinstance(content, dict) else None


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
