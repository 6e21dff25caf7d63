"""What a notebook or script asks for and gives, read without running it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

from ..errors import ConvectError
from . import python_code
from .document import parse, read_file
from .expressions import type_of
from .plan import Json
from .python_code import Assignment, foreign_modules

MAX_BYTES = 256 * 2**20

_SUFFIXES: dict[str, tuple[Literal["notebook", "script"], str | None]] = {
    ".ipynb": ("notebook", None),
    ".py": ("script", "python"),
    ".r": ("script", "r"),
    ".sh": ("script", "bash"),
}
_PYTHON = ("python", "ipython", "python3")
_COMMENT = {"scala": "//", "julia": "#", "matlab": "%", "c#": "//", "f#": "//"}
_ASSIGNMENT = re.compile(
    r"\s*(?:va[lr]\s+|let\s+|const\s+|export\s+)?([A-Za-z_.][\w.]*)\s*(?:<-|=)\s*"
)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_R_READS = re.compile(r"Sys\.getenv\(\s*[\"']([A-Za-z_]\w*)[\"']")
_R_SOURCES = re.compile(r"\bsource\(\s*[\"']([^\"']+\.[rR])[\"']")
_SHELL_READS = re.compile(r"(?<![\\'])\$\{?([A-Za-z_]\w*)")
_SHELL_SETS = re.compile(
    r"(?:^|[;&|({]|\b(?:export|local|declare|readonly|for|read)\b)[ \t]*([A-Za-z_]\w*)"
    r"(?==|[ \t]+in\b|[ \t]*$)",
    re.M,
)


@dataclass(frozen=True, slots=True)
class Discovery:
    """`parameters` and `outputs` are None when they cannot be known."""

    kind: Literal["notebook", "script", "pipeline"]
    language: str | None = None
    kernel: str | None = None
    parameters: tuple[Assignment, ...] | None = None
    outputs: tuple[str, ...] | None = None
    env: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """Local files that it imports, relative to its folder."""

    def to_json(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "language": self.language,
            "kernel": self.kernel,
            "parameters": None
            if self.parameters is None
            else [parameter_json(parameter) for parameter in self.parameters],
            "outputs": None if self.outputs is None else list(self.outputs),
            "env": list(self.env),
            "modules": list(self.modules),
        }


def parameter_json(parameter: Assignment) -> dict[str, Json]:
    return {
        "name": parameter.name,
        "type": parameter.type,
        "default": parameter.default,
        "source": parameter.source,
        "help": parameter.help,
        "choices": list(parameter.choices),
        "required": parameter.source is None,
    }


def discover(path: Path) -> Discovery:
    """All there is to know about a notebook or script, with the local modules it imports.

    Of a pipeline it is what the file says that it takes and gives.
    """
    if path.suffix == ".pipeline":
        return _pipeline(cast("Mapping[str, Json]", parse(read_file(path))))
    kind_of(path.name)
    data = read_file(path, limit=MAX_BYTES)
    if len(data) > MAX_BYTES:
        raise too_large(path.name)
    found = discover_content(path.name, data)
    return replace(found, modules=tuple(_local_files(path, found.language, data)))


def _pipeline(document: Mapping[str, Json]) -> Discovery:
    """What a pipeline takes and gives, of a document that nobody has checked yet."""
    declared = _dict(document.get("parameters"))
    return Discovery(
        "pipeline",
        parameters=tuple(_declared(name, _dict(each)) for name, each in declared.items()),
        outputs=tuple(_dict(document.get("outputs"))),
    )


def _declared(name: str, parameter: Mapping[str, Json]) -> Assignment:
    kind, text, choices = (parameter.get(key) for key in ("type", "description", "choices"))
    default = parameter.get("default")
    return Assignment(
        name,
        kind if isinstance(kind, str) else None,
        default,
        None if parameter.get("required") is True else json.dumps(default),
        text if isinstance(text, str) else None,
        tuple(choices) if isinstance(choices, list) else (),
    )


def too_large(name: str) -> ConvectError:
    return ConvectError(
        f"“{name}” is larger than {MAX_BYTES >> 20} MiB.",
        code="too-large",
        hint="Clear the outputs of the notebook.",
    )


@dataclass(frozen=True, slots=True)
class Reports:
    """The metrics and outputs that a notebook or script reports, with the modules it imports."""

    metrics: tuple[str, ...]
    outputs: tuple[str, ...] | None
    complete: bool
    """All metrics are named: none comes from code that cannot be seen."""


def reports(path: Path, data: bytes) -> Reports:
    """What a file of this content at `path` reports, by itself and by local modules."""
    found = discover_content(path.name, data)
    if found.language != "python":
        return Reports((), found.outputs, complete=False)
    own = _sources(path, data)
    modules = [path.parent / name for name in _local_files(path, found.language, data)]
    sources = [own, *([file.read_text("utf-8", "replace")] for file in modules if file.is_file())]
    calls = [call for cells in sources for call in python_code.reporting_calls(cells, "metric")]
    metrics = _unique(call for call in calls if call is not None)
    local = {name.stem for name in modules} | {file.parent.name for file in modules}
    foreign = {name for cells in sources for cell in cells for name in foreign_modules(cell)}
    return Reports(
        metrics,
        found.outputs,
        complete=None not in calls
        and not any(python_code.other_code(cell) for cells in sources for cell in cells)
        # Where a notebook reports something itself, libraries rarely report more.
        and bool(metrics or found.outputs or not foreign - local),
    )


def kind_of(name: str) -> Literal["notebook", "script"]:
    """Whether a file is a notebook or a script, by its suffix."""
    found = _SUFFIXES.get(PurePosixPath(name).suffix.lower())
    if found is None:
        raise ConvectError(
            f"“{name}” is neither a notebook nor a script.",
            code="unknown-file-type",
            hint="Notebooks end in .ipynb, scripts in .py, .R or .sh.",
        )
    return found[0]


def discover_content(name: str, data: bytes) -> Discovery:
    """The same from a file's content alone: nothing else on the disk is looked at."""
    if kind_of(name) == "notebook":
        return _notebook(name, data)
    language = _SUFFIXES[PurePosixPath(name).suffix.lower()][1]
    return _script(language or "", data.decode("utf-8", "replace"))


