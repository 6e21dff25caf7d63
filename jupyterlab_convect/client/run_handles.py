"""Runs and sweeps as objects of the Python API: always the present state, nothing kept."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import Missing
from ..json_text import shown
from ..pipeline.plan import Json
from ..runs import environments, made, views
from ..runs.attempt_files import AttemptFiles, all_events, files_of, list_files, read_log
from ..runs.model import ENDED, GOOD, Selection, State, StepState, step_of, steps_of
from ..runs.replicas import is_of, list_replicas, log_of
from ..runs.store import Record
from ..runs.versions import Version

if TYPE_CHECKING:
    from .session import ClientSession


class RunHandle:
    """One run. Attributes are read again each time they are accessed."""

    def __init__(self, session: ClientSession, run_id: str) -> None:
        self._session = session
        self.id = run_id

    @property
    def name(self) -> str:
        run, state = self._record()
        return state.name or run.name

    @property
    def state(self) -> State:
        return self._record().state.state

    @property
    def reason(self) -> str | None:
        """Why it waits or failed."""
        return self._record().state.reason

    @property
    def done(self) -> bool:
        return self.state in ENDED

    @property
    def succeeded(self) -> bool:
        return self.state in GOOD

    @property
    def parameters(self) -> dict[str, Json]:
        parameters: dict[str, Json] = self.view()["parameters"]
        return parameters

    @property
    def outputs(self) -> dict[str, Json]:
        """The values that the steps gave; of two by one name the later step's.

        A step in a loop gives a list, with the values of all items in their order.
        """
        return views.outputs_of(*self._record())

    @property
    def metrics(self) -> dict[str, float]:
        return views.metrics_of(self._record().state)

    @property
    def steps(self) -> dict[str, StepState]:
        return self._record().state.steps

    def items(self, loop: str, *states: State) -> list[dict[str, Json]]:
        """The items of a loop, or those in some states: `index`, `value`, `state`, `steps`, …"""
        record = self._record()
        group = record.state.groups.get(loop)
        count = len(group.values or ()) if group is not None else 0
        found: list[dict[str, Json]] = views.items_view(*record, loop, states, limit=count)["page"]
        return found

    @property
    def folder(self) -> Path:
        """Where all of it lies."""
        return self._session.workspace.store.run_folder(self.id)

    @property
    def notebook(self) -> Path:
        """The executed notebook; of several, the last step's."""
        state = self._record().state
        for step in reversed(steps_of(state)):
            if step_of(state, step.id).kind == "notebook":
                return self.notebook_of(step.id)
        raise Missing(f"Run {self.id} has no notebook.")

    def notebook_of(self, step: str) -> Path:
        path = self._files(step).folder / "executed.ipynb"
        if not path.exists():
            raise Missing(f"There is no executed notebook of step “{step}”.")
        return path

    def files(self, step: str | None = None) -> dict[str, Path]:
        """The declared output files by their path in the working folder."""
        found = {}
        for name in self._steps(step):
            results = self._files(name)
            for file in list_files(results):
                found[file["path"]] = results.folder / "files" / file["path"]
        return found

    def logs(self, step: str | None = None, *, replica: int | None = None) -> str:
        """What a step printed so far; without a name, all steps one after the other.

        `replica` is the rank of one process of a distributed step.
        """
        return "".join(self._log(name, replica) for name in self._steps(step))

    def replicas(self, step: str | None = None) -> list[dict[str, Json]]:
        """The processes of a distributed step: rank, state, reason, node, GPU, exit code, what each
        uses of the machine, its rate and its last line."""
        return [each for name in self._steps(step) for each in list_replicas(self._files(name))]

    def events(
        self, step: str | None = None, *, replica: int | None = None
    ) -> list[dict[str, Json]]:
        """What a step did, each with `time` and `type`.

        `replica` is the rank of one process of a distributed step: how its state changed.
        """
        found = [event for name in self._steps(step) for event in all_events(self._files(name))]
        return found if replica is None else [event for event in found if is_of(event, replica)]

    def view(self) -> dict[str, Json]:
        """All that is known, as the REST API gives it."""
        return environments.view(self._session.workspace.store, self._record())

    @property
    def environment(self) -> dict[str, Json]:
        """Python, packages, host, image and commit, as `GET runs/{id}/environment` gives them."""
        return environments.describe(self._session.workspace.store, self._record())

    def compare_environment(
        self, other: RunHandle
    ) -> dict[str, list[environments.EnvironmentChange]]:
        """How the environment of each step of `other` differs from that of the same step here."""
        return environments.compare(self.environment, other.environment)

    def wait(self, timeout: float | None = None) -> RunHandle:
        """Return when it has ended. TimeoutError."""
        self._session.do(self._session.workspace.engine.wait(self.id, timeout))
        return self

    def stop(self, step: str | None = None) -> None:
        self._session.do(self._session.workspace.engine.stop(self.id, step))

    def rerun(
        self,
        mode: Literal["all", "failed", "only", "from", "upto"] = "all",
        node: str | None = None,
        *,
        version: Version = "today",
        wait: bool = True,
    ) -> RunHandle:
        """Run it again, whole or in part, as a new run: the files of today, or of this run."""
        again = self._session.again(self.id, Selection(mode, node), version)
        return again.wait() if wait else again

    @property
    def made(self) -> dict[str, Json]:
        """The files that it created, changed or deleted, as `GET runs/{id}/made` gives them."""
        return made.describe(self._session.workspace.store, self.id)

    def put_files(self, *, replace: bool = False) -> dict[str, Json]:
        """Put the files that it made into the project, where that did not change since; with
        `replace` also where it did."""
        made.put_when_asked(self._session.workspace.store, self.id, replace=replace)
        return self.made

    def delete(self) -> None:
        self._session.workspace.store.delete(self.id)

    def _record(self) -> Record:
        return self._session.workspace.store.read(self.id)

    def _steps(self, step: str | None) -> list[str]:
        if step is not None:
            return [step]
        found = steps_of(self._record().state)
        return [item.id for item in found if item.attempts or item.source]

    def _files(self, step: str) -> AttemptFiles:
        record = self._record()
        attempts = record.state.steps[step].attempts if step in record.state.steps else []
        return files_of(self._session.workspace.store, record, step, len(attempts) or 1)

    def _log(self, step: str, replica: int | None) -> str:
        files, text, offset = self._files(step), "", 0
        log = None if replica is None else log_of(files, replica)
        while True:
            chunk = read_log(files, offset, log=log)
            text += chunk.text
            if chunk.complete or chunk.offset == offset:
                return text
            offset = chunk.offset

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.name!r}: {self.state}>"

    def _repr_html_(self) -> str:
        state = self._record().state
        rows = [(step.id, step.state, step.reason or "") for step in views.shown_steps(state)]
        values = {**self.outputs, **self.metrics}
        tables = _table(("step", "state", ""), rows)
        if values:
            tables += _table(("value", ""), [(name, shown(item)) for name, item in values.items()])
        title = html.escape(f"{self.name}: {state.state}")
        return f"<b>{title}</b> <small>{self.id}</small>{tables}"


