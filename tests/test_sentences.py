"""What the front end translates is what the server says, and all that it says."""

import ast
import json
import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "jupyterlab_convect"
TRANSLATED = ROOT / "src" / "ui" / "sentences.json"
HOW = "Add what is missing to src/ui/sentences.json, then run scripts/translations.py update."
LEAST, SHORT, MOST = 9, 12, 0.5
"""Letters of its own that make a text more than a place for others; those that make a sentence
worth a look; and how much of a sentence one text of the sources has."""

TERMINAL = "cli/"
"""What it says is read in a terminal and nowhere else."""
LIVE = ("waiting", "queued", "starting", "running")
KINDS = ("notebook", "script")
NAMED = ("priority class", "service account", "storage class", "volume claim", "pull secret")
COMPOSED = {
    said.replace("{}", "X"): [said.replace("{}", word) for word in words]
    for said, *words in (
        ("A {} of this Elyra pipeline has no id.", "node", "pipeline"),
        ("A kernel has no effect on a {}.", "script", "command", "component", "group", "pipeline"),
        ("Skipped because “X” {}.", "failed", "was stopped", "was skipped", "was lost"),
        ("The namespace allows a {} of X X for a X.", "maximum", "minimum"),
        ("The run X is {}.", *LIVE),
        ("The run X is still {}.", *LIVE),
        ("The sweep X is still {}.", *LIVE),
        ("This is not an Elyra pipeline: {}.", "it is already a Convect pipeline", "it has no X"),
        ("Two {}s are called “X”.", "input", "output"),
        ("{} X is outside the working folder.", "Input", "Declared output"),
        ("“X” cannot be the name of a {}.", *NAMED),
    )
} | {"“X” is a X, not a X.": [f"“X” is a {a}, not a {b}." for a, b in permutations(KINDS, 2)]}
"""Sentences that a word is put into, with each of the words: they are translated as a whole."""
OTHERWISE = re.compile(
    r"(expecting|illegal trailing comma|invalid control character|unterminated string)\b.*"
    r"|%1 do not .*"
    r"|“%1” was lost: %2"
    r"|Your session has ended\.|Log in again in another tab .*"
)
"""Words of Python's reader of JSON; plurals that are made of singulars;
an ending with its reason; words of the client."""


def sentences() -> list[str]:
    if not TRANSLATED.exists():
        pytest.skip("the sources of the front end are not here")
    tables = json.loads(TRANSLATED.read_text("utf-8"))
    del tables["components"]
    return [said for table in tables.values() for said in table]


def said(folder: Path) -> list[tuple[int, re.Pattern[str]]]:
    """Every text in the sources, as a pattern, with the number of its letters."""
    found = []
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [part.value if is_text(part) else None for part in parts]
            letters = sum(len(text) for text in texts if text)
            if letters >= LEAST:
                pattern = "".join(re.escape(text) if text else ".+" for text in texts)
                found.append((letters, re.compile(pattern, re.IGNORECASE)))
    return found


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def told(file: Path) -> Iterator[str]:
    """The sentences in a source that are neither explanations nor meant for the log."""
    tree = ast.parse(file.read_bytes())
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            passed.add(id(node.value))  # a docstring
        elif isinstance(node, ast.JoinedStr):
            passed |= set(map(id, node.values))
        elif isinstance(node, ast.Call):
            passed |= {id(given) for given in node.args if _is_for_the_log(node)}
            for each in (word for word in node.keywords if word.arg == "help"):
                passed |= set(map(id, ast.walk(each.value)))
            for each in node.args:
                if isinstance(each, ast.JoinedStr) and _is_for_the_log(node):
                    passed.add(id(each))
    for node in ast.walk(tree):
        if id(node) in passed or not (is_text(node) or isinstance(node, ast.JoinedStr)):
            continue
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(part.value if is_text(part) else "X" for part in parts)
        if re.fullmatch(r"[A-Z“`][^\n]* [^\n]* [^\n]*\.", text):
            yield text


def _is_for_the_log(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name in ("debug", "info", "warning", "exception", "complain")


def test_every_translated_sentence_is_one_that_is_said():
    found = sentences()
    assert len(found) > 900
    texts = said(PACKAGE)
    unsaid = []
    for sentence in found:
        own = len(re.sub(r"%\d", "", sentence))
        sample = re.sub(r"%\d", "X X", sentence)
        # A sentence may be made of several texts: one of them is much of it.
        most = max((letters for letters, text in texts if text.search(sample)), default=0)
        if own >= SHORT and most < MOST * own and not OTHERWISE.fullmatch(sentence):
            unsaid.append(sentence)
    assert unsaid == []


def test_the_words_of_the_components_are_translated():
    if not TRANSLATED.exists():
        pytest.skip("the sources of the front end are not here")
    words: set[str] = set()
    for file in (PACKAGE / "catalog" / "components").glob("*.yaml"):
        component = yaml.safe_load(file.read_text("utf-8"))
        category = component["metadata"]["annotations"]["category"]
        ends = [*component["inputs"], *component["outputs"]]
        words |= {component["name"], component["description"].strip(), category}
        words |= {end["description"] for end in ends}
    assert json.loads(TRANSLATED.read_text("utf-8"))["components"] == sorted(words), HOW


def test_every_sentence_is_translated():
    known = [
        re.compile(re.sub(r"%\d", ".+?", re.escape(sentence).replace(r"\%", "%")), re.DOTALL)
        for sentence in sentences()
    ]
    missing = {
        f"{place}: {text}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if not (place := file.relative_to(PACKAGE).as_posix()).startswith(TERMINAL)
        for pattern in told(file)
        for text in COMPOSED.get(pattern, [pattern])
        if not any(sentence.fullmatch(text) for sentence in known)
    }
    assert missing == set(), HOW