def _script(language: str, source: str) -> Discovery:
    reads: Iterator[str] = iter(())
    outputs: tuple[str, ...] | None = None
    if language == "python":
        reads = python_code.environment_reads(source)
        if "CONVECT_VALUES" not in source:
            outputs = _named([source], "output")
    elif language == "r":
        reads = (match[1] for match in _R_READS.finditer(source))
    else:
        reads = _shell_reads(source)
    return Discovery("script", language, outputs=outputs, env=_sorted(reads))


def _notebook(name: str, data: bytes) -> Discovery:
    notebook = read_notebook(name, data)
    language, kernel = _language_and_kernel(notebook)
    cells = list(code_cells(notebook))
    tagged = next((source for source, tags in cells if "parameters" in tags), None)
    giving = [source for source, tags in cells if "outputs" in tags]
    parameters: tuple[Assignment, ...] | None
    if language not in _PYTHON:
        parameters = () if tagged is None else _foreign_parameters(tagged, kernel, language)
        reads = [m[1] for source, _ in cells for m in _R_READS.finditer(source)]
        return Discovery(
            "notebook",
            language or None,
            kernel,
            parameters,
            None if giving else (),
            _sorted(iter(reads)) if language == "r" else (),
        )
    parameters = () if tagged is None else python_code.assignments(tagged)
    outputs = [name for source in giving for name in python_code.assigned_names(source)]
    outputs += _named([source for source, _ in cells], "output")
    open_ended = any("CONVECT_VALUES" in source for source, _ in cells)
    return Discovery(
        "notebook",
        "python",
        kernel,
        parameters,
        None if open_ended else _unique(iter(outputs)),
        _sorted(name for source, _ in cells for name in python_code.environment_reads(source)),
    )


def read_notebook(name: str, data: bytes) -> dict[str, Any]:
    try:
        notebook = json.loads(data)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno} is not valid JSON"
        raise ConvectError(f"“{name}” is not a notebook: {place}.", code="bad-notebook") from None
    except (ValueError, RecursionError):
        sentence = f"“{name}” is not a notebook: it is not JSON in UTF-8."
        raise ConvectError(sentence, code="bad-notebook") from None
    if isinstance(notebook, dict) and notebook.get("nbformat") in (2, 3):
        notebook = {**notebook, "cells": list(_old_cells(notebook))}
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ConvectError(
            f"“{name}” is not a notebook: it has no cells.",
            code="bad-notebook",
            hint="Open it in JupyterLab and save it again.",
        )
    return notebook


def _old_cells(notebook: dict[str, Any]) -> Iterator[Json]:
    """The cells of the formats before 4, as those of today."""
    sheets = notebook.get("worksheets")
    for sheet in sheets if isinstance(sheets, list) else ():
        cells = _dict(sheet).get("cells")
        for cell in cells if isinstance(cells, list) else ():
            if isinstance(cell, dict):
                yield {**cell, "source": cell.get("input", cell.get("source"))}


