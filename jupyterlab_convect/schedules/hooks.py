"""Who may make a schedule due by a call: tokens, and the signatures of git hosts.

No token is kept anywhere. Each is derived from a key that only this user can read, because a
signature can only be checked by somebody who knows the token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path

from ..runs.json_files import create_whole
from ..safe_files import read_regular
from .triggers import CallTrigger

KEY = "hooks.key"
TOKEN_HEADERS = ("X-Gitlab-Token", "X-Gitee-Token")
SIGNATURE_HEADERS = ("X-Hub-Signature-256", "X-Gitea-Signature", "X-Gogs-Signature")
"""HMAC-SHA256 of the body in hexadecimal digits, with or without `sha256=` before it."""
DELIVERY_HEADERS = (
    "X-GitHub-Delivery",
    "X-Gitea-Delivery",
    "X-Gitlab-Event-UUID",
    "Idempotency-Key",
)
"""What is the same when a host sends the same call again."""


def hook_token(folder: Path, schedule_id: str, call: CallTrigger) -> str:
    """The token of a schedule; `folder` is this user's own."""
    path = folder / KEY
    create_whole(path, secrets.token_bytes(32))
    words = f"{schedule_id} {call.generation}".encode()
    digest = hmac.digest(read_regular(path), words, "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_allowed(token: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a call has the token, or a signature that was made with it."""
    kind, _, bearer = headers.get("Authorization", "").partition(" ")
    given = [headers.get(name, "") for name in TOKEN_HEADERS]
    given += [bearer.strip()] if kind.lower() in ("bearer", "token") else []
    if any(hmac.compare_digest(each.encode(), token.encode()) for each in given):
        return True
    expected = hmac.new(token.encode(), body, hashlib.sha256).hexdigest()
    signatures = (headers.get(name, "").removeprefix("sha256=") for name in SIGNATURE_HEADERS)
    return any(hmac.compare_digest(each.encode(), expected.encode()) for each in signatures)


def delivery_of(headers: Mapping[str, str]) -> str:
    """What tells a call from the others; one that is sent again has the same."""
    given = next((headers[name] for name in DELIVERY_HEADERS if headers.get(name)), None)
    return f"call {given[:200]}" if given else f"call {secrets.token_hex(16)}"
