"""From Elyra's canvas to a document of ours."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from pathlib import PurePosixPath
from typing import Any, cast

from ...errors import Refused
from ..check_files import input_files
from ..check_graph import edges_of
from ..cycles import cycles, way
from ..document import parse_json, shorten
from ..plan import Json
from ..problems import Problem
from ..types import Document
from .bag import Bag, Report, Unreadable, as_flag, as_object, as_text
from .canvas import Box, Note, Raw, label_of, number_or_zero, raw_object, read_canvas
from .node_settings import read_settings, without_empty
from .nodes import Context, read_group, read_node, wished_id

PARAMETER_TYPES = {
    "String": "string",
    "str": "string",
    "Integer": "integer",
    "int": "integer",
    "Float": "number",
    "float": "number",
    "Bool": "boolean",
    "bool": "boolean",
    "List": "array",
    "list": "array",
    "Dict": "object",
    "dict": "object",
}

LONGEST_ID = 60


def import_elyra(text: str | bytes, *, path: str | None = None) -> tuple[Document, list[Problem]]:
    """The document that an Elyra pipeline becomes, and what the user should know about it.

    `path` is where the file lies, relative to the root folder: the oldest versions count
    their paths from that folder. A ConvectError says why a file cannot be imported.
    """
    canvas = read_canvas(parse_json(text))
    names = Names()
    ids = {box.id: names.choose(wished_id(box, label_of(box.raw)), "node") for box in canvas.boxes}
    group_ids = {box.id: names.choose(label_of(box.raw), "group") for box in canvas.groups}
    notes = {names.choose("comment", "comment"): note for note in canvas.notes}
    members: dict[str, list[str]] = {}
    for box in (*canvas.boxes, *canvas.groups):
        if box.group is not None:
            members.setdefault(box.group, []).append(ids.get(box.id) or group_ids[box.id])
    context = Context(canvas, ids, group_ids, members, path, Report())

    head = _head(context)
    nodes = {ids[box.id]: read_node(box, context) for box in canvas.boxes}
    _refuse_cycles(nodes)
    nodes |= {group_ids[box.id]: read_group(box, context) for box in canvas.groups}
    comments = {name: _comment(name, note, context) for name, note in notes.items()}
    layout = {
        **{ids[box.id]: _at(box.place) for box in canvas.boxes},
        **{group_ids[box.id]: _group_place(box) for box in canvas.groups},
        **{name: _at(note.place) + _size(note.raw, "") for name, note in notes.items()},
    }
    _explain_old_paths(context)
    context.report.problems.extend(
        Problem(
            "warning",
            "elyra-dropped-link",
            f"A link into “{label_of(box.raw)}” is left out because its other end no longer "
            "exists.",
            node=group_ids[box.id],
        )
        for box in canvas.lost
    )
    parts = without_empty({**head, "comments": comments, "layout": layout})
    return cast(Document, {"convect": 1, **parts, "nodes": nodes}), context.report.problems


def seen_from(document: Document, folder: str) -> Document:
    """The document for a file elsewhere; `folder` is the way from there to the original."""

    def moved(path: str) -> str:
        return path if posixpath.isabs(path) else posixpath.normpath(posixpath.join(folder, path))

    nodes: dict[str, Any] = {}
    for name, node in cast("dict[str, dict[str, Any]]", document["nodes"]).items():
        nodes[name] = dict(node)
        if "path" in node:
            nodes[name]["path"] = moved(node["path"])
        files = {key: {"file": moved(file)} for key, file in input_files(node)}
        if files:
            nodes[name]["inputs"] = {**node["inputs"], **files}
    return cast(Document, {**document, "nodes": nodes})


def _head(context: Context) -> Raw:
    """What the document says of the pipeline as a whole."""
    canvas, report = context.canvas, context.report
    app = Bag({key: item for key, item in canvas.app_data.items() if key != "version"})
    ui = app.open("ui_data")
    ui.content.pop("comments", None)
    properties = app.open("properties")
    defaults = properties.open("pipeline_defaults")
    settings = read_settings(defaults)
    report.keep(settings, {"": defaults}, path=("defaults",))
    parameters = properties.take_each(
        "pipeline_parameters", lambda value: _parameter(value, report)
    )
    head = {
        "name": _name(app, properties, context.path),
        "description": properties.take("description", as_text),
        "parameters": dict(parameters),
        "defaults": settings,
    }
    bags = {"properties": properties, "app_data": app, "ui_data": ui}
    report.keep(head, bags, {"version": canvas.version, **canvas.kept})
    return head


def _name(app: Bag, properties: Bag, path: str | None) -> str | None:
    """The name, which older files have elsewhere, or the file's own."""
    name = properties.take("name", as_text)
    for key in ("name", "title"):
        if name is None or app.content.get(key) == name:
            name = app.take(key, as_text) or name
    return name or (PurePosixPath(path).stem if path else None)


