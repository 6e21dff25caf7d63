"""What is on Elyra's canvas: nodes of every flow, flat, with links that go from node to node.

A supernode stands for another flow of the same file. Links reach into it through ports
and binding nodes, which are followed here and then forgotten.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from ...errors import ConvectError, Refused
from ..document import describe_type, shorten
from ..plan import Json

NEWEST = 8
UNRELEASED = 7.5
"""What Elyra wrote for some months between two releases."""
MARGIN = 40
"""Room between the edge of a group and its members."""

Raw = dict[str, Any]
Link = tuple[str, str | None]


@dataclass(slots=True)
class Box:
    """An execution node, with its place on one common canvas and the group that holds it."""

    id: str
    raw: Raw
    place: tuple[float, float]
    group: str | None = None


@dataclass(slots=True)
class Note:
    """A comment, with its place on the common canvas."""

    raw: Raw
    place: tuple[float, float]


@dataclass(slots=True)
class Canvas:
    version: float
    app_data: Raw
    boxes: list[Box] = field(default_factory=list)
    groups: list[Box] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    sources: dict[str, list[str]] = field(default_factory=dict)
    """For each box the ids of the boxes that it is linked from."""
    kept: Raw = field(default_factory=dict)
    """What the envelope holds beyond the usual."""
    lost: list[Box] = field(default_factory=list)
    """Supernodes with a link that leads to nothing inside of them."""


def read_canvas(value: Json) -> Canvas:
    """The canvas of an Elyra pipeline, or a ConvectError that says why it cannot be read."""
    if not isinstance(value, dict) or not {"pipelines", "doc_type"} & value.keys():
        ours = isinstance(value, dict) and "convect" in value
        reason = "it is already a Convect pipeline" if ours else "it has no “pipelines”"
        raise ConvectError(f"This is not an Elyra pipeline: {reason}.", code="not-elyra")
    flows, primary = _flows(value)
    app_data = raw_object(primary.get("app_data"), "“app_data” of the pipeline")
    canvas = Canvas(_version(flows[0]), app_data, kept=_envelope(value, primary))
    graph = _Graph(canvas)
    by_id = {flow["id"]: flow for flow in flows if isinstance(flow.get("id"), str)}
    pending: deque[tuple[Raw, Box | None]] = deque([(primary, None)])
    visited: set[str] = set()
    while pending:
        flow, owner = pending.popleft()
        flow_id = _id(flow, "pipeline")
        if flow_id in visited:
            raise ConvectError(f"The flow {shorten(flow_id)} is used twice.", code="bad-elyra")
        visited.add(flow_id)
        for supernode in graph.add(flow, owner):
            pending.append((_subflow(supernode, by_id), supernode))
    canvas.sources = {box.id: graph.sources_of(box) for box in canvas.boxes}
    canvas.lost = [box for box in canvas.groups if graph.leads_nowhere(box)]
    unused = [flow for flow in flows if flow.get("id") not in visited]
    if unused:
        canvas.kept["pipelines"] = unused
    return canvas


def raw_object(value: Json, what: str) -> Raw:
    """An object that may be missing."""
    return {} if value is None else _object(value, what)


def raw_objects(value: Json, what: str) -> list[Raw]:
    """A list of objects that may be missing."""
    if not isinstance(value, list | None):
        raise _wrong(value, what, "a list")
    return [_object(item, f"an item of {what}") for item in value or []]


class _Graph:
    """Everything with an id, and the way from a link to the boxes at its other end."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas
        self.nodes: dict[str, Raw] = {}
        self.owners: dict[str, str | None] = {}
        """The supernode around each node."""
        self.entered: set[tuple[str, str]] = set()
        """Supernodes and their ports by which a link has reached a box."""

    def add(self, flow: Raw, owner: Box | None) -> list[Box]:
        """Put a flow's nodes and comments on the canvas; gives back its supernodes."""
        nodes = raw_objects(flow.get("nodes"), "“nodes”")
        notes = raw_objects(
            raw_object(
                raw_object(flow.get("app_data"), "“app_data”").get("ui_data"), "“ui_data”"
            ).get("comments"),
            "“comments”",
        )
        places = [_place(_ui_data(node)) for node in nodes if node.get("type") != "binding"]
        places += map(_place, notes)
        left, top = _origin(owner, places)
        supernodes = []
        for node in nodes:
            node_id = _id(node, "node")
            if node_id in self.nodes:
                raise ConvectError(
                    f"Two nodes have the id {shorten(node_id)}.", code="duplicate-id"
                )
            self.nodes[node_id] = node
            self.owners[node_id] = owner.id if owner else None
            x, y = _place(_ui_data(node))
            box = Box(node_id, node, (x + left, y + top), owner.id if owner else None)
            match node.get("type", "execution_node"):
                case "execution_node":
                    self.canvas.boxes.append(box)
                case "super_node":
                    self.canvas.groups.append(box)
                    supernodes.append(box)
                case "binding":
                    pass
                case other:
                    raise Refused(
                        f"The node {shorten(label_of(node))} has a type that no version of Elyra "
                        f"had: {shorten(other)}.",
                        code="bad-elyra",
                    )
        for note in notes:
            x, y = _place(note)
            self.canvas.notes.append(Note(note, (x + left, y + top)))
        return supernodes

    def sources_of(self, box: Box) -> list[str]:
        """The boxes that a box is linked from, each once, in the order of its links."""
        found: dict[str, None] = {}
        pending = [(link, box.raw) for link in _links(box.raw)]
        seen: set[Link] = set()
        while pending:
            (node_id, port), target = pending.pop(0)
            if (node_id, port) in seen:
                continue
            seen.add((node_id, port))
            node = self.nodes.get(node_id)
            if node is None:
                raise ConvectError(
                    f"The node {shorten(label_of(target))} is linked to {shorten(node_id)}, "
                    "which is not in the file.",
                    code="dangling-link",
                )
            match node.get("type", "execution_node"):
                case "super_node":
                    further = self._inside(node, port)
                case "binding":
                    further = self._outside(node_id, port)
                case _:
                    found[node_id] = None
                    continue
            pending = [(link, target) for link in further] + pending
        return list(found)

    def _inside(self, supernode: Raw, port: str | None) -> list[Link]:
        """Where an output port of a supernode is fed from."""
        for output in raw_objects(supernode.get("outputs"), "“outputs”"):
            binding = self.nodes.get(str(output.get("subflow_node_ref")))
            if output.get("id") == port and binding is not None:
                return _links(binding)
        members = [node for node, owner in self.owners.items() if owner == supernode["id"]]
        for member in members:
            if port is not None and port.startswith(f"{member}_"):
                return [(member, port.removeprefix(f"{member}_"))]
        raise ConvectError(
            f"A link leaves the supernode {shorten(label_of(supernode))} by a port that it does "
            "not have.",
            code="dangling-link",
        )

    def _outside(self, binding_id: str, port: str | None) -> list[Link]:
        """Where a binding node at the entrance of a supernode is fed from."""
        owner = self.owners[binding_id]
        if owner is None:
            return []
        inputs = raw_objects(self.nodes[owner].get("inputs"), "“inputs”")
        exact = [item for item in inputs if item.get("subflow_node_ref") == binding_id]
        named = [item for item in inputs if port == f"output_{item.get('id')}"]
        entered = exact or named
        self.entered |= {(owner, str(item.get("id"))) for item in entered}
        return [link for item in entered for link in _links_of_port(item)]

    def leads_nowhere(self, supernode: Box) -> bool:
        """Whether a link goes into a supernode and reaches nothing there."""
        return any(
            _links_of_port(item) and (supernode.id, str(item.get("id"))) not in self.entered
            for item in raw_objects(supernode.raw.get("inputs"), "“inputs”")
        )


