"""The points of a sweep: values for some parameters, taken from a space."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ..errors import ConvectError
from ..pipeline.plan import Json

Mode = Literal["grid", "random", "list"]
Point = dict[str, Json]

MOST = 10_000
"""Points in one sweep."""


def points_of(
    space: Mapping[str, Json], mode: Mode = "grid", samples: int | None = None, seed: int = 0
) -> list[Point]:
    """The points of a space; ConvectError when it makes no sense.

    Each parameter has a list of values, a range `{from, to, step}` that includes its end,
    or an interval `{min, max, log, type}` to choose from at random. `grid` combines every
    value with every other, `list` takes the first of each, the second of each and so on.
    """
    if not space:
        raise ConvectError("A sweep needs a parameter that varies.")
    if mode == "random":
        return _random(space, samples, seed)
    if mode not in ("grid", "list"):
        raise ConvectError(f"A sweep is a grid, random or a list, not {mode!r}.")
    values = {name: _values(name, given) for name, given in space.items()}
    if mode == "grid":
        _check_count(math.prod(map(len, values.values())))
        return [
            dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
        ]
    lengths = {len(column) for column in values.values()}
    if len(lengths) > 1:
        counts = ", ".join(f"{name} has {len(column)}" for name, column in values.items())
        raise ConvectError(
            f"In a list, all parameters must have the same number of values: {counts}."
        )
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _random(space: Mapping[str, Json], samples: int | None, seed: int) -> list[Point]:
    if samples is None or isinstance(samples, bool) or samples < 1:
        raise ConvectError("A random sweep needs a number of samples, at least 1.")
    _check_count(samples)
    draws = {name: _draw(name, given) for name, given in space.items()}
    chance = random.Random(seed)  # noqa: S311
    return [{name: draw(chance) for name, draw in draws.items()} for _ in range(samples)]


def _draw(name: str, given: Json) -> Callable[[random.Random], Json]:
    if not (isinstance(given, Mapping) and "min" in given):
        values = _values(name, given)
        return lambda chance: chance.choice(values)
    low, high = _number(name, given, "min"), _number(name, given, "max")
    if low > high:
        raise ConvectError(f"The smallest {name} is above the largest.")
    whole = given.get("type") in ("int", "integer")
    if not given.get("log"):
        if whole:
            return lambda chance: chance.randint(math.ceil(low), math.floor(high))
        return lambda chance: _tidy(chance.uniform(low, high))
    if low <= 0:
        raise ConvectError(f"A logarithmic {name} must be greater than 0.")

    def draw(chance: random.Random) -> Json:
        value = math.exp(chance.uniform(math.log(low), math.log(high)))
        value = min(max(value, low), high)
        return round(value) if whole else _tidy(value)

    return draw


def _values(name: str, given: Json) -> list[Json]:
    if isinstance(given, list | tuple):
        if not given:
            raise ConvectError(f"The parameter {name} has no values.")
        return list(given)
    if isinstance(given, Mapping) and "from" in given:
        return _range(name, given)
    if isinstance(given, Mapping) and "min" in given:
        if given.get("type") == "integer" and not given.get("log"):
            return _range(name, {"from": given["min"], "to": given.get("max"), "step": 1})
        raise ConvectError(f"The interval of {name} needs a random sweep.")
    raise ConvectError(
        f"The values of {name} are not a list, a range or an interval.",
        hint="For example [1, 2], {from: 1, to: 9, step: 2} or {min: 0, max: 1}.",
    )


def _range(name: str, given: Mapping[str, Json]) -> list[Json]:
    first, last = _number(name, given, "from"), _number(name, given, "to")
    step = _number(name, given, "step") if "step" in given else 1
    if step == 0 or (last - first) / step < 0:
        raise ConvectError(f"The range of {name} never reaches its end; check the sign of `step`.")
    count = math.floor((last - first) / step + 1e-9) + 1
    _check_count(count)
    return [_tidy(first + number * step) for number in range(count)]


def _number(name: str, given: Mapping[str, Json], key: str) -> Any:
    value = given.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConvectError(f"`{key}` of {name} is not a number.")
    return value


def _check_count(count: int) -> None:
    if count > MOST:
        raise ConvectError(f"A sweep has at most {MOST} points, not {count}.")


def _tidy(value: Any) -> Any:
    """Without the last digits, in which sums of decimal fractions go wrong."""
    return value if isinstance(value, int) else float(f"{value:.12g}")
