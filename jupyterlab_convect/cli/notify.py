"""`convect notify`: be told about runs and schedules, by mail or in a chat."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import ConvectError, Missing
from . import output
from .arguments import add_json, open_workspace

KINDS = ("mail", "webhook", "slack", "teams", "feishu", "dingtalk", "wecom")
EVENTS = ("success", "failure", "missed", "longer")


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("notify", help="get messages about runs, by mail or in a chat")
    verbs = parser.add_subparsers(dest="notify_verb", metavar="verb", required=True)

    adding = verbs.add_parser("add", help="make a notification")
    adding.add_argument("kind", choices=KINDS, help="mail, webhook, or the chat to write to")
    adding.add_argument("--name", help="what to call it")
    adding.add_argument(
        "--to", action="append", default=[], metavar="ADDRESS", help="recipient of a mail"
    )
    adding.add_argument("--url", help="where to send it, if that is not a secret")
    adding.add_argument("--secret", metavar="NAME/KEY", help="the secret that holds the address")
    adding.add_argument("--sign", metavar="NAME/KEY", help="the secret to sign messages with")
    adding.add_argument(
        "--on",
        action="append",
        default=[],
        choices=EVENTS,
        help="what to send messages about (failure)",
    )
    adding.add_argument(
        "--longer-than", metavar="DURATION", help="send messages about runs that take longer"
    )
    about = adding.add_mutually_exclusive_group()
    about.add_argument("--schedule", help="about a schedule: its id or its name")
    about.add_argument("--file", metavar="PATH", help="about runs of a file")
    about.add_argument("--run", metavar="RUN", help="about one run")
    add_json(adding)
    adding.set_defaults(handler=_add)

    listing = verbs.add_parser("list", help="list the notifications, and what was sent last")
    add_json(listing)
    listing.set_defaults(handler=_list)

    for verb, words, handler in (
        ("test", "send a message now", _test),
        ("remove", "delete a notification", _remove),
    ):
        each = verbs.add_parser(verb, help=words)
        each.add_argument("notification", help="its id, an end of it, or its name")
        each.set_defaults(handler=handler)


def _add(options: argparse.Namespace) -> int:
    from ..pipeline.quantities import duration

    workspace = open_workspace()
    schedule = options.schedule
    if schedule is not None:
        from .schedule import find_schedule

        schedule = find_schedule(workspace.scheduling, schedule)
    longer = None if options.longer_than is None else duration(options.longer_than)
    events = options.on or ([] if longer is not None else ["failure"])
    if longer is not None and "longer" not in events:
        events = [*events, "longer"]
    given = {
        "kind": options.kind,
        "name": options.name,
        "to": options.to,
        "url": options.url,
        "secret": options.secret,
        "sign": options.sign,
        "events": events,
        "longer": longer,
        "schedule": schedule,
        "path": options.file,
        "run": options.run,
    }
    made = workspace.notifier.add(given)
    if options.json:
        views = workspace.notifier.views()
        output.say_json(next(view for view in views if view["id"] == made))
    else:
        output.say(made)
        output.note(f"Try it with: convect notify test {made}")
    return 0


def _list(options: argparse.Namespace) -> int:
    found = open_workspace().notifier.views()
    if options.json:
        output.say_json({"notifications": found})
    elif not found:
        output.note("There are no notifications yet; “convect notify add” makes one.")
    else:
        rows = [
            [
                view["id"],
                view["name"],
                ", ".join(view["to"]) or view["url"] or view["secret"] or "",
                ", ".join(view["events"]),
                view["schedule"] or view["path"] or view["run"] or "all runs",
                _last(view["last"]),
            ]
            for view in found
        ]
        output.say(output.table(rows, ("id", "name", "to", "on", "about", "last")))
    return 0


def _last(last: dict[str, Any] | None) -> str:
    if last is None:
        return ""
    return "sent" if last["sent"] else f"not sent: {last['reason'] or 'not tried yet'}"


def _test(options: argparse.Namespace) -> int:
    notifier = open_workspace().notifier
    notifier.test(notifier.outbox.read(_meant(options.notification)))
    output.note("Sent.")
    return 0


def _remove(options: argparse.Namespace) -> int:
    open_workspace().notifier.outbox.remove(_meant(options.notification))
    return 0


def _meant(word: str) -> str:
    known = open_workspace().notifier.outbox.all()
    found = [each.id for each in known if word in (each.id, each.name)]
    found = found or [each.id for each in known if each.id.endswith(word)]
    if not found:
        raise Missing(
            f"There is no notification “{word}”.", hint="“convect notify list” shows them."
        )
    if len(found) > 1:
        raise ConvectError(f"“{word}” can mean {len(found)} notifications.", code="ambiguous")
    return found[0]
