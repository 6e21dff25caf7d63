"""What docs/security.md promises, in both languages, is tested where it says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", ["security.md", "security.zh.md"])
def test_every_promise_names_tests_that_are_there(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (`tests/.+`) \|$", text, re.M)
    assert len(rows) > 15
    for promise, tests in rows:
        for test in re.findall(r"`(.+?)`", tests):
            assert "def test_" in (ROOT / test).read_text(encoding="utf-8"), (promise, test)
