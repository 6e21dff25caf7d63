"""What comes back from a pod, checked like any stranger's input: names, sizes, counts, shapes.

The code in a pod can say whatever it likes in our name. Pure: nothing here touches a file.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..json_text import is_number, loads
from ..pipeline.plan import Json
from .agent import MARK, PIECE, Span

LONGEST_LINE = 4 * PIECE
LONGEST_NAME, LONGEST_PART, DEEPEST_NAME = 1000, 255, 32
LARGEST_FILE = 256_000_000
"""Bytes, also of a log; compressed well, they fit through one."""
LARGEST_OUTCOME = 16_000_000
LONGEST_TEXT = 1_000_000
DEEPEST_JSON = 64
MOST_FILES = 10_000
MOST_GENERATIONS = 1_000_000
_DIGEST = re.compile("[0-9a-f]{64}")
STATES = frozenset(("succeeded", "failed", "cancelled"))


class Unusable(ValueError):
    """It is not what the agent or a runner says."""


@dataclass(frozen=True)
class Piece:
    """A part of a file; the last one has the digest of the whole."""

    file: str
    at: int
    data: bytes
    generation: int = 0
    digest: str | None = None


@dataclass(frozen=True)
class End:
    missing: tuple[str, ...] = ()
    """Files that were too large."""


def frame_of(line: bytes) -> Piece | End:
    """What a line with our mark says. Unusable when it is something else."""
    if len(line) > LONGEST_LINE:
        raise Unusable("The line is too long.")
    frame = _json(line.removeprefix(MARK.encode()), DEEPEST_JSON)
    _need(isinstance(frame, dict), "It is not an object.")
    if "end" in frame:
        _number(frame["end"], 1 << 32, least=-(1 << 32))
        missing = frame.get("missing") or []
        _need(isinstance(missing, list) and len(missing) <= MOST_FILES, "Too much is missing.")
        return End(tuple(checked_name(name) for name in missing))
    name, digest = checked_name(frame.get("file")), frame.get("digest")
    _need(digest is None or _is_text(digest, 64), "The digest is not valid.")
    return Piece(
        name,
        _number(frame.get("at"), LARGEST_FILE),
        _unpacked(frame.get("data")),
        _number(frame.get("generation", 0), MOST_GENERATIONS),
        digest,
    )


@dataclass(frozen=True)
class ResultPart:
    """An object of a store with results in it: which bytes of which files."""

    slot: int
    digest: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Results:
    parts: tuple[ResultPart, ...]
    files: Mapping[str, int]
    """Their sizes."""
    missing: tuple[str, ...] = ()


def results_of(
    content: bytes, slots: int, largest: int, is_wanted: Callable[[str], bool] = bool
) -> Results:
    """The list of results that a pod has left in a store. Unusable when it is not one."""
    listed = object_of(content)
    parts, missing = listed.get("parts"), listed.get("missing", [])
    _need(isinstance(parts, list) and len(parts) < slots, "It lists too many objects.")
    _need(isinstance(missing, list) and len(missing) <= MOST_FILES, "Too much is missing.")
    found, sizes, used = [], dict[str, int](), set[int]()
    for part in parts or ():
        _need(isinstance(part, dict), "An object is not valid.")
        slot = _number(part.get("slot"), slots - 1, least=1)
        _need(slot not in used, "An object is listed twice.")
        used.add(slot)
        digest = part.get("digest")
        _need(_is_text(digest, 64) and bool(_DIGEST.fullmatch(digest)), "A digest is not valid.")
        spans = tuple(_span(item, sizes, largest) for item in _items(part.get("spans")))
        _need(0 <= sum(count for _, _, count in spans) <= largest, "An object is too large.")
        found.append(ResultPart(slot, digest, spans))
    _need(len(sizes) <= MOST_FILES, "It lists too many files.")
    _need(all(map(is_wanted, sizes)), "A name does not belong to a result.")
    return Results(tuple(found), sizes, tuple(checked_name(name) for name in missing))


def _span(item: Json, sizes: dict[str, int], largest: int) -> Span:
    """The bytes of a file come in their order, none twice and none left out."""
    _need(isinstance(item, list) and len(item) == 3, "A piece of a file is not valid.")
    name, at, count = checked_name(item[0]), item[1], _number(item[2], largest)
    _need(at == sizes.get(name, 0) and not (at == 0 and name in sizes), "A file has a gap.")
    sizes[name] = at + count
    return name, at, count


def _items(value: Json) -> list[Json]:
    _need(isinstance(value, list) and len(value) <= MOST_FILES, "It lists too many files.")
    return list(value)


def checked_name(name: Json) -> str:
    """A path below some folder, wherever that is. Unusable when it could lead out of it."""
    _need(_is_text(name, LONGEST_NAME) and bool(name), "A name is not valid.")
    parts = name.split("/")
    _need(len(parts) <= DEEPEST_NAME, "A name is too deep.")
    for part in parts or ():
        _need(part not in ("", ".", "..") and min(part) >= " ", "A name leads elsewhere.")
        _need(_encoded(part) <= LONGEST_PART, "A name is too long.")
    return str(name)


def outcome_of(content: bytes) -> dict[str, Any]:
    """An attempt's `outputs.json`. Unusable when it is not one."""
    outcome = object_of(content)
    _need(outcome.get("state") in STATES, "Its state is not valid.")
    _need(_is_text(outcome.get("reason") or "", LONGEST_TEXT), "Its reason is not text.")
    for key in ("exit_code", "started", "ended"):
        _need(is_number(outcome.get(key)) or outcome.get(key) is None, f"{key} is not a number.")
    for key in ("values", "metrics"):
        _check_named(outcome.get(key, {}), key)
    facts = outcome.get("files", [])
    _need(isinstance(facts, list) and len(facts) <= MOST_FILES, "It lists too many files.")
    for fact in facts:
        _need(isinstance(fact, dict), "A file is not an object.")
        checked_name(fact.get("path"))
        _number(fact.get("size"), 1 << 62)
    _need(isinstance(outcome.get("error") or {}, dict), "Its error is not an object.")
    return outcome


