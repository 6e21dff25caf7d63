"""The replicas of an attempt: what became of each, what it said last, and their logs as one."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConvectError, Missing
from ..json_text import is_number
from ..pipeline.plan import Json
from ..runner.step import REPLICA_LOGS, REPLICA_STATES, REPLICA_USE
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
    """Rank, state, reason, node, GPU, exit code, times, use, rate and last line of each.

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
            "started": _number(found.get("started")),
            "ended": _number(found.get("ended")),
            **{name: _number(found.get(name)) for name in REPLICA_USE},
            "rate": last_rate(said),
            "line": _last_line(said),
        }
        for rank, found in sorted(_told(files.folder).items())
        for state, reason in [_state(found, files.ended)]
        for said in [_tail(log_path(files, rank))]
    ]


def log_of(files: AttemptFiles, rank: int) -> Path:
    """The log of one replica. Missing when there is no such replica."""
    need_replica(files, rank)
    return log_path(files, rank)


def is_of(event: dict[str, Json], rank: int) -> bool:
    """Whether an event of the attempt says how the state of this replica changed."""
    return event.get("type") == "replica" and event.get("rank") == rank


def need_replica(files: AttemptFiles, rank: int) -> None:
    """Missing when there is no such replica."""
    told = _told(files.folder)
    if rank not in told:
        last = max(told, default=None)
        hint = "It is not distributed." if last is None else f"The last one is {last}."
        name = files.attempt.step.id
        raise Missing(f"Step “{name}” has no replica {rank}.", code="no-such-replica", hint=hint)


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


def _number(value: Json) -> float | None:
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


@dataclass(eq=False, slots=True)
class _Line:
    place: tuple[int, ...]
    """Of two lines, that with the smaller one comes first."""
    said: str
    ranks: set[int]


def fold(text: str) -> str:
    """The log of all replicas with lines that several of them wrote as one: `[0-3,5] line`.

    The lines of each replica stay in their order. Those that it wrote alone move up with it, to
    the line that it wrote next and that another replica wrote before.
    """
    lines: list[_Line] = []
    by_text: defaultdict[str, list[_Line]] = defaultdict(list)
    passed: defaultdict[tuple[int, str], int] = defaultdict(int)
    """How many of those a replica has passed for good."""
    alone: defaultdict[int, list[_Line]] = defaultdict(list)
    """What a replica wrote since the last line that it has in common with another one."""
    common: dict[int, tuple[int, ...]] = {}
    """Where that line stands."""
    for count, line in enumerate(text.splitlines(keepends=True)):
        match = _LINE.fullmatch(line)
        end = (len(lines),)
        if match is None:
            lines.append(_Line(end, line, set()))
            for known in (by_text, passed, alone, common):
                known.clear()
            continue
        rank, said = int(match[1]), match[2]
        equal, at, after = by_text[said], passed[rank, said], common.get(rank, ())
        after = max(after, (end[0] - WINDOW,))
        while at < len(equal) and (equal[at].place <= after or rank in equal[at].ranks):
            at += 1
        passed[rank, said] = at
        if at == len(equal):
            lines.append(_Line(end, said, {rank}))
            equal.append(lines[-1])
            alone[rank].append(lines[-1])
            continue
        found = equal[at]
        *outer, last = found.place
        for number, own in enumerate(alone.pop(rank, ())):
            if own.place > found.place:
                # Before it, and after all that stands there already.
                own.place = (*outer, last - 1, count, number)
        if len(found.ranks) == 1:
            (other,) = found.ranks
            if found in alone[other]:
                common[other] = found.place
                alone[other] = alone[other][alone[other].index(found) + 1 :]
        found.ranks.add(rank)
        common[rank] = found.place
    lines.sort(key=lambda each: each.place)
    return "".join(
        f"[{ranks_text(each.ranks)}] {each.said}" if each.ranks else each.said for each in lines
    )


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
