"""YAML from strangers: values with the line of each, within limits.

Events are taken from the parser one by one and nothing recurses, so neither
depth nor aliases can grow beyond what is counted here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from ..pipeline.plan import Json
from .model import UnreadableComponent

MAX_BYTES = 8 << 20
MAX_NODES = 200_000
MAX_DEPTH = 100
MAX_DOCUMENTS = 2_000

Path = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_RESOLVER: Any = yaml.resolver.Resolver()
_CONSTRUCTOR: Any = yaml.constructor.SafeConstructor()
_CONVERSIONS = {
    f"{_TAG}null": _CONSTRUCTOR.construct_yaml_null,
    f"{_TAG}bool": _CONSTRUCTOR.construct_yaml_bool,
    f"{_TAG}int": _CONSTRUCTOR.construct_yaml_int,
    f"{_TAG}float": _CONSTRUCTOR.construct_yaml_float,
}
_COLLECTIONS = {None, "!", f"{_TAG}map", f"{_TAG}seq"}


@dataclass(frozen=True, slots=True)
class At:
    """A value, where it stands, and the sentence to say when it is wrong."""

    value: Json
    file: str
    lines: dict[Path, int]
    written: dict[Path, str]
    """The text of scalars that are not text, as they were written."""
    path: Path = ()

    @property
    def line(self) -> int:
        path = self.path
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def fail(self, reason: str, hint: str | None = None) -> UnreadableComponent:
        return UnreadableComponent(self.file, self.line, reason, hint=hint)

    def under(self, key: str | int) -> At:
        return At(self.value[key], self.file, self.lines, self.written, (*self.path, key))

    def get(self, key: str) -> At | None:
        """What lies under the key; None when it is missing or null."""
        if not isinstance(self.value, dict) or self.value.get(key) is None:
            return None
        return self.under(key)

    def need(self, key: str, what: str) -> At:
        self.mapping(what)
        found = self.get(key)
        if found is None:
            raise self.fail(f"{what} has no “{key}”.")
        return found

    def mapping(self, what: str) -> At:
        if not isinstance(self.value, dict):
            raise self.fail(f"{what} must be a mapping of names to values.")
        return self

    def items(self, what: str) -> Iterator[tuple[str, At]]:
        self.mapping(what)
        for key in self.value:
            yield key, self.under(key)

    def each(self, what: str) -> Iterator[At]:
        if not isinstance(self.value, list):
            raise self.fail(f"{what} must be a list.")
        for index in range(len(self.value)):
            yield self.under(index)

    def text(self, what: str) -> str:
        if not isinstance(self.value, str):
            raise self.fail(f"{what} must be text.", "Put it in quotes.")
        return self.value

    def scalar(self, what: str) -> str:
        """Text, or a number or boolean as it was written."""
        if isinstance(self.value, str):
            return self.value
        if self.path in self.written and self.value is not None:
            return self.written[self.path]
        raise self.fail(f"{what} must be text.")


def decode(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        raise UnreadableComponent(file, 0, f"The file is larger than {MAX_BYTES >> 20} MB.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UnreadableComponent(file, line, "The text is not UTF-8.") from None
    if text.lstrip()[:1] == "<":
        raise UnreadableComponent(
            file,
            1,
            "This is a web page, not a component.",
            hint="Use the address of the raw file.",
        )
    return text


def documents(data: bytes, file: str) -> list[tuple[At, str]]:
    """Every YAML document of a file that is not empty, each with its part of the text."""
    text = decode(data, file)
    found: list[tuple[At, str]] = []
    try:
        for builder in _build(text, file):
            if builder.root is not None:
                document = At(builder.root, file, builder.lines, builder.written)
                found.append((document, text[builder.start : builder.end]))
            if len(found) > MAX_DOCUMENTS:
                raise UnreadableComponent(
                    file, 0, f"It contains more than {MAX_DOCUMENTS} documents."
                )
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or "it cannot be parsed"
        raise UnreadableComponent(
            file, mark.line + 1 if mark else 0, f"Not YAML: {problem}."
        ) from None
    except (yaml.YAMLError, UnicodeError):
        raise UnreadableComponent(
            file, 0, "Not YAML: it contains characters that are not allowed in text."
        ) from None
    return found


@dataclass(slots=True)
class _Builder:
    """Builds one document; `stack` holds the collections that are open."""

    file: str
    start: int = 0
    end: int = 0
    """Which part of the text it is made of."""
    root: Json = None
    lines: dict[Path, int] = field(default_factory=lambda: {(): 1})
    written: dict[Path, str] = field(default_factory=dict)
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Json, int, int]] = field(default_factory=dict)
    """Value, number of nodes in it, and height of each anchor."""
    nodes: int = 0

    def add(self, value: Json, line: int, written: str | None = None) -> None:
        path = self._path()
        self.lines[path] = line
        if written is not None:
            self.written[path] = written
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.merging:
            self._merge(top, value, line)
            top.merging, top.key = False, None
        else:
            top.value[top.key] = value
            top.key = None

    def count(self, number: int, height: int, line: int) -> None:
        self.nodes += number
        if self.nodes > MAX_NODES:
            raise UnreadableComponent(
                self.file, line, "It expands to more values than a component can have."
            )
        if len(self.stack) + height > MAX_DEPTH:
            raise UnreadableComponent(
                self.file, line, f"It is nested more than {MAX_DEPTH} levels deep."
            )

    def expects_key(self) -> bool:
        if not self.stack:
            return False
        top = self.stack[-1]
        return isinstance(top.value, dict) and top.key is None and not top.merging

    def _path(self) -> Path:
        return tuple(
            len(item.value) if isinstance(item.value, list) else str(item.key)
            for item in self.stack
        )

    def _merge(self, top: _Open, value: Json, line: int) -> None:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                raise UnreadableComponent(
                    self.file, line, "Only a mapping can be merged with “<<”."
                )
            for key, item in source.items():
                if key not in top.value:
                    top.value[key] = item
                    top.merged.add(key)


@dataclass(slots=True)
class _Open:
    value: Any
    line: int
    anchor: str | None
    nodes: int
    key: str | None = None
    merging: bool = False
    merged: set[str] = field(default_factory=set)
    height: int = 0


def _build(text: str, file: str) -> Iterator[_Builder]:
    builder = _Builder(file)
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.DocumentStartEvent):
            builder = _Builder(file, event.start_mark.index)
        elif isinstance(event, yaml.DocumentEndEvent):
            builder.end = event.end_mark.index
            yield builder
        elif isinstance(event, yaml.ScalarEvent):
            _scalar(builder, event, line)
        elif isinstance(event, yaml.AliasEvent):
            _alias(builder, event.anchor, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            if builder.expects_key():
                raise UnreadableComponent(file, line, "A key must be text.")
            if event.tag not in _COLLECTIONS:
                raise UnreadableComponent(file, line, f"The tag {event.tag} is not allowed.")
            builder.count(1, 1, line)
            value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            builder.stack.append(_Open(value, line, event.anchor, builder.nodes))
        elif isinstance(event, yaml.CollectionEndEvent):
            _close(builder)


def _close(builder: _Builder) -> None:
    done = builder.stack.pop()
    height = done.height + 1
    if builder.stack:
        builder.stack[-1].height = max(builder.stack[-1].height, height)
    if done.anchor:
        builder.anchors[done.anchor] = (done.value, builder.nodes - done.nodes + 1, height)
    builder.add(done.value, done.line)


def _alias(builder: _Builder, anchor: str, line: int) -> None:
    if anchor not in builder.anchors:
        raise UnreadableComponent(
            builder.file, line, f"The alias *{anchor} refers to nothing above it."
        )
    if builder.expects_key():
        raise UnreadableComponent(builder.file, line, "A key must be text.")
    value, nodes, height = builder.anchors[anchor]
    builder.count(nodes, height, line)
    if builder.stack:
        builder.stack[-1].height = max(builder.stack[-1].height, height)
    builder.add(value, line)


def _scalar(builder: _Builder, event: yaml.ScalarEvent, line: int) -> None:
    builder.count(1, 0, line)
    tag = event.tag
    if tag in (None, "!"):
        tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
    if builder.expects_key():
        top = builder.stack[-1]
        if tag == f"{_TAG}merge":
            top.merging, top.key = True, "<<"
            return
        if event.value in top.value and event.value not in top.merged:
            raise UnreadableComponent(builder.file, line, f"The key “{event.value}” appears twice.")
        top.merged.discard(event.value)
        top.key = event.value
        return
    value, written = _convert(builder, tag, event.value, line)
    if event.anchor:
        builder.anchors[event.anchor] = (value, 1, 0)
    builder.add(value, line, written)


def _convert(builder: _Builder, tag: str, text: str, line: int) -> tuple[Json, str | None]:
    if tag in _CONVERSIONS:
        try:
            value = _CONVERSIONS[tag](yaml.ScalarNode(tag, text))
        except (ValueError, KeyError, IndexError):
            raise UnreadableComponent(
                builder.file, line, f"“{text[:40]}” is not a value of its type."
            ) from None
        if isinstance(value, float) and not math.isfinite(value):
            return text, None
        return value, text
    if tag.startswith(_TAG) and tag != f"{_TAG}binary":
        return text, None
    raise UnreadableComponent(builder.file, line, f"The tag {tag} is not allowed.")