def label_of(node: Raw) -> str:
    """What people call a node in Elyra."""
    for holder in (_ui_data(node), raw_object(node.get("app_data"), "“app_data”"), node):
        for key in ("label", "id"):
            if isinstance(holder.get(key), str) and holder[key]:
                return str(holder[key])
    return "?"


def _flows(value: Raw) -> tuple[list[Raw], Raw]:
    flows = raw_objects(value.get("pipelines"), "“pipelines”")
    if not flows:
        raise ConvectError(
            "This Elyra pipeline has nothing in “pipelines”.",
            code="bad-elyra",
            hint="The file may be truncated; restore it from a backup or from git.",
        )
    wanted = value.get("primary_pipeline", flows[0].get("id"))
    for flow in flows:
        if flow.get("id") == wanted:
            return flows, flow
    raise ConvectError(
        f"The main flow {shorten(wanted)} is not among the “pipelines” of this Elyra pipeline.",
        code="bad-elyra",
    )


def _version(flow: Raw) -> float:
    version = raw_object(flow.get("app_data"), "“app_data”").get("version", 0)
    if isinstance(version, str) and version.isdecimal() and version.isascii():
        version = int(version[:9])
    if (
        not isinstance(version, int | float)
        or isinstance(version, bool)
        or version < 0
        or (version % 1 and version != UNRELEASED)
    ):
        raise ConvectError(
            f"The version of this Elyra pipeline should be a whole number, but it is "
            f"{shorten(version)}.",
            code="bad-version",
        )
    if version > NEWEST:
        raise Refused(
            f"This Elyra pipeline has version {shorten(version)}, and versions 0 to {NEWEST} can "
            "be imported.",
            code="newer-version",
        )
    return version if version == UNRELEASED else int(version)


