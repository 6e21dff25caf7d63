"""Notebooks as documents: read, upgraded, given parameters, written. Nothing is executed here."""

from __future__ import annotations

import ast
import contextlib
import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

from .kernels import KernelSpec, default_for, installed, known
from .masking import Mask
from .outcome import StepFailed

Notebook = Any
"""A `nbformat.NotebookNode`, which has no types."""

OPTIONAL_FORMATS = (
    "fqdn",
    "isoduration",
    "rfc3339_validator",
    "rfc3986_validator",
    "rfc3987",
    "rfc3987_syntax",
    "uri_template",
    "webcolors",
)
"""What jsonschema imports when it is there, which takes a second; notebooks have no addresses,
colours or periods of time to check."""


def read(path: Path, name: str = "") -> dict[str, Any]:
    """The notebook's JSON as it is in the file; a StepFailed says what is wrong with it.

    `name` is what it is called, when the file has another name.
    """
    name = name or path.name
    try:
        data: dict[str, Any] = json.loads(path.read_bytes())
    except OSError as error:
        raise StepFailed(f"{name} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise StepFailed(f"{name} is not a notebook: {error}.") from error
    major = data.get("nbformat") if isinstance(data, dict) else None
    if not isinstance(major, int):
        raise StepFailed(f"{name} is not a notebook: it has no nbformat number.")
    if major > 4:
        raise StepFailed(
            f"{name} has notebook format {major}, but the newest supported format is 4."
        )
    return data


def kernel_name(data: Mapping[str, Any], title: str) -> str:
    """The kernel a notebook asks for, or that of its language if it names none."""
    metadata = _mapping(data.get("metadata"))
    spec = _mapping(metadata.get("kernelspec"))
    name = spec.get("name")
    if isinstance(name, str) and name:
        return name
    language = spec.get("language") or _mapping(metadata.get("language_info")).get("name")
    found = default_for(language.lower() if isinstance(language, str) else "python")
    if found is not None:
        return found
    raise StepFailed(f"{title} does not say which kernel it needs; {known(installed())}.")


def quick_nbformat() -> Any:
    """nbformat without jsonschema, which takes longer to load than all else in a runner.

    Of jsonschema it needs the class of its errors. The validator is for new cells, and for saying
    what is wrong with a notebook that fastjsonschema has found to be invalid.
    """
    if "nbformat" not in sys.modules and "jsonschema" not in sys.modules:
        stand_in, errors = ModuleType("jsonschema"), ModuleType("jsonschema.exceptions")
        stand_in.Draft4Validator = _LazyValidator  # type: ignore[attr-defined]
        errors.ErrorTree = errors.ValidationError = _ValidationError  # type: ignore[attr-defined]
        with _instead({stand_in.__name__: stand_in, errors.__name__: errors}):
            import nbformat
    import nbformat

    return nbformat


@contextlib.contextmanager
def _instead(modules: Mapping[str, ModuleType | None]) -> Iterator[None]:
    """Have others, or none, imported for a while."""
    sys.modules.update(modules)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]


class _LazyValidator:
    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def __getattr__(self, name: str) -> Any:
        with _instead({name: None for name in OPTIONAL_FORMATS if name not in sys.modules}):
            from jsonschema import Draft4Validator

        return getattr(Draft4Validator(self._schema), name)


