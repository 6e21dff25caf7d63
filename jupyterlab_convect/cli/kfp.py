"""`convect kfp`: test the connection to a Kubeflow Pipelines server, list its runs, publish."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError
from ..json_text import dumps
from . import output
from .arguments import add_json
from .pipeline import add_export_options, exported

if TYPE_CHECKING:
    from ..runtimes.kfp.check import Way


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("kfp", help="use a Kubeflow Pipelines server")
    verbs = parser.add_subparsers(dest="kfp_verb", metavar="verb", required=True)
    epilog = (
        "A token, password or cookie is taken from the keyring (service jupyterlab-convect-kfp, "
        "user: the address), from a Kubernetes Secret, or from "
        "CONVECT_KFP_SECRET."
    )
    check = verbs.add_parser(
        "check", help="test the connection, and name the step that fails", epilog=epilog
    )
    check.add_argument("endpoint", nargs="?", help="its address (KF_PIPELINES_ENDPOINT)")
    _add_way(check)
    add_json(check)
    check.set_defaults(handler=_check)

    runs = verbs.add_parser(
        "runs", help="list the runs of the server, also those made elsewhere", epilog=epilog
    )
    runs.add_argument("run", nargs="?", help="show this one, with its steps")
    runs.add_argument("--endpoint", help="the server's address (KF_PIPELINES_ENDPOINT)")
    runs.add_argument("--limit", type=int, default=20, help="how many (20)")
    _add_way(runs)
    add_json(runs)
    runs.set_defaults(handler=_runs)

    publish = verbs.add_parser(
        "publish", help="make a version of a pipeline on the server", epilog=epilog
    )
    publish.add_argument("path", type=Path, help="a pipeline, notebook or script")
    publish.add_argument("--endpoint", help="the server's address (KF_PIPELINES_ENDPOINT)")
    publish.add_argument("--name", help="what the pipeline is called there (as here)")
    publish.add_argument("--version", help="the version's name (the time)")
    add_export_options(publish)
    _add_way(publish)
    add_json(publish)
    publish.set_defaults(handler=_publish)


def _add_way(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--namespace", default="", help="the namespace, where there are several users"
    )
    parser.add_argument(
        "--sign-in",
        default="auto",
        choices=["auto", "none", "token-file", "token", "password", "cookie", "kubeconfig"],
        help="how to sign in (whatever works)",
    )
    parser.add_argument("--user", default="", help="the user name for the password")
    parser.add_argument("--ca", default="", help="a file with its CA certificate")
    parser.add_argument("--secret", default="", help="a Kubernetes Secret, as name/key")
    parser.add_argument("--token-file", default="", help="where the cluster keeps a token")
    parser.add_argument(
        "--server-namespace", default="", help="where the server runs, for kubeconfig (kubeflow)"
    )


def _way(options: argparse.Namespace) -> Way:
    from ..runtimes.kfp.check import Way, way_from_environment

    known = way_from_environment()
    endpoint = options.endpoint or known.get("endpoint") or ""
    if not endpoint and options.sign_in != "kubeconfig":
        raise ConvectError("Specify the address of the server.", code="no-address")
    return Way(
        endpoint,
        options.sign_in,
        options.namespace,
        options.user,
        options.ca or known.get("ca_file", ""),
        options.token_file,
        options.server_namespace,
        options.secret,
    )


def _publish(options: argparse.Namespace) -> int:
    from ..runtimes.kfp.api import page_of_version
    from ..runtimes.kfp.check import connect

    text, problems = exported(options)
    name = options.name or options.path.stem
    version = options.version or time.strftime("%Y-%m-%d %H:%M:%S")
    client = connect(_way(options))
    found = client.publish(name, version, text)
    page = page_of_version(client.endpoint, found)
    if options.json:
        told = [asdict(problem) for problem in problems]
        output.say_json({**found, "page": page, "problems": told})
    else:
        output.say(f"“{name}” has the version “{version}”: {page}")
    return 0


def _runs(options: argparse.Namespace) -> int:
    from ..runtimes.kfp import others
    from ..runtimes.kfp.check import connect

    client = connect(_way(options))
    if options.run:
        return _show_run(others.detail(client, options.run), as_json=options.json)
    found = others.page(client, max(1, min(options.limit, 200)), "")
    if options.json:
        output.say_json(found)
        return 0
    rows = [
        [run["id"], run["state"], _time(run["created"]), run["name"], run["made_by"] or ""]
        for run in found["runs"]
    ]
    output.say(output.table(rows, ("run", "state", "created", "name", "made by")))
    return 0


def _show_run(run: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        output.say_json(run)
        return 0
    output.say(f"{run['name']}: {run['state']}")
    if run["reason"]:
        output.say(run["reason"])
    parameters = [[f"  {name}", dumps(value)] for name, value in run["parameters"].items()]
    if parameters:
        output.say(output.table(parameters))
    units = sorted([*run["groups"], *run["steps"]], key=lambda unit: unit["id"])
    rows = [
        [unit["id"], unit["state"], ", ".join(unit["after"]), unit.get("image", "")]
        for unit in units
    ]
    output.say(output.table(rows, ("step", "state", "after", "image")))
    return 0


def _time(moment: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment)) if moment else ""


def _check(options: argparse.Namespace) -> int:
    from ..runtimes.kfp.check import check

    steps = check(_way(options))
    ok = all(step.ok for step in steps)
    if options.json:
        output.say_json({"ok": ok, "steps": [asdict(step) for step in steps]})
    else:
        for step in steps:
            mark = output.paint("ok", "green") if step.ok else output.paint("failed", "red")
            output.say(" ".join(filter(None, (f"{step.step}: {mark}:", step.message, step.hint))))
    return 0 if ok else 1
