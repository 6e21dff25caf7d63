"""Arguments that several verbs share, and what people mean by them: values, files, runs."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError, Missing

if TYPE_CHECKING:
    from ..runs.store import Store
    from ..runs.sweeps import Sweeps
    from ..workspace import Workspace

Types = Mapping[str, str | None]
_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a JSON list",
    "object": "a JSON object",
}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(
    rf"({_NUMBER})\s*(?:\.\.|:)\s*({_NUMBER})(?:(?:\s+step\s+|\s*:\s*|\s+(?=log))({_NUMBER}|log))?"
)
"""`1:9:2` or, as the run dialog writes it, `1..9 step 2`; with `log` an interval of magnitudes."""
LATEST = "latest"

RUN = "a run: its id, a beginning or end of it, or `latest`"


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_parameters(parser: argparse._ActionsContainer, words: str) -> None:
    parser.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help=words
    )


def add_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root",
        type=Path,
        metavar="FOLDER",
        help="the folder that no path may leave (here, or the file's folder when it is elsewhere)",
    )


def open_workspace() -> Workspace:
    from ..settings import load_settings
    from ..workspace import Workspace

    return Workspace(load_settings())


def add_resources(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what its pods get, instead of what the file says")
    group.add_argument("--profile", metavar="NAME", help="image and resources by this profile")
    group.add_argument("--image", help="the container image")
    group.add_argument("--cpu", metavar="CORES", help="as in 2 or 500m")
    group.add_argument("--memory", metavar="BYTES", help="as in 2Gi")
    group.add_argument("--gpu", metavar="N", type=float, help="how many GPUs")


def resource_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What `add_resources` was given, as a pipeline's `defaults` say it."""
    names = ("cpu", "memory", "gpu")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    return {
        **({"image": options.image} if options.image else {}),
        **({"resources": given} if given else {}),
    }


def read_value(text: str) -> Any:
    """`0.1` is a number, `x` a text, `[1,2]` a list."""
    try:
        return json.loads(text, parse_constant=lambda word: word)
    except (ValueError, RecursionError):
        return text


def locate(path: Path, root: Path | None = None) -> tuple[Path, str]:
    """The root folder and a file's path relative to it."""
    file = Path(os.path.normpath(path.absolute()))
    if root is None:
        here = Path.cwd()
        root = here if file.is_relative_to(here) else file.parent
    root = Path(os.path.normpath(root.absolute()))
    if not file.is_relative_to(root):
        raise ConvectError(
            f"“{path}” is not inside “{root}”.", code="outside-root", hint="Choose another --root."
        )
    return root, file.relative_to(root).as_posix()


def write_file(path: Path, content: str | Iterable[bytes], *, overwrite: bool) -> None:
    """Write a file whole or not at all; an existing one only when told so."""
    draft = path.with_name(f".{path.name}.part")
    try:
        if path.exists() and not overwrite:
            raise ConvectError(
                f"“{path}” already exists.", code="exists", hint="Overwrite it with --force."
            )
        with draft.open("wb") as file:
            file.writelines([content.encode()] if isinstance(content, str) else content)
        draft.replace(path)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            draft.unlink(missing_ok=True)
        reason = error.strerror if isinstance(error, OSError) else "its name or text is not Unicode"
        raise ConvectError(f"“{path}” cannot be written: {reason}.", code="unwritable") from None


def known_types(root: Path, path: str) -> Types:
    """The types of the parameters that a file declares, as far as they are known."""
    from ..pipeline.discovery import discover
    from ..planning import read_pipeline

    if path.endswith(".pipeline"):
        return declared_types(read_pipeline(root / path))
    return {found.name: found.type for found in discover(root / path).parameters or ()}


def declared_types(document: Mapping[str, Any]) -> Types:
    """The same for a document that nobody has checked yet."""
    declared = document.get("parameters")
    kinds = {
        name: item.get("type")
        for name, item in (declared.items() if isinstance(declared, dict) else ())
        if isinstance(item, dict)
    }
    return {name: kind if isinstance(kind, str) else None for name, kind in kinds.items()}