def made_of(content: bytes) -> list[dict[str, Any]]:
    """The files that an attempt's `made.json` lists. Unusable when it is not one."""
    files: Json = object_of(content).get("files")
    _need(isinstance(files, list) and len(files) <= MOST_FILES, "It lists too many files.")
    for fact in files:
        _need(isinstance(fact, dict), "A file is not an object.")
        checked_name(fact.get("path"))
        _need(fact.get("change") in ("created", "changed", "deleted"), "A change is not valid.")
        _need(_is_text(fact.get("digest") or "", 80), "A digest is not valid.")
        for key in ("size", "mode"):
            _number(fact.get(key) or 0, 1 << 62)
    return list(files)


def object_of(content: bytes) -> dict[str, Any]:
    """A JSON object that is neither too large nor too deep. Unusable when it is none."""
    _need(len(content) <= LARGEST_OUTCOME, "It is too large.")
    found = _json(content, DEEPEST_JSON)
    _need(isinstance(found, dict), "It is not an object.")
    return dict(found)


def _check_named(values: Json, key: str) -> None:
    _need(isinstance(values, dict) and len(values) <= MOST_FILES, f"{key} is not an object.")
    for name, value in values.items():
        _need(_is_text(name, LONGEST_NAME), f"A name in {key} is too long.")
        _need(key != "metrics" or is_number(value), "A metric is not a number.")


def _json(data: bytes, deepest: int) -> Json:
    try:
        value = loads(data)
    except (ValueError, RecursionError):
        raise Unusable("It is not JSON.") from None
    level: list[Json] = [value]
    while level:
        _need(deepest > 0, "It is nested too deeply.")
        deepest -= 1
        level = [inner for item in level for inner in _within(item)]
    return value


def _within(item: Json) -> list[Json]:
    if isinstance(item, dict):
        return [*item, *item.values()]
    if isinstance(item, list):
        return item
    if isinstance(item, str):
        _encoded(item)
    return []


def _unpacked(text: Json) -> bytes:
    _need(_is_text(text, LONGEST_LINE), "A piece has no data.")
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(base64.b64decode(text, validate=True), PIECE)
    except (binascii.Error, ValueError, zlib.error):
        raise Unusable("A piece cannot be unpacked.") from None
    _need(unpacking.eof and not unpacking.unused_data, "A piece is too large.")
    return data


def _number(value: Json, most: int, *, least: int = 0) -> int:
    _need(isinstance(value, int) and not isinstance(value, bool), "A number is not valid.")
    _need(least <= value <= most, "A number is out of bounds.")
    return int(value)


def _is_text(value: Json, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest


def _encoded(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise Unusable("A text cannot be written.") from None


def _need(holds: bool, why: str) -> None:
    if not holds:
        raise Unusable(why)
