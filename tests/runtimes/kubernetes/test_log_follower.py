"""The log of a component, which is read from its beginning each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyterlab_convect.runtimes.kubernetes.log_follower import PlainLog


def test_a_plain_log_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyterlab_convect.runtimes.kubernetes.log_follower.LARGEST_FILE", 10)
    log = PlainLog(tmp_path / "log.txt")
    for piece in (b"12345678", b"9abcdef", b"more"):
        log.take(piece)
    assert (tmp_path / "log.txt").read_text().startswith("123456789a\n[The log is too long")
    assert "more" not in (tmp_path / "log.txt").read_text()


def test_a_plain_log_is_read_again_and_only_what_is_new_is_added(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    for pieces in (["one\n"], ["one", "\ntwo\n"], ["one\ntwo\nthr", "ee\n"]):
        log = PlainLog(path)
        for piece in pieces:
            log.take(piece.encode())
    assert path.read_text() == "one\ntwo\nthree\n"


def test_a_plain_log_that_lost_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    PlainLog(path).take(b"one\ntwo\n")
    PlainLog(path).take(b"two\nthree\n")
    head, note, tail = path.read_text().partition("[The beginning of the log was thrown away")
    assert (head.strip(), bool(note)) == ("one\ntwo", True)
    assert tail.endswith("two\nthree\n")
