"""What the server says, in Chinese, where no page of JupyterLab translates it."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

CATALOG = Path(__file__).parent / "locale" / "zh_CN" / "LC_MESSAGES" / "jupyterlab_convect.json"


def in_chinese(sentence: str) -> str:
    """The same in Chinese; as it is where nobody has translated it."""
    for pattern, chinese in _patterns():
        if found := pattern.fullmatch(sentence):
            return re.sub(r"%(\d)", lambda part: found[f"p{part[1]}"], chinese)
    return sentence


@functools.cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    known = json.loads(CATALOG.read_text("utf-8"))
    pairs = [(english, said[0]) for english, said in known.items() if english and said[0]]
    pairs.sort(key=lambda pair: -len(re.sub(r"%\d", "", pair[0])))  # The most exact first.
    return [(_pattern(english), chinese) for english, chinese in pairs]


def _pattern(sentence: str) -> re.Pattern[str]:
    """`%1` may be anything; it is found as `p1`."""
    first, *others = re.split(r"%(\d)", sentence)
    found, seen = re.escape(first), set()
    for number, text in zip(others[::2], others[1::2], strict=True):
        found += f"(?P=p{number})" if number in seen else f"(?P<p{number}>.+)"
        found += re.escape(text)
        seen.add(number)
    return re.compile(found, re.DOTALL)
