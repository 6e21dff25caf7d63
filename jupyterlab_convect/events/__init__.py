"""What the server tells JupyterLab over `jupyter_events`: that something changed, seldom."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUN = "https://events.jupyterlab-convect.dev/run/v1"
SWEEP = "https://events.jupyterlab-convect.dev/sweep/v1"
SCHEDULE = "https://events.jupyterlab-convect.dev/schedule/v1"

SCHEMAS = tuple(
    Path(__file__).with_name(name) for name in ("run.yaml", "sweep.yaml", "schedule.yaml")
)

Emit = Callable[[str, dict[str, Any]], None]
Later = Callable[..., object]


class Coalesced:
    """Passes events on, at most one every `pause` seconds for each subject.

    The first change of a subject goes out at once; those that follow within the
    pause are told together, as the last of them, at its end. Nothing is held back
    for longer than that, and an end not at all.
    """

    def __init__(self, emit: Emit, pause: float = 0.1, later: Later | None = None) -> None:
        """`later` calls something after some seconds; by default the running event loop does."""
        self._emit = emit
        self._later = later or (lambda *what: asyncio.get_running_loop().call_later(*what))
        self._pause = pause
        self._held: dict[tuple[str, str], dict[str, Any] | None] = {}
        """The subjects told within the last pause, with what came since."""

    def tell(self, schema: str, subject: str, data: dict[str, Any], is_end: bool = False) -> None:
        """Call it on the event loop's thread."""
        key = (schema, subject)
        if key in self._held and not is_end:
            self._held[key] = data
        else:
            self._send(key, data)

    def _send(self, key: tuple[str, str], data: dict[str, Any]) -> None:
        self._held[key] = None
        self._emit(key[0], data)
        self._later(self._pause, self._settle, key)

    def _settle(self, key: tuple[str, str]) -> None:
        data = self._held.pop(key, None)
        if data is not None:
            self._send(key, data)
