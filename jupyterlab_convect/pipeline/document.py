"""Reading and writing pipelines: strict about what is read, stable in what is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..errors import ConvectError, Missing, Refused
from .plan import Json
from .schema import VERSION, Schema, inlined

if TYPE_CHECKING:
    from .types import Document

MAX_BYTES = 16 * 2**20
MAX_DEPTH = 100


def read_file(path: Path, name: str | None = None, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a file, no more than one past `limit`.

    `name` is what a sentence calls it, when that is not the name of the file.
    """
    try:
        with path.open("rb") as file:
            return file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise unreadable(name or path.name, error) from None


def unreadable(name: str, error: OSError | ValueError) -> ConvectError:
    """Why a file could not be read, in a sentence."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Missing(f"There is no file “{name}”.", code="missing-file")
    reason = error.strerror if isinstance(error, OSError) else "the name cannot be one"
    return ConvectError(f"“{name}” cannot be read: {reason}.", code="unreadable-file")


def parse(text: str | bytes) -> Document:
    """The document in a file's content, or a ConvectError that says where it goes wrong.

    What comes out is JSON of a known version and no more; `validate` says whether
    it makes sense. Nothing is filled in, so that writing it changes nothing.
    """
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ConvectError(f"A pipeline is a JSON object, but this is {describe_type(value)}.")
    check_version(value)
    return cast("Document", value)


def parse_json(text: str | bytes) -> Json:
    """JSON as everybody means it: no duplicate keys, no NaN, no NUL, nothing endless."""
    text = _decode(text)
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise ConvectError(
            f"Line {error.lineno}, column {error.colno} is not valid JSON: {_plainly(error.msg)}.",
            code="malformed-json",
            hint=_json_hint(text, error.pos),
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        # Python refuses integers of thousands of digits.
        raise ConvectError("A number has too many digits.", code="malformed-json") from None
    _check_content(value)
    return value


def check_version(value: Json) -> None:
    version = value.get("convect")
    if isinstance(version, int) and not isinstance(version, bool) and version >= 1:
        if version > VERSION:
            raise Refused(
                f"This pipeline has format version {version}, but only versions up to "
                f"{VERSION} are supported.",
                code="newer-version",
                hint="Update jupyterlab-convect. The file was not changed.",
            )
        return
    if "convect" in value:
        raise ConvectError(
            f"The format version “convect” must be {VERSION}, but it is {shorten(version)}.",
            code="bad-version",
        )
    if "pipelines" in value or "doc_type" in value:
        raise ConvectError(
            "This is an Elyra pipeline, not a Convect pipeline.",
            code="foreign-format",
            hint="Convert it with “convect pipeline import”.",
        )
    raise ConvectError(
        "This is not a pipeline: the format version “convect” is missing.",
        code="bad-version",
        hint=f'A pipeline starts with "convect": {VERSION}.',
    )


def new(name: str) -> Document:
    """An empty pipeline."""
    return {"convect": 1, "name": name, "nodes": {}, "layout": {}}


def dumps(document: Document) -> str:
    """The one text of a document.

    Keys that the schema knows come in its order, all others sorted, so that the text
    depends on nothing but the content: two spaces, short lists of numbers on one
    line, UTF-8 as it is, a final newline. Numbers are written as JavaScript writes
    them, because the editor does the same.
    """
    return "".join(_write(document, inlined(), "\n")) + "\n"


def describe_type(value: Json) -> str:
    """A JSON type in words, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def shorten(value: Json, limit: int = 40) -> str:
    """A value as JSON, cut where it would flood a sentence."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _decode(text: str | bytes) -> str:
    if len(text) > MAX_BYTES:
        raise ConvectError(
            f"The file is larger than {MAX_BYTES // 2**20} MiB, which no pipeline is.",
            code="too-large",
        )
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            good = error.object[: error.start].decode("utf-8")
            line, column = _position(good, len(good))
            raise ConvectError(
                f"The file is not UTF-8: line {line}, column {column} is not a valid character.",
                code="bad-encoding",
                hint="Save it again as UTF-8.",
            ) from None
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        line, column = _position(text, text.index("\0"))
        raise ConvectError(
            f"Line {line}, column {column} contains a NUL byte, so this is not a text file.",
            code="nul-byte",
        )
    if not text.strip():
        raise ConvectError(
            "The file is empty.",
            code="malformed-json",
            hint="“convect pipeline new” writes an empty pipeline.",
        )
    return text


def _position(text: str, index: int) -> tuple[int, int]:
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _json_hint(text: str, position: int) -> str | None:
    # Newer versions of Python point at the comma itself.
    before, rest = text[:position].rstrip(), text[position:].lstrip(", \t\r\n")
    if not rest:
        return "The file may be truncated."
    if rest.startswith(("<<<<<<<", "=======", ">>>>>>>")):
        return "It contains merge conflict markers: choose one of the two versions."
    if rest[0] in "}]" and (before.endswith(",") or text[position] == ","):
        return "JSON does not allow a comma after the last item."
    if rest[0] in "/#":
        return "JSON has no comments; “comments” of the pipeline are shown on the canvas."
    return "Strings are written in double quotes." if rest[0] == "'" else None


def _plainly(message: str) -> str:
    return message[:1].lower() + message[1:].removesuffix(": ").rstrip(":")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        name = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ConvectError(
            f"The key {shorten(name)} appears twice in one object.",
            code="duplicate-key",
            hint="Rename or remove one of them.",
        )
    return value


def _no_constant(name: str) -> Json:
    raise ConvectError(f"{name} is not a JSON number.", code="malformed-json")


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ConvectError(f"The number {digits[:40]} is too large.", code="malformed-json")
    return value


def _too_deep() -> ConvectError:
    return ConvectError(
        f"The file is nested more than {MAX_DEPTH} levels deep, which no pipeline is.",
        code="too-deep",
    )


def _check_content(value: Json) -> None:
    """Refuse what JSON can spell but no file name, environment or UTF-8 file can hold."""
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Json] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, dict):
                inner += item.keys()
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return
        level = inner
    raise _too_deep()


def _check_text(text: str) -> None:
    if text.isascii():
        if "\0" in text:
            raise ConvectError(
                f"The text {shorten(text)} contains a NUL character.", code="nul-byte"
            )
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConvectError(
            f"The text {json.dumps(text)[:40]} contains a lone surrogate.",
            code="bad-encoding",
            hint="UTF-8 cannot encode it.",
        ) from None
    if "\0" in text:
        raise ConvectError(f"The text {shorten(text)} contains a NUL character.", code="nul-byte")


def _write(value: Json, shape: Schema, newline: str) -> Iterator[str]:
    inner = newline + "  "
    if isinstance(value, dict):
        if not value:
            yield "{}"
            return
        shape = _shape_of(value, shape)
        separator = "{"
        for key in _ordered(value, shape):
            yield f"{separator}{inner}{_text(key)}: "
            yield from _write(value[key], _shape_of_item(key, shape), inner)
            separator = ","
        yield newline + "}"
    elif isinstance(value, list | tuple):
        if len(value) <= 4 and all(_is_number(item) for item in value):
            yield "[" + ", ".join(map(write_number, value)) + "]"
            return
        separator = "["
        for item in value:
            yield separator + inner
            yield from _write(item, shape.get("items", {}), inner)
            separator = ","
        yield newline + "]"
    elif _is_number(value):
        yield write_number(value)
    else:
        yield _text(value)


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def write_number(value: float) -> str:
    """A number as JavaScript writes it: `1` for 1.0, `1e-7`, `1e+21`."""
    if isinstance(value, int):
        return str(value)
    if value == 0:
        return "0"
    if 1e-6 <= abs(value) < 1e21:
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent):+d}"


def _ordered(value: dict[str, Json], shape: Schema) -> list[str]:
    known = [key for key in shape.get("properties", ()) if key in value]
    others = value.keys() - known
    # UTF-16 order is what JavaScript's sort gives.
    return known + sorted(others, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def _shape_of(value: dict[str, Json], shape: Schema) -> Schema:
    """The definition that describes this object, among those that the schema allows."""
    options = shape.get("oneOf")
    if options is None:
        return shape
    objects: list[Schema] = [option for option in options if option.get("type") == "object"]
    for option in objects:
        if option["properties"].get("kind", {}).get("const") == value.get("kind"):
            return option
    return objects[0] if objects else {}


def _shape_of_item(key: str, shape: Schema) -> Schema:
    properties: Schema = shape.get("properties", {})
    found = properties.get(key, shape.get("additionalProperties"))
    return found if isinstance(found, dict) else {}
