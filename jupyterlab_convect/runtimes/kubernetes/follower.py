"""Follows the log of one container and keeps what it says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from .api import Api, ApiError, Unreachable
from .watch import read_pieces

SILENCE = 600.0
PAUSE = 1.0


class Reading(Protocol):
    """One reading of a log, from its beginning."""

    ended: bool
    """It has said all that there is."""
    noise: list[str]

    def take(self, data: bytes) -> None: ...
    def finish(self) -> None: ...


class Follower(threading.Thread):
    """Reads until all is told, or until the container has ended.

    A connection may break at any time: then it is read from the start again.
    """

    def __init__(
        self,
        api: Api,
        pod: str,
        container: str,
        begin: Callable[[], Reading],
        is_over: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        super().__init__(name=f"log of {pod}", daemon=True)
        self.reading = begin()
        self.done = False
        self.trouble: str | None = None
        self._api = api
        self._path = f"{api.place('pods', pod)}/log"
        self._container = container
        self._begin = begin
        self._is_over = is_over
        self._changed = changed
        self._closed = threading.Event()

    def run(self) -> None:
        while not self._closed.is_set():
            over = self._is_over()
            self.reading = self._begin()
            try:
                with self._api.stream(
                    self._path, SILENCE, container=self._container, follow=not over
                ) as response:
                    for piece in read_pieces(response):
                        if self._closed.is_set():
                            return
                        self.reading.take(piece)
                self.trouble = None
                if over or self.reading.ended:
                    self.reading.finish()
                    break
            except ApiError as error:
                self.trouble = error.message
                if error.status == 404:
                    break
            except (Unreachable, OSError) as error:
                self.trouble = str(error)
            self._closed.wait(PAUSE)
        self.done = True
        self._changed()

    def close(self) -> None:
        self._closed.set()
