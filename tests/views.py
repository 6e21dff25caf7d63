"""What views of a project this machine can make."""

from __future__ import annotations

from pathlib import Path

from jupyterlab_convect.runner.overlay_view import OverlayView
from jupyterlab_convect.runner.view import certain
from jupyterlab_convect.runner.view_spec import ViewSpec


def overlays_work(folder: Path) -> bool:
    spec = ViewSpec(folder, is_open=True, scratch=(folder.parent / "instead",))
    view = OverlayView(spec, folder.parent / "probe")
    taken = certain(view, folder)
    taken.close()
    return taken is view
