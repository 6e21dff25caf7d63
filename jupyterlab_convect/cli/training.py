"""`convect training`: training jobs of Kubeflow in YAML."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..errors import ConvectError
from . import output
from .arguments import add_json, write_file


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("training", help="check training jobs in YAML")
    verbs = parser.add_subparsers(dest="training_verb", required=True)
    check = verbs.add_parser(
        "check", help="report what is wrong with a PyTorchJob, TFJob, MPIJob or TrainJob, by line"
    )
    check.add_argument("file", type=Path, help="a file in YAML")
    check.add_argument("--fix", action="store_true", help="indent lines like those around them")
    add_json(check)
    check.set_defaults(handler=_check)


def _check(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from .training_files import check, repair

    file: Path = options.file
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConvectError(f"“{file}” cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConvectError(f"“{file}” is not text in UTF-8.") from None
    if options.fix:
        mended, _ = repair(text)
        if mended != text:
            write_file(file, mended, overwrite=True)
            output.note(f"{file} is mended.")
        text = mended
    faults = check(text)
    if options.json:
        output.say_json({"faults": [asdict(fault) for fault in faults]})
    else:
        for fault in faults:
            hint = f" {fault.hint}" if fault.hint else ""
            output.say(f"{file}:{fault.line}: {fault.message}{hint}")
    return 1 if faults else 0
