"""Every Kubernetes quantity is understood, exactly."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.quantities import canonical, duration, quantity


@pytest.mark.parametrize(
    ("value", "amount", "text"),
    [
        (2, 2, "2"),
        (0.5, "0.5", "500m"),
        ("500m", "0.5", "500m"),
        ("1000m", 1, "1"),
        ("2Gi", 2 * 1024**3, "2Gi"),
        ("2048Mi", 2 * 1024**3, "2Gi"),
        ("1.5Gi", 1536 * 1024**2, "1536Mi"),
        ("1e3", 1000, "1k"),
        ("1E3", 1000, "1k"),
        ("1E", 10**18, "1E"),
        ("128974848", 128974848, "128974848"),
        (".5", "0.5", "500m"),
        ("5.", 5, "5"),
        ("0", 0, "0"),
        ("100u", "0.0001", "100u"),
        ("1e-12", "0.000000000001", "1n"),
    ],
)
def test_quantities(value: str | float, amount: str | int, text: str) -> None:
    assert quantity(value) == Decimal(amount)
    assert canonical(value) == text


@pytest.mark.parametrize(
    "value", ["", "x", "2GB", "1 Gi", "-1", "1e999", "99E", "nan", "٣", "1" * 99]
)
def test_what_is_no_quantity_is_refused(value: str) -> None:
    with pytest.raises(ConvectError) as caught:
        quantity(value)
    assert caught.value.code == "bad-quantity"


@given(st.integers(0, 10**12), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "u"]))
def test_the_canonical_form_is_the_same_amount_and_stays(number: int, suffix: str) -> None:
    text = canonical(f"{number}{suffix}")
    assert quantity(text) == quantity(f"{number}{suffix}")
    assert canonical(text) == text


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (90, 90),
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("1d", 86400),
    ],
)
def test_durations(value: str | float, seconds: float) -> None:
    assert duration(value) == seconds


@pytest.mark.parametrize("value", ["", "soon", "2 hours", "h", "1h-2m", "-5s"])
def test_what_is_no_duration_is_refused(value: str) -> None:
    with pytest.raises(ConvectError):
        duration(value)
