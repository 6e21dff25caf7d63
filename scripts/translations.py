"""Keeps the translations complete: every message of the front end, and no other.

`update` writes the messages of `src/`, the sentences of the server that it translates, and
the words of the format's schema, which the property forms show, into each catalogue, empty
when they are new, and drops those that are gone. `check` fails when one is missing, empty or
left over, or when its placeholders differ.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "jupyterlab_convect" / "pipeline" / "schema.json"
SENTENCES = ROOT / "src" / "ui" / "sentences.json"
CATALOGUES = ROOT / "jupyterlab_convect" / "locale"
CONTEXT_END = "\x04"

CALL = re.compile(r"\b(?:[tT]rans(?:lator)?|useTrans\(\))\.(__|_n|_p|_np|n?p?gettext)\(\s*")
LITERAL = re.compile(r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\$]|\\.)*)`""")
SEPARATOR = re.compile(r"\s*,\s*")
PLACEHOLDER = re.compile(r"%\d")
PLURAL = {"_n", "_np", "ngettext", "npgettext"}
WITH_CONTEXT = {"_p", "_np", "pgettext", "npgettext"}


def messages(source: str) -> Iterator[tuple[str, int]]:
    """The keys under which JupyterLab looks up the messages of one file, and how many forms.

    JupyterLab takes a plural message only from a list of several forms, also in a
    language that has one form for all numbers.
    """
    for call in CALL.finditer(source):
        context = ""
        position = call.end()
        if call.group(1) in WITH_CONTEXT:
            found = LITERAL.match(source, position)
            if not found:
                continue
            context = text_of(found) + CONTEXT_END
            position = end_of(SEPARATOR.match(source, found.end()), found.end())
        found = LITERAL.match(source, position)
        if found:
            yield context + text_of(found), 2 if call.group(1) in PLURAL else 1


def text_of(literal: re.Match[str]) -> str:
    raw = next(group for group in literal.groups() if group is not None)
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), raw)


def end_of(match: re.Match[str] | None, otherwise: int) -> int:
    return match.end() if match else otherwise


def all_messages() -> dict[str, int]:
    """Every message with the number of its forms."""
    files = [path for path in (ROOT / "src").rglob("*.ts*") if "__tests__" not in path.parts]
    found = {message for path in files for message in messages(path.read_text("utf-8"))}
    found |= {(said, 1) for table in read(SENTENCES).values() for said in table}
    schema = read(SCHEMA)
    found |= {(word, 1) for word in (*schema["x-groups"].values(), *schema_words(schema))}
    both = {message for message, forms in found if forms > 1 and (message, 1) in found}
    if both:
        sys.exit(f"JupyterLab cannot have {sorted(both)} both with and without plural.")
    return dict(sorted(found))


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def schema_words(schema: object) -> Iterator[str]:
    """Every title and description in a JSON Schema; a property of that name is an object."""
    if isinstance(schema, dict):
        for key, item in schema.items():
            if key in ("title", "description") and isinstance(item, str):
                yield item
            else:
                yield from schema_words(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from schema_words(item)


def problems(name: str, catalogue: dict[str, list[str]], wanted: dict[str, int]) -> Iterator[str]:
    for message, forms in wanted.items():
        translations = catalogue.get(message)
        if not translations or not all(translations) or len(translations) != forms:
            yield f"{name}: {message!r} is not translated"
        elif any(placeholders(text) != placeholders(message) for text in translations):
            yield f"{name}: the placeholders of {message!r} differ"
    for message in sorted(set(catalogue) - set(wanted)):
        yield f"{name}: {message!r} is not used any more"


def placeholders(text: str) -> set[str]:
    return set(PLACEHOLDER.findall(text))


def one_a_line(catalogue: dict[str, object]) -> str:
    """JSON that shows each message as one line of a diff."""
    lines = (
        f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in catalogue.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    wanted = all_messages()
    found: list[str] = []
    for path in sorted(CATALOGUES.glob("*/LC_MESSAGES/*.json")):
        catalogue = read(path)
        header = catalogue.pop("")
        if sys.argv[1:] == ["update"]:
            catalogue = {
                message: (catalogue.get(message, [""]) * forms)[:forms]
                for message, forms in wanted.items()
            }
            path.write_text(one_a_line({"": header, **catalogue}), "utf-8")
        found += problems(path.parts[-3], catalogue, wanted)
    if found:
        print(*found, "Run scripts/translations.py update and fill in what is empty.", sep="\n")
        return 1
    print(f"{len(wanted)} messages, all translated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
