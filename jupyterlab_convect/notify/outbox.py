"""The folder of the notifications: what there is, and what is on its way.

`<id>.json` is a notification, `outbox/<digest>.json` a message of it: made once for what it is
about, tried until it was taken, and kept for a while so that nobody is told twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ConvectError, Missing, words_of
from ..json_text import dumps
from ..pipeline.plan import from_json, to_json
from ..runs.json_files import create_whole, read_json, write_json
from ..runs.store import ID, Store
from ..safe_files import PRIVATE, make_folder, own_folder
from .notification import Message, Notification, check_notification

FIRST, MOST = 5.0, 3600.0
"""Seconds until a message that was not taken is tried again; they double with each try."""
GIVE_UP = 86400.0
KEPT = 14 * 86400.0
"""Seconds for which messages are kept."""
_NAME = "notifications"


@dataclass(frozen=True, slots=True)
class Posted:
    """A message on its way, or what became of it."""

    notification: str
    message: Message
    created: float
    tries: int = 0
    next: float = 0.0
    sent: float | None = None
    failed: str | None = None
    """Why it was not taken the last time."""
    given_up: bool = False


class Outbox:
    """Every method may be called from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder: Path | None = None
        self._unwritten: dict[Path, Posted] = {}

    @property
    def folder(self) -> Path:
        """Of this user alone, where others have theirs."""
        if self._folder is None or not self._folder.is_dir():
            self._folder = own_folder(self._store.folder, _NAME)
        return self._folder

    @property
    def is_used(self) -> bool:
        return (self._store.folder / _NAME).is_dir()

    def add(self, notification: Notification) -> None:
        check_notification(notification)
        with _said():
            make_folder(self.folder / "outbox", PRIVATE)
            write_json(self.folder / f"{notification.id}.json", to_json(notification))

    def remove(self, notification_id: str) -> None:
        self.read(notification_id)
        with _said():
            (self.folder / f"{notification_id}.json").unlink(missing_ok=True)

    def read(self, notification_id: str) -> Notification:
        missing = Missing(f"There is no notification {notification_id[:80]!r}.")
        path = self.folder / f"{notification_id}.json"
        if not ID.fullmatch(notification_id) or not path.is_file():
            raise missing
        try:
            return from_json(Notification, read_json(path))
        except (TypeError, ValueError, AttributeError):
            raise ConvectError(f"The notification {notification_id} is damaged.") from None

    def all(self) -> list[Notification]:
        """The newest first."""
        found = []
        if self.is_used:
            for path in sorted(self.folder.glob("*.json"), reverse=True):
                if ID.fullmatch(path.stem):
                    with contextlib.suppress(ConvectError):
                        found.append(self.read(path.stem))
        return found

    def post(self, notification: Notification, about: str, message: Message) -> bool:
        """Have it sent; False when that was asked for before. `about` is what it is about."""
        digest = hashlib.sha256(f"{notification.id} {about}".encode()).hexdigest()[:32]
        path = self.folder / "outbox" / f"{digest}.json"
        posted = Posted(notification.id, message, time.time())
        with _said():
            make_folder(path.parent, PRIVATE)
            return not path.exists() and create_whole(path, dumps(to_json(posted)).encode())

    def messages(self) -> Iterator[tuple[Path, Posted]]:
        self._write()
        for path in (self.folder / "outbox").glob("*.json"):
            with contextlib.suppress(ConvectError, TypeError, ValueError, AttributeError, OSError):
                yield path, self._unwritten.get(path) or from_json(Posted, read_json(path))

    def note(self, path: Path, posted: Posted, failed: str | None, now: float) -> None:
        """Write down what came of a try; what the disk does not take is remembered."""
        if failed is None:
            told = replace(posted, tries=posted.tries + 1, sent=now, failed=None)
        else:
            told = replace(
                posted,
                tries=posted.tries + 1,
                failed=failed,
                next=now + min(FIRST * 2.0**posted.tries, MOST),
                given_up=now - posted.created > GIVE_UP,
            )
        self._unwritten[path] = told
        self._write()

    def _write(self) -> None:
        for path, told in list(self._unwritten.items()):
            with contextlib.suppress(OSError):
                write_json(path, to_json(told))
                self._unwritten.pop(path, None)

    def last_of(self) -> dict[str, Posted]:
        """The last message of each notification."""
        found: dict[str, Posted] = {}
        for _, posted in self.messages():
            known = found.get(posted.notification)
            if known is None or known.created < posted.created:
                found[posted.notification] = posted
        return found


@contextlib.contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConvectError(
            f"The notifications cannot be written: {words_of(error)}.", code="unwritable"
        ) from None
