"""Test connection: step by step to a Kubeflow Pipelines server, and which step fails."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...errors import ConvectError, Refused
from ..base import ConnectionStep
from .api import Client, NoJson, NotAllowed, NotSignedIn
from .credentials import (
    SECRET,
    Cookie,
    Credentials,
    Kubeconfig,
    Nobody,
    Password,
    Token,
    TokenFile,
    cluster_secret,
    stored_secret,
)

Method = Literal["auto", "none", "token-file", "token", "password", "cookie", "kubeconfig"]


@dataclass(frozen=True)
class Way:
    """How to get to a server."""

    endpoint: str
    method: Method = "auto"
    namespace: str = ""
    user: str = ""
    ca_file: str = ""
    token_file: str = ""
    server_namespace: str = ""
    """Where the server itself runs, for who goes through the cluster."""
    secret: str = ""
    """The name and key of a Kubernetes Secret with the token, password or cookie."""

    def stored_secret(self) -> str | None:
        if self.secret:
            return cluster_secret(self.secret, self.namespace)
        return stored_secret(self.endpoint)


Look = Callable[[], str | None]
"""Finds the secret."""


def check(way: Way, secret: Look | None = None) -> list[ConnectionStep]:
    """Every step up to the first that fails."""
    try:
        client, found = _reach(way, secret or way.stored_secret)
    except ConvectError as error:
        step: Literal["address", "sign-in"] = (
            "sign-in" if isinstance(error, NotSignedIn) or error.code in _OF_SIGN_IN else "address"
        )
        reached = [ConnectionStep("address", True, f"A server answers at {way.endpoint}.")]
        failed = ConnectionStep(step, False, error.sentence, error.hint)
        return [*(reached if step == "sign-in" else []), failed]
    steps = [
        ConnectionStep("address", True, f"Kubeflow Pipelines answers at {client.endpoint}."),
        ConnectionStep("sign-in", True, _WORDS[type(client.credentials)]),
    ]
    if found.get("multi_user") and not way.namespace:
        failed = ConnectionStep(
            "namespace",
            False,
            "This Kubeflow Pipelines has several users, and no namespace is given.",
            "Name yours with --namespace, or in c.KfpRuntime.namespace.",
        )
        return [*steps, failed]
    try:
        client.runs(page_size=1)
    except ConvectError as error:
        named: Literal["sign-in", "namespace"] = (
            "namespace" if isinstance(error, NotAllowed) else "sign-in"
        )
        known = steps if named == "namespace" else steps[:1]
        return [*known, ConnectionStep(named, False, error.sentence, error.hint)]
    words = f"You can see the runs of namespace {way.namespace}." if way.namespace else _NO_SPACE
    return [*steps, ConnectionStep("namespace", True, words)]


_NO_SPACE = "You can see the runs of this server."
_OF_SIGN_IN = frozenset(
    (
        *("wrong-password", "no-form", "foreign-sign-in", "no-secret"),
        *("no-token", "bad-token", "bad-cookie"),
    )
)
_WORDS: dict[type[Credentials], str] = {
    Nobody: "No sign-in is needed.",
    TokenFile: "Signed in with the token that the cluster gives.",
    Token: "Signed in with a token.",
    Cookie: "Signed in with a cookie.",
    Password: "Signed in with a name and a password.",
    Kubeconfig: "Signed in to the cluster.",
}


def _reach(way: Way, secret: Look) -> tuple[Client, dict[str, object]]:
    """A client that is answered, by the first of the methods that can work."""
    last: ConvectError | None = None
    if way.method == "kubeconfig":
        through = Kubeconfig(way.server_namespace)
        client = Client(through.endpoint, through, namespace=way.namespace)
        return client, client.health()
    cookies: dict[str, str] = {}
    methods = _methods(way, secret)
    for endpoint in _addresses(way.endpoint):
        for credentials in methods:
            client = Client(endpoint, credentials, ca_file=way.ca_file, namespace=way.namespace)
            client.session.cookies = cookies
            try:
                return client, client.health()
            except (NotSignedIn, NotAllowed) as error:
                last = error
            except NoJson as error:
                last = last or error
                break
    assert last is not None
    if isinstance(last, NotSignedIn) and way.method == "auto":
        raise Refused(
            last.sentence,
            code="no-secret",
            hint=f"Put a token into the keyring, a Kubernetes Secret or {SECRET}. A password needs "
            "a user as well.",
        )
    raise last


def connect(way: Way, secret: Look | None = None) -> Client:
    """A client that is signed in. A ConvectError says which step fails."""
    return _reach(way, secret or way.stored_secret)[0]


def _addresses(endpoint: str) -> list[str]:
    """As it is given; behind Kubeflow's dashboard the interface has a folder of its own."""
    plain = endpoint.rstrip("/")
    return [plain] if plain.endswith("/pipeline") else [plain, f"{plain}/pipeline"]


def _methods(way: Way, secret: Look) -> list[Credentials]:
    if way.method == "none":
        return [Nobody()]
    if way.method == "token-file":
        return [TokenFile(way.token_file)]
    if way.method == "auto":
        found: list[Credentials] = [Nobody()]
        file = TokenFile(way.token_file)
        if Path(file.path).is_file():
            found.append(file)
        told = secret()
        if told and way.user:
            found.append(Password(way.user, told))
        elif told:
            found.append(Cookie(told) if "=" in told.partition(".")[0] else Token(told))
        return found
    told = secret()
    if told is None:
        raise Refused(
            "No secret for this server is stored.",
            code="no-secret",
            hint=f"Put it into the keyring, a Kubernetes Secret, or the variable {SECRET}.",
        )
    if way.method == "password":
        return [Password(way.user, told)]
    return [Token(told) if way.method == "token" else Cookie(told)]


def way_from_environment() -> dict[str, str]:
    """What the variables of Kubeflow's own SDK say."""
    names = {"endpoint": "KF_PIPELINES_ENDPOINT", "ca_file": "KF_PIPELINES_SSL_SA_CERTS"}
    return {key: os.environ[name] for key, name in names.items() if os.environ.get(name)}
