"""A request for a run, as it comes over the network."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConvectError
from ..pipeline.plan import Json, from_json
from ..runs.model import Request
from .paths import inside


def request_of(body: dict[str, Json], root: Path, default_runtime: str = "local") -> Request:
    """The request in a checked body; its paths start from the server's root."""
    given = {key: value for key, value in body.items() if value is not None}
    path = inside(root, given["path"]) if "path" in given else None
    if path is None and "document" not in given:
        raise ConvectError("Say what to run: `path` or `document`.")
    given = {"runtime": default_runtime, **given, "path": path, "root": str(root)}
    return from_json(Request, given)
