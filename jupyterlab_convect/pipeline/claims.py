"""Volume claims that a run makes for itself: those that some node gives a size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors import Refused
from .plan import Step, Volume
from .problems import Path, Problem
from .quantities import canonical

HINT = "Write size, mode and storage class once; other nodes only name the claim."


def check_claims(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Nodes of one document that want the same claim made in different ways."""
    owners: list[tuple[str | None, Path, Mapping[str, Any]]] = [
        (None, ("defaults",), document.get("defaults", {}))
    ]
    owners += [(name, (), node) for name, node in document["nodes"].items()]
    known: dict[str, Volume] = {}
    for owner, path, settings in owners:
        for index, item in enumerate(settings.get("volumes", ())):
            if "size" not in item or not item.keys() >= {"claim", "path"}:
                continue
            volume = volume_of(item)
            if _made(known.setdefault(volume.claim, volume)) != _made(volume):
                where = (*path, "volumes", index, "size")
                yield Problem("error", "two-claims", _differ(volume), owner, where, HINT)


def volume_of(item: Mapping[str, Any]) -> Volume:
    """A volume of a document; one that names a claim that exists needs nothing to make it."""
    if "size" not in item:
        item = {key: value for key, value in item.items() if key not in ("mode", "storage_class")}
        return Volume(**item)
    return Volume(**{**item, "size": canonical(item["size"])})


def with_claims(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Whoever names a claim that the run makes knows how it is made. Refused if that differs."""
    steps = tuple(steps)
    claims = run_claims(steps)

    def known(volume: Volume) -> Volume:
        made = claims.get(volume.claim)
        if made is None:
            return volume
        return replace(volume, size=made.size, mode=made.mode, storage_class=made.storage_class)

    return tuple(
        replace(step, volumes=tuple(map(known, step.volumes))) if step.volumes else step
        for step in steps
    )


def run_claims(steps: Iterable[Step]) -> dict[str, Volume]:
    """The claims that the run of these steps makes, by the name that the document has for them."""
    found: dict[str, Volume] = {}
    for step in steps:
        for volume in step.volumes:
            if volume.size is not None:
                first = found.setdefault(volume.claim, volume)
                if _made(first) != _made(volume):
                    raise Refused(_differ(volume), code="two-claims", hint=HINT)
    return found


def _made(volume: Volume) -> tuple[str | None, str, str | None]:
    return volume.size, volume.mode, volume.storage_class


def _differ(volume: Volume) -> str:
    return f"The volume claim “{volume.claim}” is made in two different ways."
