"""Follows the log of one pod and builds the attempt's folder from it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from .api import Api, ApiError, Unreachable
from .homecoming import Homecoming
from .manifests import CONTAINER
from .watch import read_lines

SILENCE = 600.0
PAUSE = 1.0


class Follower(threading.Thread):
    """Reads until the carrier says that all is told, or until the container has ended.

    A connection may break at any time: then it is read from the start again.
    """

    def __init__(
        self,
        api: Api,
        pod: str,
        folder: Path,
        is_over: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        super().__init__(name=f"log of {pod}", daemon=True)
        self.home = Homecoming(folder)
        self.done = False
        self.trouble: str | None = None
        self._api = api
        self._path = f"{api.place('pods', pod)}/log"
        self._folder = folder
        self._is_over = is_over
        self._changed = changed
        self._closed = threading.Event()

    def run(self) -> None:
        while not self._closed.is_set():
            over = self._is_over()
            self.home = Homecoming(self._folder)
            try:
                with self._api.stream(
                    self._path, SILENCE, container=CONTAINER, follow=not over
                ) as response:
                    for line in read_lines(response):
                        if self._closed.is_set():
                            return
                        self.home.take(line)
                self.trouble = None
                if over or self.home.ended is not None:
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
