"""Where a component of Elyra came from, in one line."""

from __future__ import annotations

import posixpath
from typing import Any

from ...errors import ConvectError
from ..document import parse_json
from ..plan import Json


def describe_source(value: Json) -> str | None:
    """A URL or a path where there is one, else the catalog and what it calls the component.

    Up to version 5 it is that text already, from version 6 on JSON in a text:
    `{"catalog_type": "url-catalog", "component_ref": {"url": "https://…"}}`.
    """
    content = _content(value)
    if content is None:
        return value if isinstance(value, str) else None
    reference = content.get("component_ref")
    if isinstance(reference, dict):
        texts = {key: item for key, item in reference.items() if isinstance(item, str)}
        if "url" in texts:
            return texts["url"]
        if "path" in texts:
            return posixpath.join(texts.get("base_dir", ""), texts["path"])
        reference = next(iter(texts.values()), None)
    parts = (content.get("catalog_type"), reference)
    return ":".join(part for part in parts if isinstance(part, str) and part) or None


def _content(value: Json) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return None
    try:
        content = parse_json(value)
    except ConvectError:
        return None
    return content if isinstance(content, dict) else None
