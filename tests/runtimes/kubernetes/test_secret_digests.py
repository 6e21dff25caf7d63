from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.runtimes.kubernetes.secret_digests import (
    SecretDigests,
    digest_program,
    forget_key,
    make_key,
)

SECRETS = {"TOKEN": "hunter2-数", "OTHER": 'a "quoted" one', "PIN": "4711", "SHORT": "xyz"}


def tell(key: str) -> bytes:
    """What the program says, in a process of its own as in its container."""
    env = {
        **os.environ,
        **SECRETS,
        "CONVECT_SECRETS": ",".join(SECRETS),
        "CONVECT_MASK_KEY": key,
    }
    return subprocess.check_output([sys.executable, "-c", digest_program()], env=env)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attempt")


@pytest.fixture(scope="module")
def told(folder: Path) -> bytes:
    return tell(make_key(folder))


@pytest.fixture
def digests(folder: Path, told: bytes) -> SecretDigests:
    found = SecretDigests.read(folder, told)
    assert found is not None
    return found


def test_no_secret_is_told(told: bytes) -> None:
    beside_digests = re.sub(rb"\b[0-9a-f]{64}\b", b"", told)  # in which any digits may occur
    assert not any(value.encode() in beside_digests for value in SECRETS.values())


def test_nobody_without_the_key_can_try_out_a_short_secret(
    folder: Path, told: bytes, tmp_path: Path
) -> None:
    """What the container told stays in the cluster's logs; the key goes with the attempt."""
    (key,) = folder.iterdir()
    assert key.stat().st_mode & 0o077 == 0
    make_key(tmp_path)
    other = SecretDigests.read(tmp_path, told)
    assert other is not None
    guesses = b" ".join(b"%04d" % number for number in range(10_000))
    assert other.hide(guesses)[0] == guesses
    forget_key(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert SecretDigests.read(tmp_path, told) is None


def test_two_attempts_tell_nothing_alike(told: bytes, tmp_path: Path) -> None:
    assert not set(told.split(b'"')[1::2]) & set(tell(make_key(tmp_path)).split(b'"')[1::2])


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_secrets_are_hidden_however_the_log_comes(digests: SecretDigests, size: int) -> None:
    text = 'x hunter2-数hunter2-数, "a \\"quoted\\" one" 14711 xyz hunter2\n'.encode()
    seen, held = b"", b""
    for at in range(0, len(text), size):
        masked, held = digests.hide(held + text[at : at + size], final=False)
        seen += masked
    seen += digests.hide(held)[0]
    assert seen.decode() == 'x ******, "***" 1*** xyz hunter2\n'


def test_secrets_are_hidden_in_values(digests: SecretDigests) -> None:
    value = {"n": 1, "list": ["my hunter2-数!"], "hunter2-数": None}
    assert digests.hide_in(value) == {"n": 1, "list": ["my ***!"], "***": None}


def test_a_long_log_takes_few_digests(folder: Path) -> None:
    """They are what costs time: without a look at the first bytes there would be one per byte."""
    taken = []

    class Counted(SecretDigests):
        def _digest(self, piece: bytes) -> str:
            taken.append(piece)
            return super()._digest(piece)

    key = "c0de" * 16
    (folder / ".mask-key").write_text(key)
    digests = Counted.read(folder, tell(key))
    assert digests is not None
    log = b"".join(b"epoch %d loss=%.5f accuracy %d%%\n" % (n, 1 / (n + 1), n) for n in range(9000))
    assert digests.hide(log)[0] == log.replace(b"4711", b"***")
    assert len(taken) < len(log) / 20


@pytest.mark.parametrize("line", [b"", b"nonsense", b"[1]", b"{", b'[[4, [1], "x"]]', b"[" * 10**5])
def test_anything_else_is_no_digest(folder: Path, line: Any) -> None:
    assert SecretDigests.read(folder, line) is None