class _ValidationError(Exception):
    def __init__(self, message: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.__dict__.update(facts)


def prepare(data: dict[str, Any], title: str) -> Notebook:
    """The notebook in today's format, in memory, without what an earlier execution left in it."""
    nbformat = quick_nbformat()
    try:
        version = nbformat.versions[data["nbformat"]]
        notebook = version.to_notebook_json(data, minor=data.get("nbformat_minor", 0))
        if data["nbformat"] < 4:
            notebook = nbformat.from_dict(nbformat.convert(notebook, 4))
        notebook = nbformat.v4.upgrade(notebook) or notebook
        for cell in notebook.cells:
            cell.setdefault("metadata", nbformat.NotebookNode())
            if not isinstance(cell.source, str):
                raise TypeError("the source of a cell is not text")
            if cell.cell_type == "code":
                cell.outputs = []
                cell.execution_count = None
        notebook.metadata.pop("widgets", None)
    except Exception as error:
        raise StepFailed(f"{title} is not a valid notebook: {error!r}.") from error
    return notebook


def inject(
    notebook: Notebook, parameters: Mapping[str, Any], spec: KernelSpec
) -> tuple[Notebook, int | None]:
    """Add papermill's cell of parameters, in the language of the kernel.

    Also says at which index, unless it replaces one that an earlier run has added.
    """
    parameterize, exceptions = papermill()
    notebook.metadata.setdefault("papermill", {})
    for cell in notebook.cells:
        if not isinstance(cell.metadata.get("tags"), list):
            cell.metadata.tags = []
    language = spec.language or notebook.metadata.get("language_info", {}).get("name", "")
    count = len(notebook.cells)
    try:
        with _unchecked_cells():
            notebook = parameterize.parameterize_notebook(
                notebook, dict(parameters), kernel_name=spec.name, language=language
            )
    except (
        exceptions.PapermillException,
        NotImplementedError,
        ValueError,
        TypeError,
    ) as error:
        raise StepFailed(f"The parameters cannot be given to the notebook: {error}") from error
    if len(notebook.cells) == count:
        return notebook, None
    tagged = (is_tagged(cell, "injected-parameters") for cell in notebook.cells)
    return notebook, list(tagged).index(True)


def papermill() -> tuple[Any, Any]:
    """Papermill's way with parameters and its errors, without what it fetches notebooks with."""
    quick_nbformat()
    stand_in = {} if "requests" in sys.modules else {"requests": ModuleType("requests")}
    with _instead(stand_in):
        from papermill import exceptions, parameterize
    # It warns about a missing `parameters` cell, which is nothing to warn about.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    return parameterize, exceptions


@contextlib.contextmanager
def _unchecked_cells() -> Iterator[None]:
    """Have new cells made without a look at the schema, which takes longer than all the rest."""
    from nbformat.v4 import nbbase

    check, nbbase.validate = nbbase.validate, lambda *_, **__: None
    try:
        yield
    finally:
        nbbase.validate = check


def mark_start(notebook: Notebook, parameters: Mapping[str, Any], source: Path) -> None:
    """Papermill's metadata, so that what reads its notebooks reads ours."""
    notebook.metadata.papermill = {
        "default_parameters": {},
        "environment_variables": {},
        "parameters": dict(parameters),
        "version": _papermill_version(),
        "input_path": str(source),
        "output_path": "executed.ipynb",
        "start_time": _now(),
        "end_time": None,
        "duration": None,
        "exception": None,
    }
    for cell in notebook.cells:
        cell.metadata.papermill = {
            "exception": None,
            "start_time": None,
            "end_time": None,
            "duration": None,
            "status": "pending",
        }


def mark_end(notebook: Notebook, seconds: float, failed: bool) -> None:
    notebook.metadata.papermill.update(
        end_time=_now(), duration=round(seconds, 6), exception=True if failed else None
    )


def mark_cell_start(cell: Any) -> float:
    """Note the beginning of a cell; returns the moment for `mark_cell_end`."""
    cell.metadata.papermill.update(start_time=_now(), status="running", exception=False)
    return time.monotonic()


def mark_cell_end(cell: Any, start: float, failed: bool) -> float:
    seconds = round(time.monotonic() - start, 6)
    cell.metadata.papermill.update(
        end_time=_now(),
        duration=seconds,
        status="failed" if failed else "completed",
        exception=failed,
    )
    return seconds


def is_tagged(cell: Any, tag: str) -> bool:
    tags = cell.metadata.get("tags")
    return isinstance(tags, list) and tag in tags


def assigned_names(source: str) -> list[str]:
    """The public names that a cell of Python assigns, in the order it does."""
    lines = ("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines())
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError:
        return []
    found = (
        node.id
        for statement in tree.body
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return [name for name in dict.fromkeys(found) if not name.startswith("_")]


def dump(notebook: Notebook, mask: Mask) -> bytes:
    """The notebook as a file, with the secrets masked in what it printed."""
    nbformat = quick_nbformat()
    if mask:
        notebook = nbformat.NotebookNode(notebook)
        notebook.cells = [_masked(cell, mask, nbformat) for cell in notebook.cells]
        notebook.metadata = nbformat.from_dict(mask.tree(notebook.metadata))
    text: str = nbformat.v4.writes(notebook)
    return (text if text.endswith("\n") else text + "\n").encode(errors="replace")


def _masked(cell: Any, mask: Mask, nbformat: Any) -> Any:
    cell = nbformat.NotebookNode(cell)
    if "outputs" in cell:
        cell.outputs = nbformat.from_dict(mask.tree(cell.outputs))
    return cell


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _papermill_version() -> str | None:
    papermill = sys.modules.get("papermill")
    return getattr(papermill, "__version__", None)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()
