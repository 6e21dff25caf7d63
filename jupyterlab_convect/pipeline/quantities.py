"""Kubernetes quantities and durations, as exact numbers and canonical text."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

from ..errors import ConvectError

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3})|(?P<suffix>Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?)"
)
_BINARY = {
    suffix: 1024**power for power, suffix in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))
}
_DECIMAL = {
    suffix: Decimal(10) ** power
    for suffix, power in zip(
        ("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), range(-9, 19, 3), strict=True
    )
}
_LARGEST = Decimal(2**63 - 1)
_DURATION = re.compile(r"(?:([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w))", re.ASCII)
_LONGEST = 40
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def quantity(value: str | float) -> Decimal:
    """The exact amount: `500m` is 0.5, `2Gi` is 2147483648."""
    match = _QUANTITY.fullmatch(_text(value))
    if match is None:
        raise ConvectError(
            f"“{_cut(value)}” is not a quantity.",
            code="bad-quantity",
            hint=_nearest_quantity(value)
            or "Write a number, or one with a unit: 500m, 2, 512Mi, 2Gi.",
        )
    amount = Decimal(match["number"])
    if match["exponent"]:
        amount = amount.scaleb(int(match["exponent"]))
    elif match["suffix"]:
        amount *= _BINARY.get(match["suffix"]) or _DECIMAL[match["suffix"]]
    if amount < 0:
        raise ConvectError(f"The quantity “{_cut(value)}” is below zero.", code="bad-quantity")
    if amount > _LARGEST:
        raise ConvectError(f"The quantity “{_cut(value)}” is too large.", code="bad-quantity")
    return amount


def canonical(value: str | float) -> str:
    """The same amount in its shortest whole form: 0.5 is `500m`, `2048Mi` is `2Gi`.

    What is finer than a billionth is rounded up, as Kubernetes does.
    """
    amount = quantity(value)
    if amount == 0:
        return "0"
    units = _BINARY if _text(value).endswith("i") and amount == int(amount) else _DECIMAL
    for suffix, unit in reversed(units.items()):
        count = amount / unit
        if count == count.to_integral_value():
            return f"{int(count)}{suffix}"
    return f"{int((amount / _DECIMAL['n']).to_integral_value(ROUND_CEILING))}n"


def duration(value: str | float) -> float:
    """Seconds of `90`, `"90s"`, `"2h"` or `"1h30m"`."""
    if not isinstance(value, str):
        return float(value)
    text = value.replace(" ", "")
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII):
        return float(text)
    parts = _DURATION.findall(text) if len(text) <= _LONGEST else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ConvectError(
            f"“{_cut(value)}” is not a duration.",
            code="bad-duration",
            hint=_nearest_duration(text)
            or "Write seconds, or a number with a unit: 90s, 15m, 2h, 1d.",
        )
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _nearest_quantity(value: str | float) -> str | None:
    """`2GB` and `2 gb` are what people write for `2Gi`."""
    match = re.fullmatch(r"([0-9.]+) ?([kmgtpe])i?b?", _text(value), re.IGNORECASE)
    return f"Did you mean {match[1]}{match[2].upper()}i?" if match else None


def _nearest_duration(text: str) -> str | None:
    match = re.fullmatch(r"([0-9.]+)(s|m|h|d|w)[a-z]*", text, re.IGNORECASE)
    return f"Did you mean {match[1]}{match[2].lower()}?" if match else None


def _text(value: str | float) -> str:
    return value.strip() if isinstance(value, str) else repr(value)


def _cut(value: str | float) -> str:
    return str(value)[:40]
