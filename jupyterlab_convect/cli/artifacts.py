"""`convect runs files`, `environment` and `download`: what a run left behind."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Missing
from . import output
from .arguments import RUN, add_json, find_run, open_workspace, write_file

if TYPE_CHECKING:
    from ..runs.environments import EnvironmentChange


def add_artifacts(verbs: Any) -> None:
    environment = verbs.add_parser(
        "environment", help="list what a run was executed with, or how two runs differ in it"
    )
    environment.add_argument("run", help=RUN)
    environment.add_argument("other", nargs="?", help="another run, to compare with the first")
    environment.add_argument(
        "--difference", action="store_true", help="print how the files differed from the commit"
    )
    add_json(environment)
    environment.set_defaults(handler=_environment)

    files = verbs.add_parser("files", help="list the files that a run made, or put them in place")
    files.add_argument("run", help=RUN)
    files.add_argument(
        "--put", action="store_true", help="put them into the project where it has not changed"
    )
    files.add_argument(
        "--replace", action="store_true", help="also replace files that have changed since"
    )
    add_json(files)
    files.set_defaults(handler=_files)

    download = verbs.add_parser(
        "download", help="save everything that a run left behind as a zip file"
    )
    download.add_argument("run", help=RUN)
    download.add_argument("-o", "--output", type=Path, help="the file to write (<run id>.zip)")
    download.add_argument("--force", action="store_true", help="overwrite an existing file")
    download.set_defaults(handler=_download)


def _environment(options: argparse.Namespace) -> int:
    from ..runs import environments

    store = open_workspace().store

    def described(word: str) -> dict[str, Any]:
        return environments.describe(store, store.read(find_run(store, word)))

    found = described(options.run)
    if options.other is not None:
        changes = environments.compare(found, described(options.other))
        return _say_changes(changes, options.json)
    if options.json:
        output.say_json(found)
    elif options.difference:
        difference = (found["git"] or {}).get("difference") or {}
        output.say(difference.get("text") or "")
        if difference.get("cut"):
            output.note("The rest was too long to be kept.")
    elif not found["steps"]:
        raise Missing(f"The environment of run “{options.run}” was not recorded.")
    else:
        _say_environments(found)
    return 0


def _say_environments(found: dict[str, Any]) -> None:
    for step_id, step in found["steps"].items():
        environment = found["environments"].get(step["digest"], {})
        python = environment and f"{environment['implementation']} {environment['python']}"
        host = step["host"]
        facts = [
            ("python", python),
            ("language", step["language"]),
            ("interpreter", step["interpreter"]),
            ("kernel", step["kernel"]),
            ("platform", environment.get("platform")),
            ("host", step["node"] or host.get("name")),
            ("system", host.get("system")),
            ("processors", host.get("cpus")),
            ("gpus", ", ".join(map(str, host.get("gpus") or ()))),
            ("image", step["image"]),
            ("digest", step["digest"]),
        ]
        output.say(output.paint(step_id, "bold"))
        output.say(output.table([[f"  {name}", str(fact)] for name, fact in facts if fact]))
    for digest, environment in found["environments"].items():
        output.say()
        if len(found["environments"]) > 1:
            output.say(f"# {digest}")
        for name, version in environment["packages"].items():
            number, mark, origin = version.partition(" @ ")
            output.say(f"{name} @ {origin}" if mark else f"{name}=={number}")


def _say_changes(changes: dict[str, list[EnvironmentChange]], as_json: bool) -> int:
    if as_json:
        output.say_json({step: [asdict(each) for each in found] for step, found in changes.items()})
        return 0
    if not changes:
        output.note("They have no step whose environment is known in both.")
    for step_id, found in changes.items():
        same = "" if found else ": the same environment"
        output.say(f"{output.paint(step_id, 'bold')}{same}")
        rows = [[f"  {each.name}", each.before or "-", each.after or "-"] for each in found]
        if rows:
            output.say(output.table(rows))
    return 0


def _files(options: argparse.Namespace) -> int:
    from ..runs import made

    store = open_workspace().store
    run_id = find_run(store, options.run)
    if options.put or options.replace:
        made.put_when_asked(store, run_id, replace=options.replace)
    found = made.describe(store, run_id)
    if options.json:
        output.say_json(found)
        return 0
    rows = [
        [
            each["change"] or "output",
            each["path"],
            str(each.get("size", "")),
            each["step"],
            _whereabouts(each, found),
        ]
        for each in found["files"]
    ]
    if rows:
        output.say(output.table(rows, ("change", "file", "bytes", "step", "")))
    else:
        output.note("This run made no files.")
    return 0


def _whereabouts(file: dict[str, Any], found: dict[str, Any]) -> str:
    """What became of a file that a run made."""
    from ..runs.model import GOOD

    path, is_deleted = file["path"], file["change"] == "deleted"
    if file["state"] not in GOOD:
        return "kept: the step did not succeed"
    if file["replaced_by"]:
        return f"replaced by {file['replaced_by']}"
    if path in found["put"]:
        return "deleted in the project" if is_deleted else "put into the project"
    why = f": {found['kept'][path]}" if path in found["kept"] else ""
    if is_deleted:
        return f"not deleted in the project{why}"
    return f"kept with the run{why}" if file["kept"] else "too large to be kept"


def _download(options: argparse.Namespace) -> int:
    from ..runs.archive import archive

    store = open_workspace().store
    run_id = find_run(store, options.run)
    target: Path = options.output or Path(f"{run_id}.zip")
    if str(target) == "-":
        for chunk in archive(store.run_folder(run_id)):
            sys.stdout.buffer.write(chunk)
        return 0
    if target.is_dir():
        target /= f"{run_id}.zip"
    write_file(target, archive(store.run_folder(run_id)), overwrite=options.force)
    output.say(str(target))
    return 0
