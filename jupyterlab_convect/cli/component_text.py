"""Components and catalogs as a terminal shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from ..catalog.entries import Entry, Shelf


def tell_shelf(shelf: Shelf) -> None:
    from ..catalog.model import placed

    good = [entry for entry in shelf.entries if entry.digest]
    if shelf.error:
        output.note(str(shelf.error["message"]))
    for entry in shelf.entries:
        if entry.error:
            output.note(placed(*(entry.error[key] for key in ("file", "line", "message"))))
            if entry.error.get("hint"):
                output.note(f"  {entry.error['hint']}")
    if good:
        names = ", ".join(entry.name for entry in good[:5]) + (", …" if len(good) > 5 else "")
        output.say(f"{len(good)} imported into the catalog {shelf.catalog.id}: {names}")
    else:
        output.note("Nothing was imported.")


def tell_component(shown: dict[str, Any]) -> None:
    output.say(output.paint(shown["name"], "bold"))
    for line in shown["description"].strip().splitlines():
        output.say(f"  {line}")
    facts = {"source": shown["source"], "digest": shown["digest"], "image": shown["image"]}
    output.say(output.table((name, value) for name, value in facts.items() if value))
    for title in ("inputs", "outputs"):
        if shown[title]:
            output.say()
            rows = [_end_row(end) for end in shown[title]]
            output.say(output.table(rows, (title, "type", "as", "", "description")))
    if shown["tasks"]:
        output.say()
        rows = [
            (task["name"], task["component"], ", ".join(task["after"])) for task in shown["tasks"]
        ]
        output.say(output.table(rows, ("tasks", "component", "after")))
    if shown["command"]:
        output.say()
        output.say("COMMAND")
        for word in shown["command"]:
            output.say(indented(word))
    for sentence in shown["unsupported"]:
        output.note(f"It cannot run here: {sentence}")
    if shown["update"]:
        output.note("There is a newer version: convect component update")


def first_line(entry: Entry) -> str:
    """What a list says of a component: its description, or why there is none."""
    if entry.error and not entry.digest:
        return str(entry.error["message"])
    return entry.description.partition("\n")[0][:80]


def indented(word: str) -> str:
    """A word of a command, which can be a whole program."""
    return "  " + word.rstrip("\n").replace("\n", "\n  ")


def _end_row(end: dict[str, Any]) -> tuple[str, ...]:
    if "required" not in end:
        notes = ""
    elif end["required"]:
        notes = "required"
    else:
        notes = "optional" if end["default"] is None else f"default {end['default']!r}"
    described = " ".join(end["description"].split())
    return (end["name"], end["type"], end["passed"], notes, described[:80])
