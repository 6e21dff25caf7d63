"""`convect component`: import, look at, update, approve and run components."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError
from ..text import some_of
from . import output
from .arguments import add_json, add_root, open_workspace, split, typed

if TYPE_CHECKING:
    from ..catalog.entries import CatalogEntry, Shelf
    from ..catalog.model import Component
    from ..catalog.sources import Catalog
    from ..catalog.store import CatalogStore


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("component", help="import, list and show components")
    verbs = parser.add_subparsers(dest="component_verb", metavar="verb", required=True)
    _add_import(verbs)
    _add_looking(verbs)
    _add_changing(verbs)
    _add_running(verbs)


def _add_import(verbs: Any) -> None:
    new = verbs.add_parser(
        "add",
        help="import components from addresses, a file or a folder",
        epilog="A file or an address can also be a list of addresses. Exit codes: 0 something "
        "was imported, 1 nothing was.",
    )
    new.add_argument("source", nargs="+", metavar="URL|FILE|FOLDER", help="where they are")
    new.add_argument("--name", help="what to call the catalog (the last part of the source)")
    new.add_argument(
        "--category", action="append", default=[], help="a category for all of them (repeatable)"
    )
    new.add_argument(
        "--token-env", metavar="VARIABLE", help="the environment variable that holds a token"
    )
    new.add_argument(
        "--replace",
        action="append",
        default=[],
        metavar="URL=URL",
        help="read another address instead of a dead reference in a graph (repeatable)",
    )
    new.add_argument(
        "--refresh",
        metavar="TIME",
        help="look for changes this often while a server runs: 1h, 1d (only when asked)",
    )
    add_json(new)
    new.set_defaults(handler=_add)


def _add_looking(verbs: Any) -> None:
    listing = verbs.add_parser("list", help="list components, or catalogs")
    listing.add_argument("text", nargs="*", help="words in the name, description or inputs")
    listing.add_argument("--catalog", metavar="ID", help="of this catalog only")
    listing.add_argument("--category", help="of this category only")
    listing.add_argument("--catalogs", action="store_true", help="list the catalogs instead")
    add_json(listing)
    listing.set_defaults(handler=_list)

    show = verbs.add_parser("show", help="show inputs, outputs, image and command")
    show.add_argument("name", help="a name, a digest or the beginning of one")
    show.add_argument("--text", action="store_true", help="the text as it was imported")
    add_json(show)
    show.set_defaults(handler=_show)

    check = verbs.add_parser("check", help="check components without importing them")
    check.add_argument("source", nargs="+", metavar="URL|FILE|FOLDER", help="what to check")
    add_json(check)
    check.set_defaults(handler=_check)


def _add_changing(verbs: Any) -> None:
    update = verbs.add_parser("update", help="look for newer versions, show what changes")
    update.add_argument("catalog", nargs="?", metavar="ID", help="this catalog only")
    update.add_argument("--take", action="store_true", help="pin the newer versions")
    add_json(update)
    update.set_defaults(handler=_update)

    remove = verbs.add_parser("remove", help="remove a catalog; pipelines keep what they use")
    remove.add_argument("catalog", metavar="ID", help="the catalog")
    add_json(remove)
    remove.set_defaults(handler=_remove)

    approve = verbs.add_parser(
        "approve", help="let a component run on this machine without a container"
    )
    approve.add_argument("name", help="a name, a digest or the beginning of one")
    approve.add_argument("--yes", action="store_true", help="do not ask")
    approve.add_argument("--withdraw", action="store_true", help="withdraw the approval")
    add_json(approve)
    approve.set_defaults(handler=_approve)


def _add_running(verbs: Any) -> None:
    run = verbs.add_parser("run", help="run one component")
    run.add_argument("name", help="a name, a digest or the beginning of one")
    run.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an input; a file with NAME=@PATH (repeatable)",
    )
    run.add_argument("--runtime", help="where to run (local)")
    run.add_argument("--follow", action="store_true", help="also print what it prints")
    add_root(run)
    add_json(run)
    run.set_defaults(handler=_run)


def _add(options: argparse.Namespace) -> int:
    store = open_workspace().catalog
    shelf = store.catalog(store.add(_catalog_for(options, store)).catalog.id)
    shelf = _refresh(store, shelf.catalog.id)
    if shelf.error or not any(entry.digest for entry in shelf.entries):
        store.remove(shelf.catalog.id)
    if options.json:
        output.say_json(_shelf_json(shelf))
    else:
        tell_shelf(shelf)
    return 0 if any(entry.digest for entry in shelf.entries) else 1


def _catalog_for(options: argparse.Namespace, store: CatalogStore) -> Catalog:
    from ..catalog.entries import new_catalog_id
    from ..catalog.read import name_from
    from ..catalog.sources import Auth, Catalog
    from ..pipeline.quantities import duration

    sources: list[str] = options.source
    web = [source for source in sources if "://" in source]
    if web and len(web) < len(sources):
        raise ConvectError("Give either addresses or one file or folder.")
    if not web and len(sources) > 1:
        raise ConvectError("Give one file or folder; a folder can hold many components.")
    path = None if web else Path(sources[0]).absolute()
    if path is not None and not os.path.exists(path):  # noqa: PTH110 false for impossible names
        raise ConvectError(f"There is no file or folder “{sources[0]}”.")
    name = options.name or name_from(sources[0])
    taken = (shelf.catalog.id for shelf in store.catalogs())
    return Catalog(
        id=new_catalog_id(name, taken),
        name=name,
        kind="url" if path is None else "folder" if path.is_dir() else "file",
        urls=tuple(web),
        path=None if path is None else str(path),
        categories=tuple(options.category),
        auth=Auth(env=options.token_env) if options.token_env else None,
        replacements=dict(map(split, options.replace)),
        refresh=duration(options.refresh) if options.refresh else None,
    )


def _refresh(store: CatalogStore, catalog_id: str) -> Shelf:
    """Refresh with the number of components read so far on the terminal."""
    from concurrent.futures import ThreadPoolExecutor, wait

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(store.refresh, catalog_id)
        while sys.stderr.isatty() and not wait([future], timeout=0.2).done:
            progress = store.progress.get(catalog_id)
            if progress:
                sys.stderr.write(f"\r{progress.done} of {progress.total}\x1b[K")
                sys.stderr.flush()
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
        return future.result()


def _list(options: argparse.Namespace) -> int:
    store = open_workspace().catalog
    if options.catalogs:
        return _list_catalogs(store, options.json)
    entries = store.entries(" ".join(options.text), options.catalog, options.category)
    if options.json:
        output.say_json([asdict(entry) for entry in entries])
        return 0
    rows = [
        (
            entry.name,
            entry.digest[7:19] if entry.digest else output.paint("broken", "red"),
            entry.catalog,
            first_line(entry),
        )
        for entry in entries
    ]
    if rows:
        output.say(output.table(rows, ("name", "digest", "catalog", "description")))
    else:
        asked = options.text or options.catalog or options.category
        output.note(
            "No component matches."
            if asked
            else "There is none. Import some with: convect component add URL"
        )
    return 0


def _list_catalogs(store: CatalogStore, as_json: bool) -> int:
    shelves = store.catalogs()
    if as_json:
        output.say_json([_shelf_json(shelf) for shelf in shelves])
        return 0
    rows = [
        (
            shelf.catalog.id,
            shelf.catalog.kind,
            str(sum(bool(entry.digest) for entry in shelf.entries)),
            str(sum(entry.error is not None for entry in shelf.entries)),
            shelf.catalog.name,
        )
        for shelf in shelves
    ]
    output.say(output.table(rows, ("id", "kind", "components", "errors", "name")))
    return 0


def _show(options: argparse.Namespace) -> int:
    from ..catalog.model import preview

    store = open_workspace().catalog
    entry = store.find(options.name)
    if options.text:
        sys.stdout.write(store.text(entry.digest))
        return 0
    component = store.component(entry.digest)
    shown = preview(component) | {
        "catalog": entry.catalog,
        "update": entry.update,
        "approved": store.approvals.has(component),
    }
    if options.json:
        output.say_json(shown)
    else:
        tell_component(shown)
    return 0


def _check(options: argparse.Namespace) -> int:
    from ..catalog.fetch import Fetcher
    from ..catalog.model import UnreadableComponent
    from ..catalog.read import read
    from ..catalog.sources import Catalog, reader, source_of

    fetcher = Fetcher(open_workspace().catalog.policy)
    good: list[Component] = []
    errors: list[UnreadableComponent] = []
    for source in options.source:
        kind = "url" if "://" in source else "folder"
        catalog = Catalog(
            id="check",
            name=source,
            kind=kind,
            urls=(source,) if kind == "url" else (),
            path=None if kind == "url" else str(Path(source).absolute()),
        )
        for text in source_of(kind)(catalog, fetcher):
            if isinstance(text, UnreadableComponent):
                errors.append(text)
                continue
            reading = read(text.data, text.source, fetch=reader(catalog, fetcher))
            good += reading.components
            errors += reading.errors
    if options.json:
        output.say_json(
            {
                "components": [{"name": item.name, "digest": item.digest} for item in good],
                "errors": [error.to_json() for error in errors],
            }
        )
    else:
        for error in errors:
            output.fail(error)
        names = some_of([item.name for item in good], 5)
        output.say(f"{len(good)} good{': ' + names if good else ''}; {len(errors)} bad.")
    return 2 if errors or not good else 0


def _update(options: argparse.Namespace) -> int:
    store = open_workspace().catalog
    names = [options.catalog] if options.catalog else [s.catalog.id for s in store.catalogs()]
    answer = []
    for name in names:
        shelf = _refresh(store, store.catalog(name).catalog.id)
        updates = [entry for entry in shelf.entries if entry.update]
        for entry in updates:
            difference = store.difference(entry.digest, entry.update or "")
            answer.append({**asdict(entry), "difference": difference})
            if not options.json:
                output.say(output.paint(f"{entry.catalog}/{entry.name}", "bold"))
                sys.stdout.write(difference)
        if options.take and updates:
            store.take(name)
        if shelf.error and not options.json:
            output.note(f"{name}: {shelf.error['message']}")
    if options.json:
        output.say_json(answer)
    elif not answer:
        output.say("Everything is up to date.")
    else:
        output.say(
            f"{len(answer)} updated."
            if options.take
            else f"{len(answer)} can be updated: convect component update --take"
        )
    return 0


def _remove(options: argparse.Namespace) -> int:
    open_workspace().catalog.remove(options.catalog)
    if options.json:
        output.say_json({"removed": options.catalog})
    else:
        output.say(f"Removed catalog {options.catalog}; pipelines keep the components they use.")
    return 0


def _approve(options: argparse.Namespace) -> int:
    from ..catalog.model import command_words, containers
    from ..planning import system_user

    store = open_workspace().catalog
    component = store.component(store.find(options.name).digest)
    if options.withdraw:
        store.approvals.withdraw(component)
    else:
        if not options.yes:
            for part in containers(component):
                assert part.container is not None
                output.note(output.paint(f"{part.name}:", "bold", sys.stderr))
                for word in command_words([*part.container.command, *part.container.args]):
                    output.note(indented(word))
            _ask("Allow this to run on this machine, with your rights? [y/N] ")
        store.approvals.give(component, system_user())
    state = "no longer approved" if options.withdraw else "approved"
    if options.json:
        output.say_json({"digest": component.digest, "approved": not options.withdraw})
    else:
        output.say(f"{component.name} is {state}.")
    return 0


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise ConvectError("There is no terminal to ask on.", hint="Look at it, then pass --yes.")
    sys.stderr.write(question)
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConvectError("Nothing was approved.")


def _run(options: argparse.Namespace) -> int:
    from ..pipeline.plan import to_json
    from ..runs.model import Request
    from .following import follow_run

    workspace = open_workspace()
    component = workspace.catalog.component(workspace.catalog.find(options.name).digest)
    root = (options.root or Path.cwd()).absolute()
    inputs = {
        name: _input_value(component, name, text, root) for name, text in map(split, options.input)
    }
    node = re.sub(r"\W+", "-", component.name).strip("-").lower()[:63] or "component"
    document = {
        "convect": 1,
        "name": component.name,
        "nodes": {node: {"kind": "component", "component": component.digest, "inputs": inputs}},
        "components": {component.digest: to_json(component)},
    }
    request = Request(
        root=str(root),
        document=document,
        runtime=options.runtime or workspace.settings.default_runtime,
    )
    return asyncio.run(follow_run(workspace, request, options.follow, options.json))


def _input_value(component: Component, name: str, text: str, root: Path) -> Any:
    """An input as it is typed: a file, text as it is, or a value of the declared type."""
    from ..pipeline.component_types import json_type, value_kind

    end = component.input(name)
    if end is None:
        known = ", ".join(item.name for item in component.inputs) or "none"
        raise ConvectError(
            f"“{component.name}” has no input “{name}”.", hint=f"Its inputs: {known}."
        )
    if text.startswith("@"):
        path = (Path.cwd() / text[1:]).resolve()
        if not path.is_relative_to(root.resolve()):
            raise ConvectError(f"“{path}” is not inside “{root}”.", hint="Choose another --root.")
        return {"file": path.relative_to(root.resolve()).as_posix()}
    return typed(name, text, json_type(end.type)) if value_kind(end.type) else text


def _shelf_json(shelf: Shelf) -> dict[str, Any]:
    from ..pipeline.plan import to_json

    return {
        **to_json(shelf.catalog),
        "error": shelf.error,
        "components": [asdict(entry) for entry in shelf.entries],
    }


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
        names = some_of([entry.name for entry in good], 5)
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
    for task in shown["tasks"]:
        if task["replaces"]:
            output.note(
                f"{task['name']} was read from {task['source']} instead of {task['replaces']}; "
                "its digest was not checked."
            )
    for sentence in shown["unsupported"]:
        output.note(f"It cannot run here: {sentence}")
    if shown["update"]:
        output.note("There is a newer version: convect component update")


def first_line(entry: CatalogEntry) -> str:
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
