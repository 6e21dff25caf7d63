"""Hides secrets in what a component prints, without knowing them.

The log of a component passes through our hands, the values of its secrets do not. A small
container beside it, which has them, tells a keyed digest of each; with these every place
where one occurs can be found. The key is made for one attempt: it reaches the container in
a Secret, stays in the attempt's folder while the attempt runs, and is forgotten afterwards.
Without it nobody can try out what a digest stands for.
"""

from __future__ import annotations

import hmac
import inspect
import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...runner import masking
from ...safe_files import read_regular, write_whole

DIGESTS = "secret-digests"
"""The name of the container that knows the secrets."""
KEY = "mask-key"
"""Of the Secret, the name under which it holds the key."""
HEAD = 4
"""First bytes of a secret whose sorts are told: what cannot begin one is passed over quickly."""
SORTS = 16

_TELL = """
import hmac, os
key = bytes.fromhex(os.environ["CONVECT_MASK_KEY"])
forms = {form.encode() for secret in secrets_in(os.environ) for form in _forms(secret)}
told = [[len(form), [sorts(key, at)[form[at]] for at in range(HEAD)],
         hmac.digest(key, form, "sha256").hex()] for form in forms]
print(json.dumps(told))
"""


def sorts(key: bytes, at: int) -> list[int]:
    """The sort of each of the 256 bytes, for one place: by the key, so that it tells nothing."""
    order = sorted(range(256), key=lambda byte: hmac.digest(key, bytes((at, byte)), "sha256"))
    return [order.index(byte) * SORTS // 256 for byte in range(256)]


def digest_program() -> str:
    """Python source that prints keyed digests of the secrets in its environment."""
    names = f"\nHEAD, SORTS = {HEAD}, {SORTS}\n"
    return inspect.getsource(masking) + names + inspect.getsource(sorts) + _TELL


def make_key(folder: Path) -> str:
    """The key of an attempt, the same until `forget_key`."""
    path = _key_file(folder)
    if not path.exists():
        write_whole(path, secrets.token_hex(32).encode())
    return read_regular(path).decode()


def forget_key(folder: Path) -> None:
    _key_file(folder).unlink(missing_ok=True)


class SecretDigests:
    def __init__(self, key: bytes, told: list[tuple[int, list[int], str]]) -> None:
        self._key = key
        self._digests: dict[int, frozenset[str]] = {}
        for length, _, digest in sorted(told, reverse=True):
            self._digests[length] = self._digests.get(length, frozenset()) | {digest}
        tables = [sorts(key, at) for at in range(HEAD)]
        heads = {_pattern(tables, head) for _, head, _ in told} or {b"(?!)"}
        self._head = re.compile(b"(?=%s)" % b"|".join(sorted(heads)))

    @classmethod
    def read(cls, folder: Path, line: bytes) -> SecretDigests | None:
        """What that container printed; None when it is something else."""
        try:
            key = bytes.fromhex(read_regular(_key_file(folder)).decode())
            told = [
                (int(length), [int(sort) for sort in head], str(digest))
                for length, head, digest in json.loads(line)
            ]
        except (OSError, TypeError, ValueError, RecursionError):
            return None
        whole = all(length >= HEAD and len(head) == HEAD for length, head, _ in told)
        return cls(key, told) if whole else None

    def hide(self, data: bytes, *, final: bool = True) -> tuple[bytes, bytes]:
        """The data masked, and its end that may be the beginning of a secret."""
        longest = max(self._digests, default=1)
        end = len(data) if final else max(len(data) - longest + 1, 0)
        masked, at = bytearray(), 0
        for match in self._head.finditer(data, 0):
            begin = match.start()
            if begin >= end:
                break
            if begin >= at and (length := self._secret_at(data, begin)):
                masked += data[at:begin] + masking.MASK.encode()
                at = begin + length
        masked += data[at : max(at, end)]
        return bytes(masked), data[max(at, end) :]

    def hide_in(self, value: Any) -> Any:
        """A copy of a JSON value with every text in it masked."""
        if isinstance(value, str):
            return self.hide(value.encode(errors="surrogateescape"))[0].decode(errors="replace")
        if isinstance(value, Mapping):
            return {self.hide_in(key): self.hide_in(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.hide_in(item) for item in value]
        return value

    def _digest(self, piece: bytes) -> str:
        return hmac.digest(self._key, piece, "sha256").hex()

    def _secret_at(self, data: bytes, at: int) -> int:
        """The length of the secret that begins there; 0 when none does."""
        for length, digests in self._digests.items():
            piece = data[at : at + length]
            if len(piece) == length and self._digest(piece) in digests:
                return length
        return 0


def _pattern(tables: list[list[int]], head: list[int]) -> bytes:
    """What has bytes of these sorts, one after another."""
    return b"".join(
        b"[%s]" % b"".join(b"\\x%02x" % byte for byte in range(256) if table[byte] == sort)
        for table, sort in zip(tables, head, strict=True)
    )


def _key_file(folder: Path) -> Path:
    return folder / ".mask-key"
