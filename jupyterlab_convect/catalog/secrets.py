"""Looks up what a catalog sends as `Authorization`, at the moment it is sent."""

from __future__ import annotations

import importlib
import os

from ..errors import ConvectError
from .sources import Auth


def authorization(auth: Auth) -> str:
    """The header's value. It is never stored, logged or part of an error."""
    secret = _from_environment(auth) if auth.env else _from_keyring(auth)
    if "\n" in secret or "\r" in secret:
        raise ConvectError("The secret of the catalog holds a line break.")
    return f"{auth.scheme} {secret}" if auth.scheme else secret


def _from_environment(auth: Auth) -> str:
    value = os.environ.get(auth.env or "")
    if not value:
        raise ConvectError(
            f"The environment variable {auth.env}, which holds the catalog's secret, is not set."
        )
    return value


def _from_keyring(auth: Auth) -> str:
    if not auth.name or not auth.key:
        raise ConvectError("The catalog's secret needs a name and a key.")
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        raise ConvectError(
            f"The secret “{auth.name}” cannot be looked up without the package keyring.",
            hint="Install keyring, or name an environment variable.",
        ) from None
    value = keyring.get_password(auth.name, auth.key)
    if not value:
        raise ConvectError(f"The keyring has no secret “{auth.name}” with the key “{auth.key}”.")
    return str(value)
