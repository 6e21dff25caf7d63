"""What docs/security.md promises is tested where it says so."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "security.md"


def test_every_promise_names_tests_that_are_there() -> None:
    rows = re.findall(r"^\| (.+?) \| (`tests/.+`) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) > 15
    for promise, tests in rows:
        for name in re.findall(r"`(.+?)`", tests):
            assert "def test_" in (ROOT / name).read_text(encoding="utf-8"), (promise, name)
