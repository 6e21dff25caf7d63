from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Convect = Callable[..., tuple[int, str, str]]


def test_a_notification_is_made_listed_tried_and_removed(work: Path, convect: Convect):
    assert "no notifications yet" in convect("notify", "list")[2]
    command = ("notify", "add", "webhook", "--url", "http://127.0.0.1:9/x", "--name", "team")
    code, out, _ = convect(*command, "--longer-than", "2h", "--file", "a.ipynb", "--json")
    made = json.loads(out)
    assert (code, made["events"], made["longer"]) == (0, ["longer"], 7200)
    code, out, _ = convect("notify", "list")
    assert "a.ipynb" in out
    code, _, err = convect("notify", "test", "team")
    assert (code, "could not be sent" in err) == (2, True)
    assert convect("notify", "remove", made["id"][-6:])[0] == 0
    assert "There is no notification" in convect("notify", "test", "team")[2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["mail"], "A mail goes to"),
        (["mail", "--to", "x"], "is not a mail address"),
        (["slack", "--secret", "x"], "does not name a secret"),
        (["slack", "--secret", "a/b", "--schedule", "none"], "There is no schedule"),
        (["slack", "--secret", "a/b", "--longer-than", "soon"], "is not a duration"),
    ],
)
def test_bad_input_is_one_sentence(work: Path, convect: Convect, words: list[str], sentence: str):
    code, _, err = convect("notify", "add", *words)
    assert (code, sentence in err) == (2, True), err
