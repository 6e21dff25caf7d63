"""The folder a step works in: the project as it was at submit, what earlier steps made, and
a private layer for what this one writes.

An overlay where the system allows one; else a mirror, a copy with links to what is large,
whose originals are write-protected. Either way the runner stays outside.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .layers import Change, Made, digest_file, is_ignored
from .mirror_view import MirrorView, TooLarge
from .outcome import StepFailed
from .overlay_view import OverlayView
from .view_spec import View, ViewSpec, remove


class Plain(View):
    """No view: the step works in the folder itself, with everybody else."""

    kind = "shared"

    def path(self, path: Path) -> Path:
        return path

    def enter(self) -> None:
        pass

    def changes(self) -> Iterator[tuple[str, Change]]:
        return iter(())

    def take(self, path: str, target: Path) -> os.stat_result | None:
        raise NotImplementedError

    def close(self) -> None:
        pass


class TurnView(Plain):
    """The project folder itself, for one run at a time: it is too large to be copied."""

    kind = "turns"


def open_view(spec: ViewSpec | None, folder: Path | None = None, *, overlays: bool = True) -> View:
    """The best view that this system may allow, with `folder` of the project in it.

    Whether an overlay can be entered is only known when somebody does: see `certain`.
    """
    if spec is None:
        return Plain()
    if overlays and sys.platform == "linux":
        with contextlib.suppress(OSError):
            view = OverlayView(spec, _scratch(spec))
            view.make_folder(folder or spec.root)
            return view
    return _mirror(spec, folder)


def certain(view: View, folder: Path) -> View:
    """The view, or the one to take instead when it cannot be entered here: a child tries."""
    return view if not isinstance(view, OverlayView) or _works(view) else without(view, folder)


def without(view: OverlayView, folder: Path) -> View:
    """The view to take instead of an overlay."""
    view.close()
    return _mirror(view.spec, folder)


def _mirror(spec: ViewSpec, folder: Path | None) -> View:
    scratch = _scratch(spec)
    scratch.rmdir()
    try:
        view = MirrorView(spec, scratch)
    except OSError as error:
        raise StepFailed(f"The folder {spec.root} cannot be copied: {error.strerror}.") from error
    except TooLarge:
        remove(scratch)
        return TurnView()
    view.make_folder(folder or spec.root)
    return view


def keep_made(view: View, folder: Path) -> list[Made]:
    """Move what the step made below `folder`, and say what it was."""
    made = []
    for path, change in list(view.changes()):
        if is_ignored(path):
            continue
        if change == "deleted":
            made.append(Made(path, change))
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        status = view.take(path, target)
        if status is not None:
            digest = digest_file(target) if stat.S_ISREG(status.st_mode) else None
            made.append(Made(path, change, status.st_size, digest, status.st_mode))
    return made


def inside(view: View, work: Callable[[], Any]) -> Any:
    """The result of `work`, which must be JSON, done by a child that sees the view."""
    if isinstance(view, Plain | MirrorView):
        return work()
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ours)
        try:
            view.enter()
            answer = {"result": work()}
        except StepFailed as failure:
            answer = {"failed": [failure.reason, failure.error]}
        except BaseException as error:
            answer = {"failed": [f"{type(error).__name__}: {error}", None]}
        with os.fdopen(theirs, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    answer = json.loads(text or '{"failed": ["The view of the folder cannot be opened.", null]}')
    if "failed" in answer:
        raise StepFailed(*answer["failed"])
    return answer["result"]


def _works(view: OverlayView) -> bool:
    """Whether it can be entered: a child tries."""
    pid = os.fork()
    if not pid:
        try:
            view.enter()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _scratch(spec: ViewSpec) -> Path:
    """A new folder for the private layer: where whoever started the runner says, or `step.json`."""
    given = os.environ.get("CONVECT_SCRATCH")
    for folder in ([Path(given, "view")] if given else []) + list(spec.scratch):
        with contextlib.suppress(OSError):
            remove(folder)
            folder.mkdir(mode=0o700, parents=True)
            return folder
    raise StepFailed("There is no folder in which the step could keep what it writes.")
