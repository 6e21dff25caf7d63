"""Work that is meant to last: what goes wrong is told once, shown as health, and tried again.

`forever` does something again and again on an event loop, `forever_in_thread` in a
thread of its own. Work on many items guards each with `Health.guard`, so that a bad
one spoils only itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

from .errors import ConvectError

FIRST, MOST = 1.0, 60.0
"""Seconds until what failed is tried again; they double with each try."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that does not work now."""

    name: str
    """What does not work, such as "Renewing leases"."""
    since: float
    sentence: str
    tries: int = 1


class Health:
    """What does not work now, of all that is meant to last. Safe to call from any thread."""

    def __init__(self, log: logging.Logger | None = None) -> None:
        self._log = log or logging.getLogger(__name__)
        self._troubles: dict[str, Trouble] = {}
        self._lock = threading.Lock()

    def troubles(self) -> list[Trouble]:
        """The oldest first."""
        with self._lock:
            return sorted(self._troubles.values(), key=lambda trouble: trouble.since)

    def failed(self, name: str, error: Exception) -> float:
        """Note that a try failed; the seconds to wait before the next.

        Logged when it fails for the first time, or differently from the last time.
        """
        sentence = explain(error)
        with self._lock:
            known = self._troubles.get(name)
            if known is None:
                now = Trouble(name, time.time(), sentence)
            else:
                now = replace(known, sentence=sentence, tries=known.tries + 1)
            self._troubles[name] = now
        if known is None or known.sentence != sentence:
            expected = isinstance(error, OSError | ConvectError)
            self._log.warning(
                "%s failed: %s Trying again.", name, sentence, exc_info=None if expected else error
            )
        return min(FIRST * 2.0 ** min(now.tries - 1, 16), MOST)

    def recovered(self, name: str) -> None:
        """Note that it works. Work that seldom returns calls this as soon as it does."""
        if name not in self._troubles:
            return
        with self._lock:
            known = self._troubles.pop(name, None)
        if known is not None:
            self._log.info("%s works again.", name)

    @contextlib.contextmanager
    def guard(self, name: str) -> Iterator[None]:
        """One try at something that others must not suffer from: no exception gets out."""
        try:
            yield
        except Exception as error:
            self.failed(name, error)
        else:
            self.recovered(name)


async def forever(
    name: str,
    work: Callable[[], Awaitable[object]],
    health: Health,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> NoReturn:
    """Do `work`, which paces itself, again and again, with back-off after an exception.

    It ends by being cancelled, and in no other way.
    """
    while True:
        try:
            await work()
        except Exception as error:
            await sleep(health.failed(name, error))
        else:
            health.recovered(name)


def forever_in_thread(
    name: str, work: Callable[[], object], health: Health, closing: threading.Event
) -> threading.Thread:
    """As `forever`, in a thread that ends when `closing` is set and `work` returns."""

    def run() -> None:
        while not closing.is_set():
            try:
                work()
            except Exception as error:
                closing.wait(health.failed(name, error))
            else:
                health.recovered(name)

    thread = threading.Thread(target=run, name=f"convect: {name}", daemon=True)
    thread.start()
    return thread


def explain(error: BaseException) -> str:
    """One sentence for people, whatever kind of error it is."""
    if isinstance(error, ConvectError):
        return error.sentence
    if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
        return _OF_THE_SYSTEM[error.errno]
    words = error.strerror if isinstance(error, OSError) else None
    text = words or f"{type(error).__name__}: {error}".rstrip(": ")
    return text if text.endswith(".") else f"{text}."


_OF_THE_SYSTEM = {
    errno.ENOSPC: "No space is left on the disk.",
    errno.EDQUOT: "The disk quota is used up.",
    errno.EROFS: "The file system is read-only.",
    errno.EACCES: "Permission was denied.",
    errno.ESTALE: "The network file system has lost the file.",
    errno.EIO: "The disk reported an error.",
}
