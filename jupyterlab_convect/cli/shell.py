"""`convect runs shell`: a look around where a step runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError, Missing

if TYPE_CHECKING:
    from ..runs.store import Record, Store
    from ..runtimes.base import Attempt


def add_shell(verbs: Any) -> None:
    parser = verbs.add_parser("shell", help="open a shell where a step runs")
    parser.add_argument("run", help="a run: its id, a beginning or end of it, or `latest`")
    parser.add_argument("step", nargs="?", help="the step, if several run")
    parser.add_argument(
        "-c",
        "--command",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="WORD",
        help="run this instead of a shell: all words that follow",
    )
    parser.set_defaults(handler=_shell)


def _shell(options: argparse.Namespace) -> int:
    from ..runtimes.base import StepRuntime
    from ..settings import load_settings
    from ..workspace import Workspace
    from .finding import find_run

    workspace = Workspace(load_settings())
    record = workspace.store.read(find_run(workspace.store, options.run))
    attempt = running_attempt(workspace.store, record, options.step)
    runtime = workspace.runtimes[record.run.runtime]
    if not isinstance(runtime, StepRuntime):
        raise ConvectError(f"The runtime {record.run.runtime} has no shell.")
    return runtime.shell(attempt, options.command)


def running_attempt(store: Store, record: Record, step: str | None) -> Attempt:
    """The attempt to look at: of the step that is named, or the only one that runs."""
    from ..results import results_of

    run, state = record
    if step is not None and step not in state.steps:
        raise Missing(f"Run {run.id} has no step “{step}”.", hint=", ".join(state.steps))
    running = [item for item in state.steps.values() if item.state == "running"]
    chosen = [item for item in running if step in (None, item.id)]
    if not chosen:
        sentence = (
            f"The step “{step}” does not run now." if step else "No step of the run is running now."
        )
        raise ConvectError(sentence, code="not-running")
    if len(chosen) > 1:
        names = ", ".join(item.id for item in chosen)
        raise ConvectError(f"Several steps run: {names}.", hint="Name the one to look at.")
    return results_of(store, record, chosen[0].id, len(chosen[0].attempts)).attempt