def _parameter(value: Json, report: Report) -> tuple[str, Raw]:
    bag = Bag(as_object(value))
    name = bag.take("name", as_text)
    if name is None:
        raise Unreadable("a parameter has no name")
    default = bag.open("default_value")
    parameter = without_empty(
        {
            "type": default.take("type", _parameter_type),
            "description": bag.take("description", as_text),
            "required": bag.take("required", as_flag) or None,
        }
    )
    if "value" in default.content:
        parameter["default"] = default.content.pop("value")
    report.keep(parameter, {"": bag, "default_value": default}, path=("parameters", name))
    return name, parameter


def _parameter_type(value: Json) -> str:
    known = PARAMETER_TYPES.get(as_text(value))
    if known is None:
        raise Unreadable(f"{shorten(value)} is not a type here")
    return known


def _comment(name: str, note: Note, context: Context) -> Raw:
    def about(value: Json) -> str:
        node = as_object(value).get("node_ref")
        for ids in (context.ids, context.group_ids):
            if isinstance(node, str) and node in ids:
                return ids[node]
        raise Unreadable(f"the node {shorten(node)} is not in the file")

    bag = Bag(note.raw)
    for key in ("id", "x_pos", "y_pos", "width", "height"):
        bag.content.pop(key, None)
    style = bag.content.get("class_name")
    if isinstance(style, str) and style.startswith("d3-"):
        del bag.content["class_name"]
    nodes = list(dict.fromkeys(bag.take_each("associated_id_refs", about)))
    text = bag.take("content", as_text) or ""
    comment = {"text": text, **without_empty({"about": nodes})}
    context.report.keep(comment, {"": bag}, path=("comments", name))
    return comment


def _at(place: tuple[float, float]) -> list[float]:
    return [round(place[0]), round(place[1])]


def _size(raw: Raw, prefix: str) -> list[float]:
    width, height = (round(number_or_zero(raw.get(prefix + key))) for key in ("width", "height"))
    return [width, height] if width > 0 and height > 0 else []


def _group_place(box: Box) -> Json:
    ui = raw_object(raw_object(box.raw.get("app_data"), "“app_data”").get("ui_data"), "“ui_data”")
    if ui.get("is_expanded") is True:
        return _at(box.place) + _size(ui, "expanded_")
    return {"at": _at(box.place), "folded": True}


def _refuse_cycles(nodes: dict[str, Raw]) -> None:
    for cycle in cycles(edges_of(nodes)):
        raise Refused(
            f"These nodes wait for each other: {way(cycle)}.",
            code="cycle",
            hint="Remove one of the links between them in Elyra, then import the pipeline again.",
        )


def _explain_old_paths(context: Context) -> None:
    if context.canvas.version < 2 and context.path is None and context.canvas.boxes:
        context.report.problems.append(
            Problem(
                "info",
                "elyra-paths",
                "Paths in files this old are relative to the folder in which JupyterLab was "
                "started; they are read as relative to the pipeline.",
                path=("nodes",),
            )
        )


class Names:
    """Gives each thing an id that no other has, also where case does not count."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def choose(self, wish: str, otherwise: str) -> str:
        """An id made of `wish`, or of `otherwise` when nothing is left of it."""
        stem = slug(wish) or otherwise
        key, name = stem.casefold(), stem
        while name.casefold() in self._taken:
            number = self._next.get(key, 2)
            self._next[key] = number + 1
            name = f"{stem}-{number}"
        self._taken.add(name.casefold())
        return name


def slug(text: str) -> str:
    """Letters, digits, `_` and `-` of a text."""
    plain = unicodedata.normalize("NFC", text)
    return re.sub(r"\W+", "-", plain).strip("-")[:LONGEST_ID].rstrip("-")
