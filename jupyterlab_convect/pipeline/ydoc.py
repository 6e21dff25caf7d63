"""The pipeline as a shared document, for live collaboration and undo.

The structure, which `src/pipeline/model.ts` mirrors, is six root maps beside the `state`
that every shared document has:

    meta        Y.Map   every other top-level key of the document: `convect`, `name`,
                        `description`, `parameters`, `defaults`, `extra`, …
    nodes       Y.Map   node id → Y.Map of the node's properties
    comments    Y.Map   comment id → Y.Map of the comment's properties
    layout      Y.Map   node or comment id → its place, a plain value
    components  Y.Map   digest → the component's definition, a plain value
    raw         Y.Map   `text`: the file's content, only while it is not a pipeline;
                        `written`: the file's content, when a person wrote it in their own way

In `meta`, `nodes` and `comments` every JSON object is a Y.Map, at any depth, so that two
people can change two parameters of one node; everything else (texts, numbers, booleans,
null, and lists with all that is in them) is one plain value. A place and a definition
change as a whole and are plain.

A section (`nodes`, `comments`, `layout`, `components`) that the file has is also a key of
`meta`, with an empty Y.Map, so that an empty section stays in the file; when it is not an
object its value is there instead. The document is therefore

    {...meta, ...{section: its map, for each section whose map is not empty}}

and its text is what `document.dumps` writes: order is no part of the content.

While `raw` holds a text, the file's content is that text, to the letter, whatever the other
maps say. It is set when a file is not a pipeline (malformed, foreign, newer) or holds an
integer that JavaScript cannot, and removed when a good one is read. `written` is the content
as long as it says the same as the maps: opening and saving changes nothing, whoever wrote it.

Reach it as `jupyter_ydoc.ydocs["pipeline"]`: that package loads this module while it is
itself being loaded, so this one cannot come first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from jupyter_ydoc.ybasedoc import YBaseDoc
from pycrdt import Awareness, Doc, Map

from ..errors import ConvectError
from .document import dumps, parse
from .plan import Json
from .types import Document

DEEP = ("nodes", "comments")
FLAT = ("layout", "components")
SECTIONS = (*DEEP, *FLAT)
MAPS = ("meta", *SECTIONS, "raw")

SAFE_INTEGER = 2**53 - 1


class YPipeline(YBaseDoc):
    """A `.pipeline` file that several people can edit at once."""

    def __init__(self, ydoc: Doc[Any] | None = None, awareness: Awareness | None = None) -> None:
        super().__init__(ydoc, awareness)
        self._maps: dict[str, Map[Any]] = {name: self._ydoc.get(name, type=Map) for name in MAPS}
        for name in ("meta", *SECTIONS):
            self.undo_manager.expand_scope(self._maps[name])

    @property
    def version(self) -> str:
        return "1.0.0"

    def get(self) -> str:
        """The file's content."""
        raw = self._maps["raw"].get("text")
        if isinstance(raw, str):
            return raw
        content: dict[str, Json] = _plain(self._maps["meta"])
        for section in SECTIONS:
            if len(self._maps[section]):
                content[section] = _plain(self._maps[section])
        if not content:
            return ""
        text = dumps(cast(Document, content))
        written = self._maps["raw"].get("written")
        return written if isinstance(written, str) and dumps(parse(written)) == text else text

    def set(self, value: str) -> None:
        """Take over a file's content, touching only what differs from the present state."""
        try:
            content = cast("dict[str, Json]", parse(value))
        except ConvectError:
            content = None
        with self._ydoc.transaction():
            if content is None or not _is_exact_in_javascript(content):
                _merge(self._maps["raw"], {"text": value})
            else:
                self._set_document(content)
                canonical = value == dumps(cast(Document, content))
                _merge(self._maps["raw"], {} if canonical else {"written": value})

    def observe(self, callback: Callable[[str, Any], None]) -> None:
        """Call `callback(map name, events)` after every change."""
        self.unobserve()
        self._subscriptions[self._ystate] = self._ystate.observe(partial(callback, "state"))
        for name, shared in self._maps.items():
            self._subscriptions[shared] = shared.observe_deep(partial(callback, name))

    def _set_document(self, content: dict[str, Json]) -> None:
        sections = {name: content[name] for name in SECTIONS if isinstance(content.get(name), dict)}
        _merge(self._maps["meta"], {**content, **{name: {} for name in sections}})
        for name in SECTIONS:
            _merge(self._maps[name], sections.get(name, {}), deep=name in DEEP)


def _merge(shared: Map[Any], content: dict[str, Json], *, deep: bool = True) -> None:
    """Make `shared` hold `content`, changing as little as possible."""
    for key in sorted(set(shared.keys()) - content.keys()):
        del shared[key]
    for key, new in content.items():
        old = shared.get(key)
        if deep and isinstance(new, dict):
            if isinstance(old, Map):
                _merge(old, new)
            else:
                shared[key] = _shared(new)
        elif key not in shared or isinstance(old, Map) or not _is_same(old, new):
            shared[key] = new


def _shared(content: dict[str, Json]) -> Map[Any]:
    return Map(
        {key: _shared(item) if isinstance(item, dict) else item for key, item in content.items()}
    )


def _plain(shared: Map[Any]) -> dict[str, Json]:
    return {key: _plain(item) if isinstance(item, Map) else item for key, item in shared.items()}


def _is_same(old: Json, new: Json) -> bool:
    """Equal as JSON: 1 and 1.0 are the same number, but not the same as true."""
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_is_same, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_is_same(old[key], new[key]) for key in old)
    return isinstance(old, bool) == isinstance(new, bool) and bool(old == new)


def _is_exact_in_javascript(value: Json) -> bool:
    if isinstance(value, dict):
        return all(map(_is_exact_in_javascript, value.values()))
    if isinstance(value, list):
        return all(map(_is_exact_in_javascript, value))
    return not isinstance(value, int | float) or abs(value) <= SAFE_INTEGER or value % 1 != 0
