"""The replicas of an attempt: what became of each, what it said last, and their logs as one."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import ConvectError, Missing
from ..json_text import is_number
from ..pipeline.plan import Json
from ..runner.step import REPLICA_LOGS, REPLICA_STATES
from ..safe_files import open_regular
from .attempt_files import AttemptFiles
from .json_files import read_json
from .model import ENDED

TAIL = 2048
"""Bytes at the end of a log in which the last line is looked for."""
LONGEST = 300
WINDOW = 1000
"""Lines further apart than that are not taken for the same."""
_LINE = re.compile(r"\[(\d+)\] (.*)", re.DOTALL)
_RATE = re.compile(
    r"(\d[\d.,]*)\s*((?:it|iter|step|sample|img|image|token|tok|example|seq|batch|batche|frame)s?"
    r"/s|s/(?:it|iter|step|batch))(?:ec(?:ond)?)?\b"
)
"""A rate as programs print it: `12.5 it/s`, `1,024 tokens/sec`, `2.1s/it`."""
_UNKNOWN = "It can no longer be found, so how it ended is unknown."


def list_replicas(files: AttemptFiles) -> list[dict[str, Json]]:
    """Rank, state, reason, node, GPU, exit code, times, rate and last line of each.

    None for a usual step. The node is None on this machine, and while none has been found; the
    rate is the last one that the replica printed.
    """
    return [
        {
            "rank": rank,
            "state": state,
            "reason": reason,
            "node": _text(found.get("node")),
            "gpu": _text(found.get("gpu")),
            "exit_code": _whole(found.get("exit_code")),
            "started": _time(found.get("started")),
            "ended": _time(found.get("ended")),
            "rate": last_rate(said),
            "line": _last_line(said),
        }
        for rank, found in sorted(_told(files.folder).items())
        for state, reason in [_state(found, files.ended)]
        for said in [_tail(log_path(files, rank))]
    ]


def log_of(files: AttemptFiles, rank: int) -> Path:
    """The log of one replica. Missing when there is no such replica."""
    told = _told(files.folder)
    if rank not in told:
        last = max(told, default=None)
        hint = "It is not distributed." if last is None else f"The last one is {last}."
        name = files.attempt.step.id
        raise Missing(f"Step {name!r} has no replica {rank}.", code="no-such-replica", hint=hint)
    return log_path(files, rank)


def log_path(files: AttemptFiles, rank: int) -> Path:
    return files.folder / REPLICA_LOGS / f"{rank}.log"


def _told(folder: Path) -> dict[int, dict[str, Json]]:
    """What the runner wrote last, while it runs or at its end."""
    for name in (REPLICA_STATES, "outputs.json"):
        try:
            content = read_json(folder / name)
            listed = content.get("replicas") if isinstance(content, dict) else None
            return {int(each["rank"]): dict(each) for each in listed or ()}
        except (OSError, ConvectError, KeyError, TypeError, ValueError):
            continue
    return {}


def _state(found: dict[str, Json], has_ended: bool) -> tuple[str, str | None]:
    state, reason = str(found.get("state")), found.get("reason")
    if has_ended and state not in ENDED:  # nobody was left to say how it ended
        return "lost", _UNKNOWN
    return state, None if reason is None else str(reason)


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: Json) -> float | None:
    return value if is_number(value) else None


def _tail(log: Path) -> str:
    try:
        with open_regular(log) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            return file.read(TAIL).decode(errors="replace")
    except OSError:
        return ""


def _last_line(text: str) -> str:
    lines = (line.rstrip("\r").rpartition("\r")[2].strip() for line in text.split("\n"))
    return next((line for line in reversed(list(lines)) if line), "")[:LONGEST]


def last_rate(text: str) -> str | None:
    """The last rate in a text, as it was printed: `12.5 it/s`."""
    found = _RATE.findall(text)
    return f"{found[-1][0]} {found[-1][1]}" if found else None


def fold(text: str) -> str:
    """The log of all replicas with lines that several of them wrote as one: `[0-3,5] line`.

    The lines of each replica stay in their order.
    """
    groups: list[tuple[set[int], str]] = []
    places: defaultdict[str, list[int]] = defaultdict(list)
    """Where a line stands, for each line."""
    reached: dict[int, int] = {}
    """Which line each replica has come to."""
    barrier = -1
    for line in text.splitlines(keepends=True):
        match = _LINE.fullmatch(line)
        if match is None:
            barrier = len(groups)
            groups.append((set(), line))
            continue
        rank, said = int(match[1]), match[2]
        least = max(reached.get(rank, -1), barrier, len(groups) - WINDOW - 1) + 1
        place = next((each for each in places[said] if each >= least), None)
        if place is None:
            place = len(groups)
            groups.append((set(), said))
            places[said].append(place)
        groups[place][0].add(rank)
        reached[rank] = place
    return "".join(f"[{ranks_text(ranks)}] {said}" if ranks else said for ranks, said in groups)


def ranks_text(ranks: Iterable[int]) -> str:
    """`0-3,5` for 0, 1, 2, 3 and 5."""
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _spans(sorted(ranks))
    )


def _spans(ranks: list[int]) -> Iterator[tuple[int, int]]:
    first = last = ranks[0]
    for rank in ranks[1:]:
        if rank != last + 1:
            yield first, last
            first = rank
        last = rank
    yield first, last
