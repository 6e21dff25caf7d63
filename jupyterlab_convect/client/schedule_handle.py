"""A schedule in Python, as `client.schedule` and `client.schedules` give it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..pipeline.plan import Json
from ..pipeline.quantities import duration
from ..runs.model import Request
from ..runs.versions import SourceChange
from ..schedules.scheduling import Which, trigger_of
from ..schedules.times import Clock, local_zone
from .run_handles import RunHandle, SweepHandle

if TYPE_CHECKING:
    from .session import ClientSession


class ScheduleHandle:
    """A schedule and what became of its due times; each look reads the present state."""

    def __init__(self, session: ClientSession, schedule_id: str) -> None:
        self._session = session
        self.id = schedule_id

    @property
    def name(self) -> str:
        name: str = self.view()["name"]
        return name

    @property
    def next(self) -> list[float]:
        """The next five due times."""
        found: list[float] = self.view()["next"]
        return found

    @property
    def is_paused(self) -> bool:
        return self.view()["paused"] is not None

    def ledger(self, limit: int = 50, before: float | None = None) -> list[dict[str, Json]]:
        """One line per due time, the last first: `due`, `outcome`, `run`, `state`, `reason`."""
        return self._session.workspace.scheduling.lines(self.id, limit, before)

    def view(self) -> dict[str, Json]:
        """All that is known, as the REST API gives it."""
        return self._session.workspace.scheduling.view(self.id)

    def changes(self) -> list[SourceChange]:
        """How the pinned files differ from those of today: `path`, `before` and `after`."""
        return self._session.workspace.scheduling.changes(self.id)

    def edit(self, **changes: Any) -> ScheduleHandle:
        """Change `name`, `overlap`, `concurrency`, `missed`, `deadline`, `sweep`, `pinned`,
        `kept_by`, the `parameters`, the `trigger`, or the clock: `cron`, `every`, `zone`, `anchor`,
        `start`, `end`, `jitter`."""
        from dataclasses import fields, replace

        scheduling = self._session.workspace.scheduling
        known = scheduling.schedules.read(self.id).schedule
        names = {field.name for field in fields(Clock)} & changes.keys()
        if names:
            given = {name: changes.pop(name) for name in names}
            given |= {key: duration(given[key]) for key in ("every", "jitter") if given.get(key)}
            if given.get("cron") is not None:
                given.setdefault("every", None)
            elif given.get("every") is not None:
                given.setdefault("cron", None)
            changes["clock"] = replace(known.clock, **given)
        if "parameters" in changes:
            changes["request"] = replace(known.request, parameters=changes.pop("parameters"))
        if changes.get("trigger") is not None:
            changes["trigger"] = trigger_of(changes["trigger"])
        if "deadline" in changes:
            changes["deadline"] = duration(changes["deadline"])
        self._session.do(scheduling.edit(self.id, changes))
        return self

    def hook(self, *, new_token: bool = False) -> dict[str, str]:
        """How to call a schedule that calls trigger: the end of the `address`, and the `token`."""
        scheduling = self._session.workspace.scheduling
        if new_token:
            scheduling.renew_token(self.id)
        return scheduling.hook(self.id)

    def pause(self) -> None:
        self.edit(paused=True)

    def resume(self) -> None:
        self.edit(paused=False)

    def run(self, due: float | None = None) -> RunHandle | SweepHandle:
        """Run it now, as at a due time if one is given."""
        scheduling = self._session.workspace.scheduling
        found = self._session.do(scheduling.run_now(self.id, due))
        if self.view()["is_sweep"]:
            self._session.sweeps.add(found)
            return SweepHandle(self._session, found)
        self._session.submitted.add(found)
        return RunHandle(self._session, found)

    def backfill(
        self,
        begin: float,
        end: float,
        *,
        which: Which = "missing",
        parameter: str | None = None,
        backwards: bool = False,
        concurrency: int | None = None,
    ) -> SweepHandle:
        """Run it for the due times between two moments, as a sweep."""
        filling = self._session.workspace.scheduling.backfill(
            self.id,
            begin,
            end,
            which=which,
            parameter=parameter,
            backwards=backwards,
            concurrency=concurrency,
        )
        sweep_id = self._session.do(filling)
        self._session.sweeps.add(sweep_id)
        return SweepHandle(self._session, sweep_id)

    def remove(self) -> None:
        """Delete it with its ledger; its runs stay."""
        self._session.do(self._session.workspace.scheduling.remove(self.id))

    def __repr__(self) -> str:
        return f"<Schedule {self.id} {self.name!r}>"


def make_clock(
    cron: str | None,
    every: float | str | None,
    zone: str | None,
    anchor: float | None,
    start: float | None,
    end: float | None,
    jitter: float | str,
) -> Clock:
    return Clock(
        cron,
        zone or local_zone(),
        None if every is None else duration(every),
        anchor or 0.0,
        start,
        end,
        duration(jitter),
    )


def make_schedule(
    session: ClientSession, request: Request, clock: Clock, *, deadline: float | str, **how: Any
) -> ScheduleHandle:
    if how.get("trigger") is not None:
        how["trigger"] = trigger_of(how["trigger"])
    adding = session.workspace.scheduling.add(request, clock, deadline=duration(deadline), **how)
    return ScheduleHandle(session, session.do(adding))
