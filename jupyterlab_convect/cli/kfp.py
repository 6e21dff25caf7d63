"""`convect kfp`: test the connection to a Kubeflow Pipelines server, and publish there."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError
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
        "user: the address), or from CONVECT_KFP_SECRET."
    )
    check = verbs.add_parser(
        "check", help="test the connection, and name the step that fails", epilog=epilog
    )
    check.add_argument("endpoint", nargs="?", help="its address (KF_PIPELINES_ENDPOINT)")
    _add_way(check)
    add_json(check)
    check.set_defaults(handler=_check)

    publish = verbs.add_parser(
        "publish", help="make a version of a pipeline on the server", epilog=epilog
    )
    publish.add_argument("path", type=Path, help="a pipeline, notebook or script")
    publish.add_argument("--endpoint", help="the server's address (KF_PIPELINES_ENDPOINT)")
    publish.add_argument("--name", help="of the pipeline there (as here)")
    publish.add_argument("--version", help="the version's name (the time)")
    add_export_options(publish)
    _add_way(publish)
    add_json(publish)
    publish.set_defaults(handler=_publish)


def _add_way(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--namespace", default="", help="of an installation with several users")
    parser.add_argument(
        "--sign-in",
        default="auto",
        choices=["auto", "none", "token-file", "token", "password", "cookie", "kubeconfig"],
        help="how (whatever works)",
    )
    parser.add_argument("--user", default="", help="the name that belongs to the password")
    parser.add_argument("--ca", default="", help="a file with the authority of its certificate")
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
    )


def _publish(options: argparse.Namespace) -> int:
    from ..runtimes.kfp.check import connect

    text, problems = exported(options)
    name = options.name or options.path.stem
    version = options.version or time.strftime("%Y-%m-%d %H:%M:%S")
    client = connect(_way(options))
    found = client.publish(name, version, text)
    page = f"{client.endpoint}/#/pipelines/details/{found['pipeline']}/version/{found['version']}"
    if options.json:
        told = [asdict(problem) for problem in problems]
        output.say_json({**found, "page": page, "problems": told})
    else:
        output.say(f"“{name}” has the version “{version}”: {page}")
    return 0


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
