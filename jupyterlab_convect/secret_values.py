"""Where secrets come from on this machine: a variable of the server, or the keyring."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .errors import Refused

if TYPE_CHECKING:
    from .pipeline.plan import Secret

PREFIX = "CONVECT_SECRET_"
_SERVER = re.compile(
    rf"{PREFIX}|JPY_|(JUPYTER|JUPYTERHUB|CONFIGPROXY)_(\w+_)?(TOKEN|SECRET|PASSWORD|PWD|KEY|HEADERS)"
)
"""Variables that hold secrets of the server, its hub or its gateway, or name their files."""


def variable(secret: Secret) -> str:
    """The environment variable that holds it where there is no keyring."""
    return PREFIX + re.sub(r"\W", "_", f"{secret.name}_{secret.key}").upper()


def look_up(secret: Secret) -> str | None:
    found = os.environ.get(variable(secret))
    if found is not None:
        return found
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return None
    try:
        value: str | None = keyring.get_password(secret.name, secret.key)
    except Exception:  # whatever its backend raises: there is no secret to be had
        return None
    return value


def explain_missing(secret: Secret) -> tuple[str, str]:
    """A sentence and a hint for a secret that is not there."""
    return (
        f"The secret {secret.name}/{secret.key} is not known on this machine.",
        f"Put it into the keyring (service {secret.name}, user {secret.key}) "
        f"or into the environment variable {variable(secret)} of the server.",
    )


def environment(secrets: Iterable[Secret]) -> dict[str, str]:
    """The variables of the step, and `CONVECT_SECRETS`, which names them for the runner."""
    values = {}
    for secret in secrets:
        value = look_up(secret)
        if value is None:
            sentence, hint = explain_missing(secret)
            raise Refused(sentence, code="missing-secret", hint=hint)
        values[secret.env] = value
    return {**values, "CONVECT_SECRETS": ",".join(values)}


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that steps inherit: no secret goes to a step that did not ask for it."""
    return {name: value for name, value in environment.items() if not _SERVER.match(name)}
