"""What comes in over the network, checked: bodies by the API document, paths by where they lead."""

from __future__ import annotations

import functools
import os
from pathlib import Path, PurePosixPath

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ..errors import ConvectError, Missing
from ..pipeline.plan import Json, from_json
from ..runs import environments
from ..runs.model import Request
from ..runs.store import Record, Store
from ..safe_files import refuse_links, size_of_regular

LONGEST_NAME, LONGEST_PATH = 255, 4000
"""Bytes that file systems take."""
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def request_of(body: dict[str, Json], root: Path, default_runtime: str = "local") -> Request:
    """The request in a checked body; its paths start from the server's root."""
    given = {key: value for key, value in body.items() if value is not None}
    path = inside(root, given["path"]) if "path" in given else None
    if path is None and "document" not in given:
        raise ConvectError("Specify what to run: `path` or `document`.")
    given = {"runtime": default_runtime, **given, "path": path, "root": str(root)}
    return from_json(Request, given)


def shown(store: Store, record: Record, root: Path) -> dict[str, Json]:
    """`RunView` whose `request` can be sent again as it is, to the server with this root."""
    view = environments.view(store, record)
    return {**view, "request": resendable(view["request"], root)}


def resendable(request: dict[str, Json], root: Path) -> dict[str, Json]:
    """A stored request, seen from the server's root."""
    sent = {key: item for key, item in request.items() if key not in ("root", "sweep", "endpoint")}
    if request.get("path") is not None:
        file = Path(request["root"], request["path"])
        if file.is_relative_to(root):
            sent["path"] = file.relative_to(root).as_posix()
    return sent


def inside(root: Path, path: str) -> str:
    """The path in its plain form, relative to `root`; refused when it leads out of it.

    Links are followed, so that one that points out of the root does not help.
    """
    plain = PurePosixPath(path)
    if "\0" in path or plain.is_absolute() or ".." in plain.parts or not plain.parts:
        raise ConvectError(
            f"{path!r} is not a path inside the server's root folder.",
            code="path-outside",
            hint="Give a path relative to the root folder, without `..`.",
        )
    lengths = [len(part.encode("utf-8", "surrogatepass")) for part in plain.parts]
    if max(lengths) > LONGEST_NAME or sum(lengths) + len(lengths) > LONGEST_PATH:
        raise ConvectError(f"{path[:80] + '…'!r} is too long for a path.", code="path-too-long")
    base = root.resolve()
    try:
        target = (base / plain).resolve()
    except (OSError, RuntimeError):
        raise Missing(f"{path!r} cannot be read.") from None
    if not target.is_relative_to(base):
        raise ConvectError(
            f"{path!r} is a link out of the server's root folder.", code="path-outside"
        )
    return str(plain)


def existing(root: Path, path: str) -> Path:
    """The file that `path` names inside `root`."""
    file = root / inside(root, path)
    if not os.path.isfile(file):  # noqa: PTH113 which is false for what cannot be looked at
        raise Missing(f"There is no file {path!r}.")
    return file


def kept(folder: Path, path: str) -> Path:
    """The regular file, and no link, that `path` names inside a folder of a run."""
    file = folder / inside(folder, path)
    try:
        refuse_links(folder.parent, file)
        size_of_regular(file)
    except OSError:
        raise Missing(f"There is no file {path!r}.") from None
    return file


@functools.cache
def openapi_document() -> dict[str, Json]:
    text = Path(__file__).with_name("openapi.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Json] = yaml.load(text, Loader=Loader)  # noqa: S506 both are safe loaders
    return loaded


def check_body(value: Json, kind: str) -> None:
    """Refuse a body that the schema `kind` does not describe, naming the place."""
    error = best_match(_validator(kind).iter_errors(value))
    if error is None:
        return
    where = ".".join(str(part) for part in error.absolute_path)
    sentence = error.message if len(error.message) < 300 else error.message[:300] + "…"
    raise ConvectError(
        f"`{where}`: {sentence}." if where else f"The request is invalid: {sentence}."
    )


@functools.cache
def _validator(kind: str) -> Draft202012Validator:
    components = _nullable(openapi_document()["components"])
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
