"""From runs and schedules to messages: what the server, the command line and Python ask of it.

One process of a user tells and sends, held by a lease: a server, or the one that keeps the clocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError, Missing
from ..pipeline.plan import Json, from_json, to_json
from ..runs.attempt_files import LOG, files_of, log_end, read_log
from ..runs.json_files import read_json, write_json
from ..runs.lease import RENEW, Lease
from ..runs.model import GOOD, new_id
from ..runs.store import Record
from ..schedules.ledger import Ledger
from ..schedules.times import count_between, local_time
from ..text import duration_text
from .delivery import deliver, mail_server
from .notification import Message, Notification, check_notification
from .outbox import KEPT, Outbox

if TYPE_CHECKING:
    from ..workspace import Workspace

SLOW = 10.0
"""Seconds between two looks at schedules and at runs that go on."""
LATE = 3600.0
"""Seconds after its end until which a run of another machine may be noticed."""
AT_ONCE = 20
LINES, LETTERS = 20, 2000
"""How much of a log is sent."""
STATE = "looked.json"
OPTIONAL = ("url", "secret", "sign", "longer", "schedule", "path", "run")


class Notifier:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.outbox = Outbox(workspace.store)
        self._lease: Lease | None = None
        self._renewed = 0.0
        self._since = 0.0
        self._slow = 0.0
        self._told: dict[str, None] = {}
        """The runs that ended lately and that were told about, if anybody wanted it."""

    def add(self, given: Mapping[str, Any]) -> str:
        """Make a notification of the fields that `Notification` has, and return its id."""
        notification = self.notification_of(given)
        if notification.schedule is not None:
            self._workspace.scheduling.schedules.read(notification.schedule)
        if notification.run is not None:
            self._workspace.store.read(notification.run)
        self.outbox.add(notification)
        return notification.id

    def notification_of(self, given: Mapping[str, Any]) -> Notification:
        facts = {key: value for key, value in given.items() if value is not None}
        name = facts.pop("name", None) or facts.get("kind", "")
        made = {"id": new_id(), "created": time.time(), "name": name, **facts}
        notification = from_json(Notification, made)
        check_notification(notification)
        return notification

    def test(self, notification: Notification) -> None:
        """Send a message now; Refused when it was not taken."""
        text = f"“{notification.name}” works. This is a test message."
        facts: dict[str, Json] = {"notification": notification.name}
        message = Message("test", "Test of a notification", text, link=self._link(), facts=facts)
        deliver(notification, message, self._server())

    def views(self) -> list[dict[str, Json]]:
        """`NotificationView` of each, the newest first."""
        last = self.outbox.last_of() if self.outbox.is_used else {}
        return [
            {
                **dict.fromkeys(OPTIONAL),
                "events": ["failure"],
                "to": [],
                **to_json(each),
                "last": None
                if (posted := last.get(each.id)) is None
                else {
                    "title": posted.message.title,
                    "time": posted.sent or posted.created,
                    "sent": posted.sent is not None,
                    "tries": posted.tries,
                    "reason": posted.failed,
                },
            }
            for each in self.outbox.all()
        ]

    async def look(self) -> None:
        """Tell what there is to tell, and send what is on its way; nothing while another does."""
        if not self.outbox.is_used or not await asyncio.to_thread(self._hold):
            return
        try:
            await asyncio.to_thread(self._tell)
        finally:
            await asyncio.to_thread(self._send)

    def close(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            with contextlib.suppress(OSError):
                lease.give_back()

    def _hold(self) -> bool:
        ticks = time.monotonic()
        if self._lease is None:
            self._lease, self._renewed = Lease.take(self.outbox.folder), ticks
            if self._lease is None:
                return False
            looked = time.time()
            with contextlib.suppress(ConvectError, OSError):
                looked = float(read_json(self.outbox.folder / STATE)["looked"])
            self._since, self._slow = looked - LATE, 0.0
        elif ticks - self._renewed > RENEW:
            self._renewed = ticks
            if not self._lease.renew():
                self._lease = None
                return False
            write_json(self.outbox.folder / STATE, {"looked": time.time()})
        return self._lease.is_sure()

    def _tell(self) -> None:
        wanted = self.outbox.all()
        if not wanted:
            return
        now, store = time.time(), self._workspace.store
        ended = [run_id for run_id, *_ in store.ended_runs(self._since)]
        for run_id in ended:
            if run_id not in self._told:
                try:
                    record = store.read(run_id)
                except ConvectError:
                    continue  # It is gone, or cannot be read now: others are told about.
                self._tell_end(wanted, record)
                self._told[run_id] = None
        self._told = {run_id: None for run_id in ended if run_id in self._told}
        self._since = now - LATE
        if time.monotonic() - self._slow < SLOW:
            return
        self._slow = time.monotonic()
        if any(each.longer for each in wanted):
            for run_id in store.live_runs():
                with contextlib.suppress(ConvectError):
                    self._tell_long(wanted, store.read(run_id), now)
        if self._workspace.has_schedules:
            self._tell_schedules(wanted)

    def _tell_end(self, wanted: list[Notification], record: Record) -> None:
        run, state = record
        if state.ended is None or state.state == "cancelled":
            return
        event = "success" if state.state in GOOD else "failure"
        for each in wanted:
            if event in each.events and state.ended > each.created and self._is_about(each, record):
                took = duration_text(state.ended - (state.started or run.created))
                words = (
                    f"It {state.state} after {took}."
                    if event == "success"
                    else (f"{state.reason or 'It did not succeed.'} It took {took}.")
                )
                title = f"{state.name or run.name}: {state.state}"
                self._post(each, f"{event} {run.id}", event, title, words, record)

    def _tell_long(self, wanted: list[Notification], record: Record, now: float) -> None:
        run, state = record
        for each in wanted:
            if "longer" not in each.events or each.longer is None or state.started is None:
                continue
            if now - state.started > each.longer and self._is_about(each, record):
                title = f"{state.name or run.name}: still running"
                words = f"It has been running for more than {duration_text(each.longer)}."
                self._post(each, f"longer {run.id}", "longer", title, words, record)

    def _tell_schedules(self, wanted: list[Notification]) -> None:
        for ledger in self._workspace.scheduling.schedules.all():
            schedule = ledger.schedule
            for each in wanted:
                if (
                    each.run is None
                    and each.schedule in (None, schedule.id)
                    and each.path in (None, schedule.request.path)
                ):
                    for about, message in self._news_of(ledger, each):
                        self.outbox.post(each, f"{about} {schedule.id}", message)

    def _news_of(self, ledger: Ledger, wanted: Notification) -> Iterator[tuple[str, Message]]:
        """Due times that nobody kept the clock for, and those that could not be started."""
        schedule, link = ledger.schedule, self._link()
        facts: dict[str, Json] = {"schedule": schedule.id}
        for found in list(ledger.ranges) if "missed" in wanted.events else ():
            count = count_between(found.clock, found.after, found.until)
            if found.outcome == "missed" and found.until > wanted.created and count:
                begin, end = (
                    local_time(found.clock, moment).strftime("%Y-%m-%d %H:%M")
                    for moment in found.gone or (found.after, found.until)
                )
                words = f"Nobody kept the clock from {begin} to {end}. Due times missed: {count}."
                title = f"{schedule.name}: missed"
                message = Message("missed", title, words, link=link, facts=facts)
                yield f"missed {found.until!r}", message
        for line in list(ledger.lines.values()) if "failure" in wanted.events else ():
            if line.outcome == "refused" and line.decided > wanted.created:
                title = f"{schedule.name}: not started"
                message = Message("failure", title, line.reason or "", link=link, facts=facts)
                yield f"refused {line.due!r}", message

    def _is_about(self, notification: Notification, record: Record) -> bool:
        run = record.run
        if notification.schedule is not None:
            with contextlib.suppress(Missing):
                ledger = self._workspace.scheduling.schedules.read(notification.schedule)
                made = {line.run for line in list(ledger.lines.values())}
                return run.id in made or run.id in ledger.asked
            return False
        return notification.run in (None, run.id) and notification.path in (None, run.request.path)

    def _post(
        self,
        notification: Notification,
        about: str,
        event: str,
        title: str,
        words: str,
        record: Record,
    ) -> None:
        run, state = record
        facts: dict[str, Json] = {"run": run.id, "name": run.name, "state": state.state}
        message = Message(
            event,
            title,
            words,
            tuple(self._last_lines(record)) if event != "success" else (),
            self._link(run.id),
            {**facts, "path": run.request.path, "runtime": run.runtime},
        )
        self.outbox.post(notification, about, message)

    def _last_lines(self, record: Record) -> Iterator[str]:
        """Of the step that failed, or of the last that began."""
        steps = [step for step in record.state.steps.values() if step.attempts]
        bad = [step for step in steps if step.state == "failed"]
        for step in (bad or steps)[-1:]:
            with contextlib.suppress(ConvectError, OSError):
                number = step.attempts[-1].attempt
                files = files_of(self._workspace.store, record, step.id, number)
                offset = log_end(files.folder / LOG, LETTERS)
                text = read_log(files, offset).text
                yield from deque((line for line in text.splitlines() if line.strip()), LINES)

    def _link(self, run_id: str | None = None) -> str | None:
        base = self._workspace.settings.url.rstrip("/")
        if not base:
            return None
        return f"{base}/lab" if run_id is None else f"{base}/lab?convect-run={run_id}"

    def _server(self) -> Any:
        return mail_server(self._workspace.settings.smtp)

    def _send(self) -> None:
        """What is due, as long as nobody else has begun to send; each message by itself."""
        now, count = time.time(), 0
        for path, posted in list(self.outbox.messages()):
            if posted.sent is not None or posted.given_up:
                if now - posted.created > KEPT:
                    path.unlink(missing_ok=True)
                continue
            if posted.next > now or count >= AT_ONCE:
                continue
            if count and not self._hold():
                return
            count += 1
            failed = None
            try:
                deliver(self.outbox.read(posted.notification), posted.message, self._server())
            except Missing:
                path.unlink(missing_ok=True)  # The notification was removed.
                continue
            except ConvectError as error:
                failed = error.sentence
            except Exception as error:  # Its words may hold the address, which may be a secret.
                failed = f"It could not be sent: {type(error).__name__}."
            self.outbox.note(path, posted, failed, time.time())
