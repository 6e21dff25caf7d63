"""The `convect` command.

Each verb lives in a module of its own, which is imported only when it is asked
for. Such a module has `add(subparsers)`, which adds its parser and sets the
default `handler`, a function from the parsed arguments to an exit code.

Exit codes: 0 success; 1 what was asked for failed (a run failed, or a file
that the pipeline needs is missing); 2 the input is bad. 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from .. import __version__
from ..errors import ConvectError
from . import output

VERBS = {
    "run": ("run", "run a notebook, script or pipeline"),
    "runs": ("runs", "list, show, follow, stop and clean up runs"),
    "schedule": ("schedule", "run something on a schedule"),
    "notify": ("notify", "get messages about runs, by mail or in a chat"),
    "serve": ("serve", "make a notebook, script or pipeline callable"),
    "services": ("services", "list, start and stop what stays up: apps, TensorBoard, …"),
    "dask": ("dask", "make, scale, test and stop Dask clusters"),
    "pipeline": ("pipeline", "make, check, describe, import and export pipelines"),
    "component": ("component", "import, list and show components"),
    "training": ("training", "check training jobs in YAML"),
    "top": ("top", "show what is running and what is free"),
    "kfp": ("kfp", "look at a Kubeflow Pipelines server"),
    "completion": ("completion", "have a shell complete what you type"),
}
"""The module of each verb, and what it is for."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = parser_for(arguments)
    try:
        options = parser.parse_args(arguments)
    except ConvectError as error:  # Of a value that cannot be read.
        output.fail(error, as_json="--json" in arguments)
        return 2
    output.print_anything()
    if options.verb is None:
        parser.print_help()
        return 2
    code = 0
    # The reader, such as `head`, may have had enough; then nobody is left to tell.
    with contextlib.suppress(BrokenPipeError):
        try:
            code = options.handler(options) or 0
        except ConvectError as error:
            code = 2
            output.fail(error, as_json=getattr(options, "json", False))
        except KeyboardInterrupt:
            code = 130
    output.finish()
    return code


def program() -> NoReturn:
    """`convect`, which does not take apart what the system takes back anyway."""
    code = main()
    atexit._run_exitfuncs()
    os._exit(code)


def parser_for(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of these arguments, which has the options of their verb alone."""
    verb = next((word for word in arguments if not word.startswith("-")), None)
    parser = argparse.ArgumentParser(
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30),
        prog="convect",
        description="Take a notebook from the laptop to the GPU cluster without changing it.",
        epilog="Exit codes: 0 success, 1 what was asked for failed, 2 bad input.",
    )
    parser.add_argument("--version", action="version", version=f"convect {__version__}")
    subparsers = parser.add_subparsers(dest="verb", metavar="verb")
    for name, (module, words) in VERBS.items():
        if name == verb:
            importlib.import_module(f".{module}", __name__).add(subparsers)
        else:
            subparsers.add_parser(name, help=words, add_help=False)
    return parser