class RunList(list[RunHandle]):
    """Several runs; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        views = [run.view() for run in self]
        return _table(
            ("run", "name", "state", "parameters", "metrics"),
            [
                (
                    view["id"],
                    view["name"],
                    view["state"],
                    _pairs(view["parameters"]),
                    _pairs(view["metrics"]),
                )
                for view in views
            ],
        )


class SweepHandle:
    """A sweep and its runs."""

    def __init__(self, session: ClientSession, sweep_id: str) -> None:
        self._session = session
        self.id = sweep_id

    @property
    def state(self) -> State:
        state: State = self.view()["state"]
        return state

    @property
    def runs(self) -> RunList:
        """The last run of each point that has one."""
        return RunList(RunHandle(self._session, run["id"]) for run in self.view()["runs"])

    @property
    def best(self) -> RunHandle | None:
        """The run that `select` chose among those that succeeded with a finite number."""
        best = self.view()["best"]
        return None if best is None else RunHandle(self._session, best)

    def mark(self, select: str | None) -> RunHandle | None:
        """Choose again which run is the `best`: `max:accuracy`, or None for none."""
        self._session.workspace.sweeps.mark(self.id, select)
        return self.best

    def view(self) -> dict[str, Json]:
        """All that is known, as the REST API gives it."""
        return self._session.workspace.sweeps.view(self.id)

    def wait(self, timeout: float | None = None) -> SweepHandle:
        """Return when all runs have ended. TimeoutError."""
        self._session.do(self._session.workspace.sweeps.wait(self.id, timeout))
        return self

    def stop(self) -> None:
        self._session.do(self._session.workspace.sweeps.stop(self.id))

    def rerun(self, *, wait: bool = True) -> SweepHandle:
        """Run the failed points again."""
        self._session.do(self._session.workspace.sweeps.rerun(self.id))
        return self.wait() if wait else self

    def add_points(self, space: dict[str, Json], *, wait: bool = True, **how: Any) -> SweepHandle:
        """Add points; `how` is `mode`, `samples` and `seed`, as for `sweep`."""
        self._session.do(self._session.workspace.sweeps.add_points(self.id, space, **how))
        return self.wait() if wait else self

    def __repr__(self) -> str:
        return f"<Sweep {self.id}: {self.state}, {len(self.runs)} runs>"

    def _repr_html_(self) -> str:
        return self.runs._repr_html_()


def _pairs(values: dict[str, Json]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in values.items())


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def cells(kind: str, row: Sequence[str]) -> Iterator[str]:
        return (f"<{kind}>{html.escape(str(cell))}</{kind}>" for cell in row)

    lines = ["".join(cells("th", header)), *("".join(cells("td", row)) for row in rows)]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
