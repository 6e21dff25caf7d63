"""Lists, sizes and durations as people read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

_DECIMAL = (1000, ("bytes", "kB", "MB", "GB", "TB"))
_BINARY = (1024, ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"))


def listing(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def quoted(names: Iterable[str]) -> list[str]:
    """Names in quotation marks, so that none is taken for a word of the sentence."""
    return [f"“{name}”" for name in names]


def some_of(names: Collection[str], most: int = 3) -> str:
    """The first of the names, and how many more there are: `a, b, c and 4 more`."""
    first = list(islice(names, most))
    more = len(names) - len(first)
    return f"{', '.join(first)} and {more} more" if more else listing(first)


def size_text(count: float, *, binary: bool = False) -> str:
    """`10 MB`, `1.5 GB`; of memory, which is counted in powers of two, `1.5 GiB`."""
    step, units = _BINARY if binary else _DECIMAL
    for unit in units:
        if abs(count) < step or unit == units[-1]:
            break
        count /= step
    return f"{count:.3g} {unit}" if binary else f"{count:.4g} {unit}"


def duration_text(seconds: float) -> str:
    """Exactly as long: `2 h`, `1 min 30 s`, `0.5 s`."""
    if seconds < 60:
        return f"{seconds:g} s"
    whole = round(seconds)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def elapsed_text(seconds: float) -> str:
    """About as long: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
