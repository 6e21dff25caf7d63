"""`convect pipeline`: make, check, describe, import and export pipelines."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import ConvectError
from . import output
from .arguments import (
    add_json,
    add_parameters,
    add_root,
    declared_types,
    locate,
    typed_parameters,
    write_file,
)

if TYPE_CHECKING:
    from ..pipeline.problems import Problem
    from ..pipeline.types import Document

_COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("pipeline", help="make, check, describe, import and export")
    verbs = parser.add_subparsers(dest="pipeline_verb", metavar="verb", required=True)

    new = verbs.add_parser("new", help="write an empty pipeline")
    new.add_argument("path", type=Path, help="the file to write")
    new.add_argument("--name", help="what to call it (the file's name)")
    new.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_json(new)
    new.set_defaults(handler=_new)

    validate = verbs.add_parser(
        "validate",
        help="report what is wrong",
        epilog="Exit codes: 0 no errors, 1 only what lies around it is wrong, 2 the pipeline is.",
    )
    validate.add_argument("path", type=Path, nargs="+", help="pipelines")
    validate.add_argument("--no-files", action="store_true", help="do not look at other files")
    add_root(validate)
    add_parameters(validate, "check a value that a run would choose (repeatable)")
    add_json(validate)
    validate.set_defaults(handler=_validate)

    describe = verbs.add_parser("describe", help="list what a run needs")
    describe.add_argument("path", type=Path, help="a pipeline")
    add_root(describe)
    add_json(describe)
    describe.set_defaults(handler=_describe)

    convert = verbs.add_parser(
        "import", help="convert an Elyra pipeline, a training job, or a parameter file of DLC"
    )
    convert.add_argument("path", type=Path, help="the file, which is not changed")
    convert.add_argument("-o", "--output", type=Path, help="where to write (standard output)")
    convert.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_root(convert)
    add_json(convert)
    convert.set_defaults(handler=_import)

    export = verbs.add_parser("export", help="write a pipeline for another tool")
    export.add_argument("path", type=Path, help="a pipeline, notebook or script")
    export.add_argument("--to", choices=["kfp"], required=True, help="kfp: Kubeflow Pipelines")
    export.add_argument("-o", "--output", type=Path, help="where to write (standard output)")
    export.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_export_options(export)
    add_json(export)
    export.set_defaults(handler=_export)


def add_export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--image", default="", help="the image of steps that name none")
    add_parameters(parser, "a value of a parameter of the pipeline (repeatable)")
    add_root(parser)


def _new(options: argparse.Namespace) -> int:
    from ..pipeline.document import dumps, new

    path: Path = options.path
    if not path.suffix:
        path = path.with_suffix(".pipeline")
    document = new(options.name or path.stem)
    write_file(path, dumps(document), overwrite=options.force)
    if options.json:
        output.say_json({"path": str(path), "document": document})
    else:
        output.say(f"{path} is ready.")
    return 0


def _validate(options: argparse.Namespace) -> int:
    from ..pipeline.check_files import AROUND

    checked = [(path, _problems(path, options)) for path in options.path]
    if options.json:
        files = [
            {"path": str(path), "problems": [asdict(problem) for problem in problems]}
            for path, problems in checked
        ]
        output.say_json(files[0] if len(files) == 1 else {"files": files})
    else:
        for path, problems in checked:
            for problem in problems:
                output.say(f"{path}: {_line(problem, sys.stdout)}")
            output.say(f"{path}: {_summary(problems)}")
    errors = [p for _, problems in checked for p in problems if p.severity == "error"]
    around = [p for p in errors if p.node is not None and p.code in AROUND]
    return 2 if len(errors) > len(around) else 1 if errors else 0


def _problems(path: Path, options: argparse.Namespace) -> list[Problem]:
    from ..pipeline.problems import Problem
    from ..pipeline.validate import validate

    try:
        document = _read(path)
    except ConvectError as error:
        if len(options.path) == 1:
            raise
        return [Problem("error", error.code, error.sentence, hint=error.hint)]
    root, relative = locate(path, options.root)
    return validate(
        document,
        root=None if options.no_files else root,
        path=relative,
        parameters=_given(document, options.parameter),
    )


def _given(document: Document, pairs: list[str]) -> dict[str, Any] | None:
    """The values of a run, of the types that the pipeline declares."""
    if not pairs:
        return None

    return typed_parameters(pairs, declared_types(document))


def _describe(options: argparse.Namespace) -> int:
    from ..pipeline.describe import describe

    root, relative = locate(options.path, options.root)
    found = describe(_read(options.path), root=root, path=relative)
    if options.json:
        output.say_json(found)
    else:
        output.say(_description(found))
    return 0


def _import(options: argparse.Namespace) -> int:
    from ..pipeline.document import dumps, read_file
    from ..pipeline.elyra import seen_from
    from ..pipeline.foreign import import_file

    _, relative = locate(options.path, options.root)
    data = read_file(options.path, str(options.path))
    document, report = import_file(data, options.path.name, path=relative)
    if options.output is not None:
        folders = (options.path.absolute().parent, options.output.absolute().parent)
        document = seen_from(document, Path(os.path.relpath(*folders)).as_posix())
    told = {"document": document, "report": [asdict(problem) for problem in report]}
    return _hand_out(dumps(document), report, told, options)


def exported(options: argparse.Namespace) -> tuple[str, list[Problem]]:
    """What `path`, `root`, `parameter` and `image` name as a pipeline of Kubeflow."""
    from ..pipeline.files import FileCache
    from ..planning import plan
    from ..runs.model import Request
    from ..runtimes.kfp.executor import TaskDefaults
    from ..runtimes.kfp.export import export_plan

    root, relative = locate(options.path, options.root)
    given = {}
    if options.parameter:
        is_pipeline = options.path.suffix == ".pipeline"
        declared = declared_types(_read(options.path)) if is_pipeline else {}
        given = typed_parameters(options.parameter, declared)
    request = Request(root=str(root), path=relative, parameters=given)
    return export_plan(plan(request, FileCache(root)), root, TaskDefaults(options.image))


def _export(options: argparse.Namespace) -> int:
    text, problems = exported(options)
    where = {"path": str(options.output)} if options.output is not None else {"text": text}
    told = {**where, "problems": [asdict(problem) for problem in problems]}
    return _hand_out(text, problems, told, options)


def _hand_out(
    text: str, problems: Iterable[Problem], told: dict[str, Any], options: argparse.Namespace
) -> int:
    """Write or print what was converted, and say what was found on the way."""
    if options.output is not None:
        write_file(options.output, text, overwrite=options.force)
    if options.json:
        output.say_json(told)
        return 0
    for problem in problems:
        output.note(f"{options.path}: {_line(problem, sys.stderr)}")
    if options.output is None:
        print(text, end="")
    else:
        output.say(f"{options.output} is ready.")
    return 0


def _read(path: Path) -> Document:
    from ..pipeline.document import parse, read_file

    return parse(read_file(path, str(path)))


def _summary(problems: list[Problem]) -> str:
    errors, warnings = (
        sum(problem.severity == severity for problem in problems)
        for severity in ("error", "warning")
    )
    words = _count(errors, "error") if errors else "no errors"
    more = f", {_count(warnings, 'warning')}" if warnings else ""
    return output.paint(words + more, "red" if errors else "green")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _line(problem: Problem, stream: IO[str]) -> str:
    words = [output.paint(problem.severity, _COLOURS[problem.severity], stream) + ":"]
    where = ".".join(str(part) for part in (problem.node, *problem.path) if part is not None)
    words += [f"{where}:"] if where else []
    words += [problem.message]
    words += [problem.hint] if problem.hint else []
    return " ".join(words)


def _description(found: dict[str, Any]) -> str:
    from ..pipeline.describe import rule_in_words

    kinds = ", ".join(_count(number, kind) for kind, number in found["kinds"].items()) or "no nodes"
    parts = [f"{output.paint(found['name'] or 'pipeline', 'bold')}: {kinds}"]
    parts += _section("Parameters", _parameter_rows(found["parameters"]))
    rows = [
        [name, rule_in_words(rule), ", ".join(rule.get("members", ()))]
        for name, rule in found["rules"].items()
    ]
    parts += _section("Rules", rows)
    parts += _section("Files", _file_rows(found["files"]))
    for title in ("Images", "Kernels", "Components", "Outputs"):
        rows = [[name, ", ".join(nodes)] for name, nodes in found[title.lower()].items()]
        parts += _section(title, rows)
    rows = [[f"{s['name']}/{s['key']}", ", ".join(s["nodes"])] for s in found["secrets"]]
    parts += _section("Secrets", rows)
    rows = [[v["claim"], v["path"], ", ".join(v["nodes"])] for v in found["volumes"]]
    parts += _section("Volumes", rows)
    amounts = found["resources"]
    rows = [
        [kind, f"{amounts['largest'][kind]} at most in one node", f"{total} in all"]
        for kind, total in amounts["total"].items()
    ]
    rows += [["gpu", name, ", ".join(nodes)] for name, nodes in amounts["gpu_types"].items()]
    parts += _section("Resources", rows)
    return "\n".join(parts)


def _section(title: str, rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    lines = output.table(rows).splitlines()
    return ["", output.paint(title, "bold"), *(f"  {line}" for line in lines)]


def _parameter_rows(parameters: dict[str, Any]) -> list[list[str]]:
    from ..pipeline.document import shorten

    return [
        [
            name,
            parameter.get("type", ""),
            "required" if parameter.get("required") else shorten(parameter.get("default")),
            parameter.get("description", ""),
        ]
        for name, parameter in parameters.items()
    ]


def _file_rows(files: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [
            item["path"],
            item["role"],
            output.paint("missing", "red") if item["exists"] is False else "",
            ", ".join(item["nodes"]),
        ]
        for item in files
    ]
