"""Keeps the values of secrets out of everything that is written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MASK = "***"

SHORTEST = 4
"""Anything shorter would also be found in ordinary text, and guards nothing."""


class Mask:
    """Replaces each secret, as it is and as it looks inside JSON or a Python string."""

    def __init__(self, secrets: frozenset[str] | set[str] = frozenset()) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        self._forms = sorted(forms, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __call__(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, MASK)
        return text

    def tree(self, value: Any) -> Any:
        """A copy of a JSON value with every text in it masked."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {self(str(key)): self.tree(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(item) for item in value]
        return value

    def unfinished(self, text: str) -> int:
        """How many characters at the end of `text` might be the beginning of a secret."""
        return max((_overlap(text, form) for form in self._forms), default=0)


def secrets_in(environment: Mapping[str, str]) -> frozenset[str]:
    """The values of the variables that `CONVECT_SECRETS` names, separated by commas."""
    names = environment.get("CONVECT_SECRETS", "").split(",")
    return frozenset(environment[name] for name in names if name and environment.get(name))


def _forms(secret: str) -> set[str]:
    lines = {secret, secret.strip(), *secret.splitlines()}
    escaped = {
        json.dumps(line, ensure_ascii=ascii_only)[1:-1]
        for line in lines
        for ascii_only in (False, True)
    }
    escaped |= {repr(line)[1:-1] for line in lines}
    return {form for form in lines | escaped if len(form) >= SHORTEST}


def _overlap(text: str, form: str) -> int:
    for length in range(min(len(text), len(form) - 1), 0, -1):
        if text.endswith(form[:length]):
            return length
    return 0
