"""The runtimes that are installed and offered."""

from __future__ import annotations

import functools
import importlib
import logging
import threading
from collections.abc import Iterator, Mapping

from traitlets import TraitError

from ..background import Health
from ..errors import Missing, Refused
from ..pipeline.plan import Json
from ..pipeline.problems import Problem
from ..settings import Settings
from .base import Runtime

GROUP = "jupyterlab_convect.runtimes"
EMBEDDED = {"local": "jupyterlab_convect.runtimes.local:LocalRuntime"}
"""Known without a look at all that is installed, which takes its time."""


class Runtimes(Mapping[str, Runtime]):
    """By name, each made when it is first asked for."""

    def __init__(self, settings: Settings, log: logging.Logger, health: Health) -> None:
        self._settings = settings
        self._log = log
        self._health = health
        self._made: dict[str, Runtime] = {}
        self._making = threading.Lock()

    def __getitem__(self, name: str) -> Runtime:
        with self._making:
            if name not in self._made:
                self._made[name] = self._make(name)
            return self._made[name]

    def __iter__(self) -> Iterator[str]:
        offered = self._settings.runtimes
        return (name for name in self._installed if not offered or name in offered)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def made(self) -> list[Runtime]:
        """Those that somebody has asked for so far."""
        return list(self._made.values())

    @functools.cached_property
    def _installed(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        kinds = EMBEDDED | {found.name: found.value for found in entry_points(group=GROUP)}
        named = self._settings.named_runtimes.items()
        return kinds | {name: kinds[own["kind"]] for name, own in named if own.get("kind") in kinds}

    def kind(self, name: str) -> type[Runtime]:
        """Its class, also of one that cannot be made because it is not configured."""
        offered = self._settings.runtimes
        place = EMBEDDED.get(name) or self._installed.get(name)
        if place is None or (offered and name not in offered):
            raise NoSuchRuntime(
                f"There is no runtime {name!r}.",
                code="no-such-runtime",
                hint=f"Available runtimes: {', '.join(sorted(self))}.",
            )
        module, _, attribute = place.partition(":")
        try:
            kind: type[Runtime] = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise _unavailable(name, error) from error
        return kind

    def _make(self, name: str) -> Runtime:
        kind = self.kind(name)
        try:
            own = {**self._settings.named_runtimes.get(name, {})}
            own.pop("kind", None)
            runtime = kind(parent=self._settings, log=self._log, health=self._health, **own)
            if name != runtime.name and "display_name" not in own:
                # There may be several of its kind.
                runtime.display_name = f"{runtime.display_name} ({name})"
            runtime.name = name
            return runtime
        except (ImportError, AttributeError, TraitError) as error:
            raise _unavailable(name, error) from error


def _unavailable(name: str, error: Exception) -> Refused:
    return Refused(f"The runtime {name!r} cannot be loaded: {error}.", code="runtime-unavailable")


def check_options(runtime: Runtime, options: Mapping[str, Json]) -> list[Problem]:
    """What is wrong with the options of a run: each is one that its runtime knows, or refused."""
    if not options:
        return []
    from jsonschema import Draft202012Validator

    schema = runtime.options_schema()
    unknown = [name for name in options if name not in schema.get("properties", {})]
    if unknown:
        sentence = f"The runtime {runtime.name} has no option “{unknown[0]}”."
        return [Problem("error", "unknown-option", sentence)]
    return [
        Problem(
            "error",
            "bad-option",
            f"The option “{'.'.join(map(str, error.absolute_path))}” is wrong: {error.message}.",
        )
        for error in Draft202012Validator(schema).iter_errors(dict(options))
    ]


class NoSuchRuntime(Missing, KeyError):
    """A key error as well, which is what a mapping promises."""
