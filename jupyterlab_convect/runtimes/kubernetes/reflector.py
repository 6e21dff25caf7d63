"""Lists a whole namespace once and hears of every change, instead of asking for single pods."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...background import Health
from ...pipeline.plan import Json
from .api import LONGEST_PAUSE, Api, ApiError, ClusterUnreachable, StreamThread, as_convect_error

Object = dict[str, Any]

ROUND = 60
"""Seconds after which the cluster ends a watch by itself, and a new one begins."""
SILENCE = 20.0
ROUNDS = 12
"""After so many everything is listed anew, in case something was missed."""
SHORT = 5.0
"""Seconds that a watch should last at least; one that does not is begun ever more seldom."""
REMEMBERED = 2000
PAGE = 500
"""Reading one must not take long: meanwhile nothing else of this process runs."""
SELDOM = 300.0
"""Seconds until we ask again for something that we are not allowed to see."""


class Reflector(StreamThread):
    """What there is of one kind, always up to date; calls `on_change` from its own thread.

    Nothing ends it but `close`: whatever goes wrong is told as health and tried again. As
    long as it does, `trouble` says so, and what `now` gives is as it was before.
    """

    def __init__(
        self,
        api: Api,
        kind: str,
        on_change: Callable[[], None],
        health: Health,
        *,
        optional: bool = False,
        everywhere: bool = False,
        keep: Callable[[Object], Any] = lambda item: item,
        **query: Json,
    ) -> None:
        """`optional`: it is no trouble when we are not allowed to see them.

        `everywhere`: in all namespaces, or of none. `keep` is what is kept of each.
        """
        where = "the cluster" if everywhere else f"namespace {api.namespace}"
        super().__init__(api, f"Watching {kind} in {where}", health)
        self.synced = threading.Event()
        self.trouble: tuple[str, float] | None = None
        """Why and since when it cannot look, as long as it cannot."""
        self._kind = kind
        self._path = f"/api/v1/{kind}" if everywhere else api.path(kind)
        self._everywhere = everywhere
        self._keep = keep
        self._query = query
        self._on_change = on_change
        self._optional = optional
        self._objects: dict[str, Any] = {}
        self._gone: OrderedDict[str, Any] = OrderedDict()
        self._made: dict[str, float] = {}
        self._lock = threading.Lock()
        self._hasty = 0

    def now(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those that are there, and those that were, as they were last seen; both by name."""
        with self._lock:
            return dict(self._objects), dict(self._gone)

    def there(self) -> list[Any]:
        """Those that are there."""
        with self._lock:
            return list(self._objects.values())

    def put(self, item: Object) -> None:
        """Take note of what was just made, before the cluster tells of it."""
        name = item["metadata"]["name"]
        with self._lock:
            self._objects.setdefault(name, item)
            self._made[name] = time.monotonic()

    def _read(self) -> None:
        """List everything, then follow the changes for some minutes."""
        began = time.monotonic()
        try:
            version = self._list()
            for _ in range(ROUNDS):
                version = self._follow(version)
        except Exception as error:
            if self._closing.is_set():
                return
            if isinstance(error, ApiError) and error.status == 410:
                self._pause(began)  # It has forgotten that version: everything is listed anew.
                return
            if self._optional and isinstance(error, ApiError) and error.status == 403:
                self._closing.wait(SELDOM)
                return
            if self.trouble is None:
                self.trouble = (str(error) or type(error).__name__, time.time())
                self._on_change()
            if isinstance(error, ApiError | ClusterUnreachable):
                doing = f"watch {self._kind}"
                raise as_convect_error(error, doing, self._api.namespace) from error
            raise

    def _list(self) -> str:
        items: dict[str, Any] = {}
        query = {**self._query, "limit": PAGE}
        began = time.monotonic()
        while True:
            page = self._api.get(self._path, **query)
            items |= {self._name_of(item): self._keep(item) for item in page.get("items") or ()}
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
        self.trouble = None
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
        began, rest = time.monotonic(), b""
        with self._pieces(self._path, ROUND + SILENCE, **query) as pieces:
            self._health.recovered(self._name)
            for data in pieces:
                if self._closing.is_set():
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in filter(None, lines):
                    version = self._take(_change(line))
        self._pause(began)
        return version

    def _take(self, change: Json) -> str:
        kind, item = change["type"], change["object"]
        if kind == "ERROR":
            raise ApiError(item.get("code", 500), item.get("message", ""))
        version: str = item["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return version
        name, kept = self._name_of(item), self._keep(item)
        with self._lock:
            if kind == "DELETED":
                self._objects.pop(name, None)
                self._forget(name, kept)
            else:
                self._objects[name] = kept
        self._on_change()
        return version

    def _name_of(self, item: Object) -> str:
        meta = item["metadata"]
        name: str = meta["name"]
        return f"{meta.get('namespace', '')}/{name}" if self._everywhere else name

    def _forget(self, name: str, item: Any) -> None:
        if self._everywhere:
            return
        self._gone[name] = item
        while len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)

    def _pause(self, began: float) -> None:
        """Once a watch may end at once; after that there is a pause, longer each time."""
        self._hasty = self._hasty + 1 if time.monotonic() < began + SHORT else 0
        if self._hasty > 1:
            self._closing.wait(min(2.0 ** (self._hasty - 2), LONGEST_PAUSE))


def _change(line: bytes) -> Json:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ClusterUnreachable("the cluster sent a change that is not JSON") from None
