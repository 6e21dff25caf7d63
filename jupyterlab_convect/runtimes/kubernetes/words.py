"""Amounts of a cluster's resources as people say them."""

from __future__ import annotations

from decimal import Decimal

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def plain_resource(name: str) -> str:
    """The resource itself: quotas speak of `requests.cpu` and `limits.memory`."""
    for prefix in ("requests.", "limits."):
        name = name.removeprefix(prefix)
    return name


def amount(name: str, value: Decimal, kind: str | None = None) -> str:
    """`4 GPUs of type A100`, `0.5 cores`, `2 GiB of memory`, `3 example.com/npu`."""
    name = plain_resource(name)
    if name == "cpu":
        return f"{_number(value)} {'core' if value == 1 else 'cores'}"
    if name == "memory":
        return f"{_bytes(value)} of memory"
    if name in ("ephemeral-storage", "storage"):
        return f"{_bytes(value)} of disk"
    if name.endswith("/gpu"):
        return f"{_number(value)} {'GPU' if value == 1 else 'GPUs'}" + (
            f" of type {kind}" if kind else ""
        )
    if name == "pods":
        return f"{_number(value)} {'pod' if value == 1 else 'pods'}"
    return f"{_number(value)} {name}" + (f" of type {kind}" if kind else "")


def bare(name: str, value: Decimal) -> str:
    """The number alone, where the thing has been named already."""
    name = plain_resource(name)
    return _bytes(value) if name in ("memory", "ephemeral-storage", "storage") else _number(value)


def listing(parts: list[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def _number(value: Decimal) -> str:
    return f"{value.normalize():f}" if value == value.to_integral_value() else f"{float(value):.3g}"


def _bytes(value: Decimal) -> str:
    size = float(value)
    for unit in _UNITS:
        if abs(size) < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.3g} {unit}"