def code_cells(notebook: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The source and tags of each code cell."""
    for cell in notebook["cells"]:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source")
        if isinstance(source, list):
            source = "".join(line for line in source if isinstance(line, str))
        tags = _dict(cell.get("metadata")).get("tags")
        yield (source if isinstance(source, str) else ""), tags if isinstance(tags, list) else []


def _language_and_kernel(notebook: dict[str, Any]) -> tuple[str, str | None]:
    metadata = _dict(notebook.get("metadata"))
    kernelspec = _dict(metadata.get("kernelspec"))
    kernel = kernelspec.get("name")
    language = kernelspec.get("language") or _dict(metadata.get("language_info")).get("name")
    if not isinstance(language, str):
        language = "python"
    return language.lower(), kernel if isinstance(kernel, str) and kernel else None


def _foreign_parameters(source: str, kernel: str | None, language: str) -> tuple[Assignment, ...]:
    """Parameters in a language other than Python: papermill's, else plain assignments."""
    from papermill.exceptions import PapermillException
    from papermill.translators import papermill_translators

    try:
        translator = papermill_translators.find_translator(kernel or "", language)
        found = translator.inspect({"source": source})
        return tuple(
            Assignment(
                item.name, None, _plain_literal(item.default), item.default, item.help or None
            )
            for item in found
        )
    except (PapermillException, NotImplementedError):
        return _plain_assignments(source, _COMMENT.get(language, "#"))


def _plain_assignments(source: str, comment: str) -> tuple[Assignment, ...]:
    found = []
    for line in source.splitlines():
        match = _ASSIGNMENT.match(line)
        if match is not None:
            rest = line[match.end() :]
            quoted = _QUOTED.match(rest)
            start = quoted.end() if quoted else 0
            code, _, words = rest[start:].partition(comment)
            text = (rest[:start] + code).strip().rstrip("; ")
            value = _plain_literal(text)
            kind = None if value is None else type_of(value)
            if text:
                found.append(Assignment(match[1], kind, value, text, words.strip() or None))
    return tuple(found)


def _plain_literal(text: str) -> Json:
    """A number, text or truth value as most languages write it."""
    words = {
        "TRUE": True,
        "true": True,
        "True": True,
        "FALSE": False,
        "false": False,
        "False": False,
    }
    if text in words:
        return words[text]
    if re.fullmatch(r"[+-]?\d{1,18}L?", text):
        return int(text.rstrip("L"))
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d{1,2})?", text):
        return float(text)
    quoted = re.fullmatch(r"\"([^\"\\]*)\"|'([^'\\]*)'", text)
    return None if quoted is None else quoted[1] if quoted[1] is not None else quoted[2]


def _shell_reads(source: str) -> Iterator[str]:
    lines = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith("#"))
    own = {match[1] for match in _SHELL_SETS.finditer(lines)}
    for match in _SHELL_READS.finditer(lines):
        if match[1] not in own:
            yield match[1]


def _local_files(path: Path, language: str | None, data: bytes) -> list[str]:
    """Files beside `path` that its code imports, and that those import in turn."""
    folder = path.parent
    found: dict[Path, None] = {}
    queue = [(path, data)]
    while queue:
        file, content = queue.pop()
        for imported in _imported_files(file, folder, language, content):
            if imported not in found and imported != path:
                found[imported] = None
                try:
                    queue.append((imported, imported.read_bytes()))
                except OSError:
                    continue
    return sorted(file.relative_to(folder).as_posix() for file in found)


def _sources(file: Path, data: bytes) -> list[str]:
    """The code of a notebook cell by cell, of a script in one piece."""
    if file.suffix == ".ipynb":
        return [source for source, _ in code_cells(read_notebook(file.name, data))]
    return [data.decode("utf-8", "replace")]


def _imported_files(file: Path, folder: Path, language: str | None, data: bytes) -> Iterator[Path]:
    for source in _sources(file, data):
        if language == "r":
            for match in _R_SOURCES.finditer(source):
                if _is_inside(target := folder / match[1], folder) and target.is_file():
                    yield target
        elif language == "python":
            for level, name in python_code.imports(source):
                start = file.parent if level else folder
                for _ in range(level - 1):
                    start = start.parent
                if _is_inside(start, folder):
                    yield from _module_files(start, name.split("."))


def _module_files(folder: Path, words: list[str]) -> Iterator[Path]:
    """The files that importing a dotted name executes, as far as they lie under `folder`."""
    for word in words:
        package = folder / word
        module = folder / f"{word}.py"
        if package.is_dir():
            initial = package / "__init__.py"
            if initial.is_file():
                yield initial
            folder = package
        else:
            if module.is_file():
                yield module
            return


def _is_inside(path: Path, folder: Path) -> bool:
    return ".." not in path.parts and path.is_relative_to(folder)


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _named(sources: list[str], function: Literal["output", "metric"]) -> tuple[str, ...]:
    calls = python_code.reporting_calls(sources, function)
    return _unique(name for name in calls if name is not None)


def _unique(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _sorted(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))
