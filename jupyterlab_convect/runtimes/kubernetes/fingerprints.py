"""Hides secrets in what a component prints, without knowing them.

The log of a component passes through our hands, the values of its secrets do not. A small
container beside it, which has them, tells only the length and a salted digest of each;
with these every place where one occurs can be found.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from typing import Any

from ...runner import masking

GUARD = "guard"
"""The name of the container that knows the secrets."""

_TELL = """
import hashlib, os
salt = os.urandom(16)
forms = {form.encode() for secret in secrets_in(os.environ) for form in _forms(secret)}
marks = [[len(form), hashlib.sha256(salt + form).hexdigest()] for form in forms]
print(json.dumps({"salt": salt.hex(), "marks": marks}))
"""


def guard_program() -> str:
    """Python source that prints the fingerprints of the secrets in its environment."""
    return inspect.getsource(masking) + _TELL


class Fingerprints:
    def __init__(self, salt: bytes, marks: Mapping[int, frozenset[str]]) -> None:
        self._salt = salt
        self._marks = dict(sorted(marks.items(), reverse=True))

    @classmethod
    def read(cls, line: bytes) -> Fingerprints:
        """What the guard printed. ValueError when it is something else."""
        try:
            told = json.loads(line)
            marks: dict[int, frozenset[str]] = {}
            for length, digest in told["marks"]:
                marks[int(length)] = marks.get(int(length), frozenset()) | {str(digest)}
            return cls(bytes.fromhex(told["salt"]), marks)
        except (KeyError, TypeError, ValueError):
            raise ValueError("These are no fingerprints.") from None

    def hide(self, data: bytes, *, final: bool = True) -> tuple[bytes, bytes]:
        """The data masked, and its end that may be the beginning of a secret."""
        longest = max(self._marks, default=0)
        masked, at = bytearray(), 0
        while at < len(data) and (final or len(data) - at >= longest):
            found = self._secret_at(data, at)
            masked += masking.MASK.encode() if found else data[at : at + 1]
            at += found or 1
        return bytes(masked), data[at:]

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
        return hashlib.sha256(self._salt + piece).hexdigest()

    def _secret_at(self, data: bytes, at: int) -> int:
        """The length of the secret that begins there; 0 when none does."""
        for length, digests in self._marks.items():
            piece = data[at : at + length]
            if len(piece) == length and self._digest(piece) in digests:
                return length
        return 0
