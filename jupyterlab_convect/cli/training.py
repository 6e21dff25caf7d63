"""`convect training`: training jobs of Kubeflow in YAML."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path
from typing import Any

from ..errors import ConvectError
from . import output
from .arguments import add_json, open_workspace, write_file


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("training", help="check, convert and run training jobs in YAML")
    verbs = parser.add_subparsers(dest="training_verb", required=True)
    check = verbs.add_parser(
        "check", help="report what is wrong with a PyTorchJob, TFJob, MPIJob or TrainJob, by line"
    )
    check.add_argument("file", type=Path, help="a file in YAML")
    check.add_argument(
        "--fix", action="store_true", help="mend indents, and put in quotes what must be text"
    )
    add_json(check)
    check.set_defaults(handler=_check)
    convert = verbs.add_parser(
        "convert", help="write a PyTorchJob or MPIJob as a TrainJob of Kubeflow Trainer"
    )
    convert.add_argument("file", type=Path, help="a file in YAML")
    convert.add_argument("-o", "--output", type=Path, help="the new file, instead of the terminal")
    convert.add_argument("--force", action="store_true", help="overwrite an existing file")
    convert.set_defaults(handler=_convert)

    run = verbs.add_parser(
        "run", help="create a job in the cluster as it is, print its logs, and wait for its end"
    )
    run.add_argument("file", type=Path, help="a file in YAML")
    run.set_defaults(handler=_run)


def _check(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from ..pipeline.training.job_check import mend

    file: Path = options.file
    text = _read(file)
    mended, faults = mend(text)
    if options.fix and mended != text:
        write_file(file, mended, overwrite=True)
        output.note(f"{file} is mended.")
        _, faults = mend(mended)
    if options.json:
        output.say_json({"faults": [asdict(fault) for fault in faults]})
    else:
        for fault in faults:
            hint = f" {fault.hint}" if fault.hint else ""
            output.say(f"{file}:{fault.line}: {fault.message}{hint}")
    return 1 if faults else 0


def _convert(options: argparse.Namespace) -> int:
    from ..pipeline.training.job_convert import as_train_job

    text, report = as_train_job(_read(options.file))
    for problem in report:
        output.warn(problem.message + (f" {problem.hint}" if problem.hint else ""))
    if options.output is None:
        output.say(text.rstrip())
    else:
        write_file(options.output, text, overwrite=options.force)
    return 0


def _run(options: argparse.Namespace) -> int:
    from ..pipeline.training.job_convert import only_job
    from ..runtimes.kubernetes.runtime import KubernetesRuntime

    job = only_job(_read(options.file))
    runtime = open_workspace().runtimes["kubernetes"]
    if not isinstance(runtime, KubernetesRuntime):
        raise ConvectError("The runtime kubernetes cannot run training jobs.")
    signal.signal(signal.SIGTERM, _stop)
    try:
        values = os.environ.get("CONVECT_VALUES")  # of the step that it is, if it is one
        folder = Path(values).parent if values else None
        return runtime.run_job(job.content, lambda line: print(line, flush=True), folder)
    except ConvectError as error:  # A run gives the last line as the reason.
        said = " ".join(filter(None, (error.sentence, error.hint)))
        raise ConvectError(said, code=error.code) from None


def _stop(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConvectError(f"“{file}” cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConvectError(f"“{file}” is not text in UTF-8.") from None
