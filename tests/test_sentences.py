"""What the front end translates is what the server says, and all that it says of runs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "jupyterlab_convect"
TRANSLATED = [ROOT / "src" / "ui" / name for name in ("sentences.ts", "answers.ts")]
MARKED = re.compile(r"trans\.__\(\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\s*\)")
LEAST, SHORT = 10, 12
"""Letters of its own that make a text more than a place for others, and a sentence worth it."""
PUT_IN = "(?:X| |and|more|failed|was|stopped|skipped|lost|installed|are)+"
"""What is put into a text here: what differs, and a few words."""

NOT_OF_RUNS = (
    # What the command line says, and what a component or a document is told while it is read:
    # the editor shows that beside the place in the text.
    "cli/", "pipeline/", "catalog/definition.py", "catalog/expand.py", "catalog/graph.py",
    "catalog/ir.py", "catalog/ir_container.py", "catalog/preview.py", "catalog/render.py",
    "catalog/text.py", "catalog/v1.py", "client.py",
    # What an administrator reads, in the configuration or in the log.
    "settings.py", "app.py", "pools.py", "runtimes/kubernetes/configured.py",
    "runtimes/kubernetes/overview.py", "runtimes/kubernetes/shares.py",
    "runtimes/kubernetes/site.py", "runtimes/kubernetes/shell.py", "runtimes/base.py",
    # The words of what a pod has sent, inside of a sentence that is translated.
    "runtimes/kubernetes/received.py", "runtimes/kubernetes/carrier.py",
    "runner/step.py",
)  # fmt: skip
LEFT = {
    # Made of parts that are put together elsewhere, or too short to be told from others.
    "There is X.", "X says why.", "The kernel X.", "The kernel XX.", "Skipped because X X.",
    "This step X.", "The only node X.", "There are: X.", "X X is outside the working folder.",
    "X runs on this machine as it is; X X for clusters and not used.",
    "It needs X; of the X that the quota X allows, X X left.",
    "The quota X wants every pod to have a X X.", "Waiting for the quota X: it X.",
    "The namespace allows a X of X X for a X.", "Its results could not be copied back.",
}  # fmt: skip


def sentences() -> list[str]:
    if not all(path.exists() for path in TRANSLATED):
        pytest.skip("the sources of the front end are not here")
    found = (MARKED.findall(path.read_text("utf-8")) for path in TRANSLATED)
    return [re.sub(r"\\(.)", r"\1", one or other) for each in found for one, other in each]


def said(folder: Path) -> list[re.Pattern[str]]:
    """Every text in the sources, as a pattern."""
    found = []
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [part.value if is_text(part) else None for part in parts]
            if sum(len(text) for text in texts if text) >= LEAST:
                pattern = "".join(re.escape(text) if text else PUT_IN for text in texts)
                found.append(re.compile(pattern))
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
    assert len(found) > 400
    texts = said(PACKAGE)
    unsaid = []
    for sentence in found:
        own = len(re.sub(r"%\d", "", sentence))
        sample = re.sub(r"%\d", "X X", sentence)
        # A sentence may be made of two texts: one of them is most of it.
        matches = (pattern.search(sample) for pattern in texts)
        longest = max((len(match[0]) for match in matches if match), default=0)
        if own >= SHORT and longest < 0.6 * len(sample):
            unsaid.append(sentence)
    assert unsaid == []


def test_every_sentence_about_runs_and_catalogs_is_translated():
    known = [
        re.compile(re.sub(r"%\d", ".+?", re.escape(sentence).replace(r"\%", "%")), re.DOTALL)
        for sentence in sentences()
    ]
    missing = {
        f"{place}: {text}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if not (place := file.relative_to(PACKAGE).as_posix()).startswith(NOT_OF_RUNS)
        for text in told(file)
        if text not in LEFT and not any(pattern.fullmatch(text) for pattern in known)
    }
    assert missing == set()