def typed_parameters(pairs: Iterable[str], types: Types) -> dict[str, Any]:
    """`-p lr=0.1`: of the declared type; without one JSON, or else a text."""
    return {name: typed(name, text, types.get(name)) for name, text in map(split, pairs)}


def space_of(pairs: Iterable[str], types: Types) -> dict[str, Any]:
    """`--sweep lr=0.1,0.2`, `lr=[0.1,0.2]`, `n=1:9:2` or `n=1..9 step 2`, `lr=0.1:1` (min, max)."""
    return {name: _values(name, text, types.get(name)) for name, text in map(split, pairs)}


def typed(name: str, text: str, kind: str | None) -> Any:
    if kind == "string":
        return text
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "number" and text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(text)
    if kind == "number" and re.fullmatch(_NUMBER, text):
        return float(text)
    value = read_value(text)
    if kind is None or value is None or _fits(value, kind):
        return float(value) if kind == "number" and isinstance(value, int) else value
    raise ConvectError(f"“{name}” is {_WORDS.get(kind, kind)}, not “{text}”.", code="wrong-type")


def _values(name: str, text: str, kind: str | None) -> Any:
    if text.startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            raise ConvectError(f"“{text}” is not a JSON list.", code="bad-parameter") from None
    if kind != "string" and (found := _RANGE.fullmatch(text.strip())):
        return _range(name, kind, *found.groups())
    return [typed(name, part, kind) for part in text.split(",")]


def _range(name: str, kind: str | None, low: str, high: str, step: str | None) -> Any:
    """A grid where there is a step, or the values are whole numbers; else an interval."""
    first, last = typed(name, low, kind), typed(name, high, kind)
    if step is not None and step != "log":
        return {"from": first, "to": last, "step": typed(name, step, kind)}
    log = {"log": True} if step else {}
    return {"min": first, "max": last, **log, **({"type": "integer"} if kind == "integer" else {})}


def split(pair: str) -> tuple[str, str]:
    name, equals, text = pair.partition("=")
    if not (name and equals):
        raise ConvectError(f"“{pair}” is not NAME=VALUE.", code="bad-parameter")
    return name, text


def _fits(value: Any, kind: str) -> bool:
    match value:
        case bool():
            return kind == "boolean"
        case int():
            return kind in ("integer", "number")
        case float():
            return kind == "number"
        case list():
            return kind == "array"
        case dict():
            return kind == "object"
    return kind not in _WORDS


def find_run(store: Store, word: str) -> str:
    """The id that `word` means: an id, its beginning or end, or `latest`."""
    from ..runs.store import ID

    if word == LATEST:
        return latest_run(store)
    if ID.fullmatch(word):
        return store.read(word).run.id
    return _only(word, "run", store.run_ids())


def find_sweep(sweeps: Sweeps, word: str) -> str:
    """The same for a sweep."""
    known: list[str] = [sweep["id"] for sweep in sweeps.all()]
    if word == LATEST and known:
        return known[0]
    return _only(word, "sweep", known)


def _only(word: str, kind: str, known: Iterable[str]) -> str:
    found = sorted(each for each in known if each.startswith(word) or each.endswith(word))
    if not found:
        raise Missing(f"There is no {kind} “{word}”.", hint="“convect runs list” shows the runs.")
    if len(found) > 1:
        raise ConvectError(
            f"“{word}” can mean {len(found)} {kind}s.",
            code="ambiguous",
            hint=f"{', '.join(found[:3])}{'…' if len(found) > 3 else ''}",
        )
    return found[0]


def latest_run(store: Store, path: str | None = None) -> str:
    """The newest run, of a file if one is given."""
    from ..runs.index import Query

    runs = store.find(Query(path=path, limit=1)).runs
    if not runs:
        raise Missing(f"There is no run of “{path}” yet." if path else "There are no runs yet.")
    run_id: str = runs[0]["id"]
    return run_id
