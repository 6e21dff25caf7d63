"""What the front end translates is what the server says."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TRANSLATED = ROOT / "src" / "ui" / "sentences.ts"
LEAST, SHORT = 10, 12
"""Letters of its own that make a text more than a place for others, and a sentence worth it."""
PUT_IN = "(?:X| |and|more|failed|was|stopped|skipped|lost|installed|are)+"
"""What is put into a text here: what differs, and a few words."""


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


def test_every_translated_sentence_is_one_that_is_said():
    if not TRANSLATED.exists():
        pytest.skip("the sources of the front end are not here")
    sentences = re.findall(r"trans\.__\('(.+?)'\)", TRANSLATED.read_text())
    assert len(sentences) > 40
    texts = said(ROOT / "jupyterlab_convect")
    unsaid = []
    for sentence in sentences:
        own = len(re.sub(r"%\d", "", sentence))
        sample = re.sub(r"%\d", "X X", sentence)
        # A sentence may be made of two texts: one of them is most of it.
        found = (pattern.search(sample) for pattern in texts)
        longest = max((len(match[0]) for match in found if match), default=0)
        if own >= SHORT and longest < 0.6 * len(sample):
            unsaid.append(sentence)
    assert unsaid == []
