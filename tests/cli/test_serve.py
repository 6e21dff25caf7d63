from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Convect = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["none.ipynb"], "There is no file"),
        (["train.ipynb", "--port", "99999"], "--port must be a number from 0 to 65535."),
        (["train.ipynb", "--id", "a b"], "cannot be an id"),
        (["train.ipynb", "--idle", "soon"], "“soon” is not a duration."),
    ],
)
def test_bad_input_is_one_sentence(
    work: Path,
    write_notebook: Callable[..., Path],
    convect: Convect,
    words: list[str],
    sentence: str,
) -> None:
    write_notebook(work / "train.ipynb", ("parameters", "n = 1"), "print(n)")
    code, _, err = convect("serve", *words)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err
