"""Lists, sizes and durations as people read them."""

import pytest

from jupyterlab_convect.text import duration_text, elapsed_text, listing, size_text, some_of


def test_lists_end_in_and():
    assert [listing(list(words)) for words in ("", "a", "ab", "abc")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert some_of(["a", "b", "c"]) == "a, b and c"
    assert some_of({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}) == "a, b, c and 2 more"
    assert some_of(["a", "b"], 1) == "a and 1 more"


@pytest.mark.parametrize(
    ("count", "decimal", "binary"),
    [
        (0, "0 bytes", "0 bytes"),
        (999, "999 bytes", "999 bytes"),
        (1_500, "1.5 kB", "1.46 KiB"),
        (10_000_000, "10 MB", "9.54 MiB"),
        (8 << 30, "8.59 GB", "8 GiB"),
        (1 << 40, "1.1 TB", "1 TiB"),
        (5 << 60, "5.765e+06 TB", "5.12e+03 PiB"),
    ],
)
def test_sizes(count, decimal, binary):
    assert (size_text(count), size_text(count, binary=True)) == (decimal, binary)


@pytest.mark.parametrize(
    ("seconds", "exact", "about"),
    [
        (0.5, "0.5 s", "0.5 s"),
        (12.34, "12.34 s", "12 s"),
        (59, "59 s", "59 s"),
        (60, "1 min", "1 min 0 s"),
        (90, "1 min 30 s", "1 min 30 s"),
        (7200, "2 h", "2 h 0 min"),
        (7505, "2 h 5 min 5 s", "2 h 5 min"),
    ],
)
def test_durations(seconds, exact, about):
    assert (duration_text(seconds), elapsed_text(seconds)) == (exact, about)
