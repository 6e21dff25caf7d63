"""Requests for runs, as they come in and go out over the network."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConvectError
from ..pipeline.plan import Json, from_json
from ..runs import environments
from ..runs.model import Request
from ..runs.store import Record, Store
from .paths import inside


def request_of(body: dict[str, Json], root: Path, default_runtime: str = "local") -> Request:
    """The request in a checked body; its paths start from the server's root."""
    given = {key: value for key, value in body.items() if value is not None}
    path = inside(root, given["path"]) if "path" in given else None
    if path is None and "document" not in given:
        raise ConvectError("Say what to run: `path` or `document`.")
    given = {"runtime": default_runtime, **given, "path": path, "root": str(root)}
    return from_json(Request, given)


def shown(store: Store, record: Record, root: Path) -> dict[str, Json]:
    """`RunView` whose `request` can be sent again as it is, to the server with this root."""
    view = environments.view(store, record)
    return {**view, "request": resendable(view["request"], root)}


def resendable(request: dict[str, Json], root: Path) -> dict[str, Json]:
    """A stored request, seen from the server's root."""
    sent = {key: item for key, item in request.items() if key not in ("root", "sweep")}
    if request.get("path") is not None:
        file = Path(request["root"], request["path"])
        if file.is_relative_to(root):
            sent["path"] = file.relative_to(root).as_posix()
    return sent
