"""What a notification is: where messages go, and what about."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from ..errors import ConvectError
from ..pipeline.plan import Json, Secret

NotificationEvent = Literal["success", "failure", "missed", "longer"]
Kind = Literal["mail", "webhook", "slack", "teams", "feishu", "dingtalk", "wecom"]

EVENTS: tuple[NotificationEvent, ...] = ("success", "failure", "missed", "longer")
KINDS: tuple[Kind, ...] = ("mail", "webhook", "slack", "teams", "feishu", "dingtalk", "wecom")
LONGEST_NAME, MOST_RECIPIENTS = 200, 50
_ADDRESS = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+")
_REFERENCE = re.compile(r"[^/\s]+/[^/\s]+")


@dataclass(frozen=True, slots=True)
class Notification:
    """The content of `<id>.json`. Without `schedule`, `path` and `run` it is about all runs."""

    id: str
    name: str
    created: float
    kind: Kind
    events: tuple[NotificationEvent, ...] = ("failure",)
    to: tuple[str, ...] = ()
    """The addresses of a mail."""
    url: str | None = None
    """Where else messages are sent, if that is no secret."""
    secret: str | None = None
    """Which secret holds that address, as `name/key`."""
    sign: str | None = None
    """Which secret messages are signed with, as `name/key`."""
    longer: float | None = None
    """Seconds after which a run that goes on is told about."""
    schedule: str | None = None
    path: str | None = None
    """A notebook, script or pipeline, relative to the root of its requests."""
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What is told, before it has the shape that its receiver takes."""

    event: str
    title: str
    text: str
    lines: tuple[str, ...] = ()
    """The last of the log."""
    link: str | None = None
    facts: dict[str, Json] = field(default_factory=dict)
    """The same for programs: `run`, `schedule`, `state` and their like."""


def check_notification(given: Notification) -> None:
    """ConvectError for the first thing that is wrong with it."""
    if not given.name.strip() or len(given.name) > LONGEST_NAME:
        raise _wrong(f"The name of a notification must have 1 to {LONGEST_NAME} characters.")
    if given.kind not in KINDS:
        raise _wrong(f"{given.kind!r} is not a kind of notification.", ", ".join(KINDS))
    if not given.events or any(event not in EVENTS for event in given.events):
        raise _wrong(
            "Choose at least one event to send messages about.",
            f"It is one of {', '.join(EVENTS)}.",
        )
    if "longer" in given.events and not (given.longer and given.longer > 0):
        raise _wrong("Specify how long a run may take before a message is sent.")
    if sum(each is not None for each in (given.schedule, given.path, given.run)) > 1:
        raise _wrong("A notification is about a schedule, a file, a run, or all runs.")
    if given.kind == "mail":
        _check_mail(given)
    else:
        _check_address(given)
    for reference in (given.secret, given.sign):
        if reference is not None and not _REFERENCE.fullmatch(reference):
            raise _wrong(
                f"“{reference[:80]}” does not name a secret.", "Write its name and key: slack/url."
            )


def _check_mail(given: Notification) -> None:
    if not 1 <= len(given.to) <= MOST_RECIPIENTS:
        raise _wrong(f"A mail goes to 1 to {MOST_RECIPIENTS} addresses.")
    for address in given.to:
        if not _ADDRESS.fullmatch(address):
            raise _wrong(f"“{address[:80]}” is not a mail address.")


def _check_address(given: Notification) -> None:
    if (given.url is None) == (given.secret is None):
        raise _wrong(
            "Specify where to send it: a URL, or the secret that contains it.",
            "The address of a chat is a secret itself: whoever knows it can write there.",
        )
    if given.url is not None:
        check_url(given.url)


def check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_good = False
    if not is_good or re.search(r"\s", url):
        raise _wrong("The address of a webhook begins with https:// or http://.")


def secret_of(reference: str) -> Secret:
    name, _, key = reference.partition("/")
    return Secret("", name, key)


def _wrong(sentence: str, hint: str | None = None) -> ConvectError:
    return ConvectError(sentence, code="bad-notification", hint=hint)