def _envelope(value: Raw, primary: Raw) -> Raw:
    usual = {"doc_type", "version", "json_schema", "primary_pipeline", "pipelines"}
    flow_usual = {"id", "nodes", "app_data"}
    return {
        **{key: item for key, item in primary.items() if key not in flow_usual and item},
        **{key: item for key, item in value.items() if key not in usual and item},
    }


def _subflow(supernode: Box, flows: dict[str, Raw]) -> Raw:
    reference = raw_object(supernode.raw.get("subflow_ref"), "“subflow_ref”").get("pipeline_id_ref")
    found = flows.get(reference) if isinstance(reference, str) else None
    if found is None:
        raise ConvectError(
            f"The content of the supernode {shorten(label_of(supernode.raw))} is not in the file.",
            code="bad-elyra",
        )
    return found


def _origin(owner: Box | None, places: list[tuple[float, float]]) -> tuple[float, float]:
    """What to add to a flow's own coordinates: supernodes have a canvas of their own inside."""
    if owner is None or not places:
        return (0, 0)
    left, top = (min(values) for values in zip(*places, strict=True))
    return (owner.place[0] + MARGIN - left, owner.place[1] + MARGIN - top)


def _place(holder: Raw) -> tuple[float, float]:
    return (number_or_zero(holder.get("x_pos")), number_or_zero(holder.get("y_pos")))


def number_or_zero(value: Json) -> float:
    """A coordinate or size; positions have no meaning, so what is none is no reason to refuse."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9
    return value if usable else 0


def _ui_data(node: Raw) -> Raw:
    return raw_object(raw_object(node.get("app_data"), "“app_data”").get("ui_data"), "“ui_data”")


def _links(node: Raw) -> list[Link]:
    inputs = raw_objects(node.get("inputs"), "“inputs”")
    return [link for item in inputs for link in _links_of_port(item)]


def _links_of_port(port: Raw) -> list[Link]:
    links = []
    for link in raw_objects(port.get("links"), "“links”"):
        source, source_port = link.get("node_id_ref"), link.get("port_id_ref")
        if not isinstance(source, str):
            raise ConvectError(
                "A link does not say which node it comes from.", code="dangling-link"
            )
        links.append((source, source_port if isinstance(source_port, str) else None))
    return links


def _id(value: Raw, what: str) -> str:
    found = value.get("id")
    if not isinstance(found, str) or not found:
        raise ConvectError(f"A {what} of this Elyra pipeline has no id.", code="bad-elyra")
    return found


def _object(value: Json, what: str) -> Raw:
    if not isinstance(value, dict):
        raise _wrong(value, what, "an object")
    return value


def _wrong(value: Json, what: str, expected: str) -> ConvectError:
    return ConvectError(
        f"In this Elyra pipeline {what} should be {expected}, but it is {describe_type(value)}.",
        code="bad-elyra",
    )
