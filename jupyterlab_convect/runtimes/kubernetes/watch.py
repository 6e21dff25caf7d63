"""One look at a whole namespace that never ends, instead of many looks at single pods."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from ...pipeline.plan import Json
from .api import FIRST_PAUSE, LONGEST_PAUSE, Api, ApiError, Unreachable

Object = dict[str, Any]

ROUND = 240
"""Seconds after which the cluster ends a watch by itself, and a new one begins."""
SILENCE = 20.0
ROUNDS = 3
"""After so many everything is listed anew, in case something was missed."""
REMEMBERED = 2000


class Watch(threading.Thread):
    """What there is of one kind, always up to date; calls `on_change` from its own thread.

    `objects` are by name, `gone` are those that were there and are not any more, as they
    were last seen. Look at both through `now`.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        on_change: Callable[[], None],
        **query: Json,
    ) -> None:
        super().__init__(name=f"watch {path}", daemon=True)
        self.synced = threading.Event()
        self.trouble: str | None = None
        """Why it cannot look, as long as it cannot."""
        self.trouble_since: float | None = None
        self._api = api
        self._path = path
        self._query = query
        self._on_change = on_change
        self._objects: dict[str, Object] = {}
        self._gone: OrderedDict[str, Object] = OrderedDict()
        self._made: dict[str, float] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._response: Any = None

    def now(self) -> tuple[dict[str, Object], dict[str, Object]]:
        with self._lock:
            return dict(self._objects), dict(self._gone)

    def put(self, item: Object) -> None:
        """Take note of what was just made, before the cluster tells of it."""
        name = item["metadata"]["name"]
        with self._lock:
            self._objects.setdefault(name, item)
            self._made[name] = time.monotonic()

    def close(self) -> None:
        self._ended.set()
        response = self._response
        if response is not None:
            with contextlib.suppress(Exception):
                response.shutdown()

    def run(self) -> None:
        pause = FIRST_PAUSE
        while not self._ended.is_set():
            try:
                version = self._list()
                self._cleared()
                pause = FIRST_PAUSE
                for _ in range(ROUNDS):
                    version = self._follow(version)
                continue
            except ApiError as error:
                if error.status == 410:
                    continue
                self._troubled(error.message)
                wanted = error.retry_after
            except Unreachable as error:
                self._troubled(str(error))
                wanted = error.retry_after
            self._ended.wait(wanted or pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(pause * 2, LONGEST_PAUSE)

    def _list(self) -> str:
        items: dict[str, Object] = {}
        query = {**self._query, "limit": 500}
        began = time.monotonic()
        while True:
            page = self._api.get(self._path, **query)
            items |= {item["metadata"]["name"]: item for item in page.get("items") or ()}
            query["continue"] = page["metadata"].get("continue")
            if not query["continue"]:
                break
        with self._lock:
            missing = {name: self._objects[name] for name in self._objects.keys() - items.keys()}
            for name, item in missing.items():
                if self._made.get(name, 0.0) > began:  # The list was made before it was.
                    items[name] = item
                else:
                    self._forget(name, item)
            self._objects = items
            self._made = {name: at for name, at in self._made.items() if at > began}
        self.synced.set()
        self._on_change()
        version: str = page["metadata"]["resourceVersion"]
        return version

    def _follow(self, version: str) -> str:
        """Hear of changes until the cluster ends it; the version to go on from."""
        query = {
            **self._query,
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": version,
            "timeoutSeconds": ROUND,
        }
        with self._api.stream(self._path, ROUND + SILENCE, **query) as response:
            self._response = response
            try:
                for line in read_lines(response):
                    if self._ended.is_set():
                        break
                    change = json.loads(line)
                    item = change["object"]
                    if change["type"] == "ERROR":
                        raise ApiError(item.get("code", 500), item.get("message", ""))
                    version = item["metadata"]["resourceVersion"]
                    if change["type"] != "BOOKMARK":
                        self._take(change["type"], item)
            finally:
                self._response = None
        return version

    def _take(self, kind: str, item: Object) -> None:
        name = item["metadata"]["name"]
        with self._lock:
            if kind == "DELETED":
                self._objects.pop(name, None)
                self._forget(name, item)
            else:
                self._objects[name] = item
        self._on_change()

    def _forget(self, name: str, item: Object) -> None:
        self._gone[name] = item
        while len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)

    def _troubled(self, words: str) -> None:
        if self.trouble is None:
            self.trouble_since = time.time()
        self.trouble = words
        self._on_change()

    def _cleared(self) -> None:
        self.trouble = self.trouble_since = None


def read_pieces(response: Any) -> Iterator[bytes]:
    """What comes as soon as it is there, not when a buffer is full."""
    while True:
        try:
            data = response.read1(1 << 20)
        except Exception as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        if not data:
            return
        yield data


def read_lines(response: Any) -> Iterator[bytes]:
    rest = b""
    for data in read_pieces(response):
        *lines, rest = (rest + data).split(b"\n")
        yield from filter(None, lines)
