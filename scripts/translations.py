"""Keeps the translations complete: every message of the front end, and no other.

`update` writes the messages of `src/` into each catalogue, empty when they are new,
and drops those that are gone. `check` fails when one is missing, empty or left over,
or when its placeholders differ.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CATALOGUES = ROOT / "jupyterlab_convect" / "locale"
CONTEXT_END = "\x04"

CALL = re.compile(r"\b[tT]rans(?:lator)?\.(__|_n|_p|_np|n?p?gettext)\(\s*")
LITERAL = re.compile(r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\$]|\\.)*)`""")
SEPARATOR = re.compile(r"\s*,\s*")
PLACEHOLDER = re.compile(r"%\d")
PLURAL = {"_n", "_np", "ngettext", "npgettext"}
WITH_CONTEXT = {"_p", "_np", "pgettext", "npgettext"}


def messages(source: str) -> Iterator[str]:
    """The keys under which JupyterLab looks up the messages of one file."""
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
            yield context + text_of(found)


def text_of(literal: re.Match[str]) -> str:
    raw = next(group for group in literal.groups() if group is not None)
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), raw)


def end_of(match: re.Match[str] | None, otherwise: int) -> int:
    return match.end() if match else otherwise


def all_messages() -> list[str]:
    files = [path for path in (ROOT / "src").rglob("*.ts*") if "__tests__" not in path.parts]
    return sorted({message for path in files for message in messages(path.read_text("utf-8"))})


def problems(name: str, catalogue: dict[str, list[str]], wanted: list[str]) -> Iterator[str]:
    for message in wanted:
        translations = catalogue.get(message)
        if not translations or not all(translations):
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
        catalogue = json.loads(path.read_text("utf-8"))
        header = catalogue.pop("")
        if sys.argv[1:] == ["update"]:
            catalogue = {message: catalogue.get(message, [""]) for message in wanted}
            path.write_text(one_a_line({"": header, **catalogue}), "utf-8")
        found += problems(path.parts[-3], catalogue, wanted)
    if found:
        print(*found, "Run scripts/translations.py update and fill in what is empty.", sep="\n")
        return 1
    print(f"{len(wanted)} messages, all translated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
