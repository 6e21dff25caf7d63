from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from jupyterlab_convect.runtimes.kubernetes.fingerprints import Fingerprints, guard_program

SECRETS = {"TOKEN": "hunter2-数", "OTHER": 'a "quoted" one', "SHORT": "xyz"}


@pytest.fixture(scope="module")
def told() -> bytes:
    """What the guard says, in a process of its own as in its container."""
    env = {**os.environ, **SECRETS, "CONVECT_SECRETS": ",".join(SECRETS)}
    return subprocess.check_output([sys.executable, "-c", guard_program()], env=env)


def test_no_secret_is_told(told: bytes) -> None:
    assert not any(value.encode() in told for value in SECRETS.values())


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_secrets_are_hidden_however_the_log_comes(told: bytes, size: int) -> None:
    marks = Fingerprints.read(told)
    text = 'x hunter2-数hunter2-数, "a \\"quoted\\" one" xyz hunter2\n'.encode()
    seen, held = b"", b""
    for at in range(0, len(text), size):
        masked, held = marks.hide(held + text[at : at + size], final=False)
        seen += masked
    seen += marks.hide(held)[0]
    assert seen.decode() == 'x ******, "***" xyz hunter2\n'


def test_secrets_are_hidden_in_values(told: bytes) -> None:
    marks = Fingerprints.read(told)
    value = {"n": 1, "list": ["my hunter2-数!"], "hunter2-数": None}
    assert marks.hide_in(value) == {"n": 1, "list": ["my ***!"], "***": None}


@pytest.mark.parametrize("line", [b"", b"nonsense", b"[]", b"{}", b'{"salt": "", "marks": [1]}'])
def test_anything_else_is_no_fingerprint(line: Any) -> None:
    with pytest.raises(ValueError, match="no fingerprints"):
        Fingerprints.read(line)
