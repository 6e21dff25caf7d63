"""Clocks of schedules that Kubeflow Pipelines keeps: recurring runs, of a pipeline as it was
compiled once. Everything here blocks.

There is no verb that changes one, so that another one takes its place. To delete one deletes
those of its runs that go on: it is disabled first, and deleted when they have ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime, timezone

from ...errors import Missing
from ...pipeline.plan import Json
from ..base import MadeRun, RecurringRuns
from .api import Client
from .compile import Compiled

MOST_PAGES = 100
ENDED_THERE = ("SUCCEEDED", "FAILED", "CANCELED", "SKIPPED")


class RecurringClient:
    def __init__(
        self,
        client: Client,
        compiled: Callable[[RecurringRuns], Compiled],
        page_of: Callable[[str], str],
        service_account: str,
    ) -> None:
        self._client = client
        self._compiled = compiled
        self._page_of = page_of
        self._service_account = service_account

    def keep(
        self, wanted: RecurringRuns | None, known: Mapping[str, Json]
    ) -> tuple[str, Json] | None:
        compiled = None if wanted is None else self._compiled(wanted)
        switched = [each for each in known if self._switch_off(each)]
        if wanted is None or compiled is None:
            return None
        try:
            told = self._client.create_recurring(self._body(wanted, compiled))
        except BaseException:
            for each in switched[-1:]:
                self._client.switch_recurring(each, on=True)
            raise
        return str(told["recurring_run_id"]), {"places": dict(compiled.places)}

    def made(self, known: Mapping[str, Json], is_home: Callable[[float], bool]) -> list[MadeRun]:
        for latest in list(known)[-1:]:
            try:
                self._client.recurring(latest)
            except Missing:
                raise Missing(
                    "The recurring run of the schedule was deleted in Kubeflow Pipelines.",
                    hint="Edit or resume the schedule to have another one made.",
                ) from None
        found = [
            each
            for recurring_id, told in known.items()
            for each in self._made_by(recurring_id, told, is_home)
        ]
        return sorted(found, key=lambda made: made.due)

    def forget(self, known: Mapping[str, Json]) -> list[str]:
        return [each for each in known if self._is_idle(each) and self._delete(each)]

    def _switch_off(self, recurring_id: str) -> bool:
        try:
            self._client.switch_recurring(recurring_id, on=False)
        except Missing:
            return False
        return True

    def _delete(self, recurring_id: str) -> bool:
        with contextlib.suppress(Missing):
            self._client.delete_recurring(recurring_id)
        return True

    def _is_idle(self, recurring_id: str) -> bool:
        """Whether none of its latest runs goes on."""
        page = self._client.runs_of_recurring(recurring_id).get("runs") or []
        return all(run.get("state") in ENDED_THERE for run in page)

    def _made_by(
        self, recurring_id: str, told: Json, is_home: Callable[[float], bool]
    ) -> list[MadeRun]:
        found: list[MadeRun] = []
        token = ""
        for _ in range(MOST_PAGES):
            page = self._client.runs_of_recurring(recurring_id, token)
            new = [
                MadeRun(recurring_id, due, _seconds(run["created_at"]), self._graph(run, told))
                for run in page.get("runs") or ()
                if not is_home(due := _seconds(run.get("scheduled_at") or run["created_at"]))
            ]
            found += new
            token = str(page.get("next_page_token") or "")
            if not new or not token:
                break
        return found

    def _graph(self, run: Mapping[str, Json], told: Json) -> Json:
        run_id = str(run["run_id"])
        where = {"id": run_id, "page": self._page_of(run_id), "done": True}
        return {"name": run.get("display_name"), "places": told["places"], **where}

    def _body(self, wanted: RecurringRuns, compiled: Compiled) -> dict[str, Json]:
        times = {
            "start_time": _moment(wanted.after),
            **({} if wanted.until is None else {"end_time": _moment(wanted.until)}),
        }
        if wanted.cron is not None:
            trigger: Json = {"cron_schedule": {"cron": wanted.cron, **times}}
        else:
            trigger = {"periodic_schedule": {"interval_second": str(wanted.every), **times}}
        return {
            "display_name": f"{wanted.name} {wanted.id}",
            "description": f"A schedule of jupyterlab-convect: {wanted.id}",
            "pipeline_spec": compiled.spec,
            "runtime_config": {},
            "trigger": trigger,
            "mode": "ENABLE",
            "max_concurrency": str(wanted.concurrency),
            "no_catchup": not wanted.catch_up,
            **({"service_account": self._service_account} if self._service_account else {}),
        }


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
