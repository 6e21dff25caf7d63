"""A view that is an overlay: milliseconds, whatever the size of the project."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import overlay
from .layers import Change, Layer, copy, find, layers_in, part_of, walk
from .view_spec import Outside, View, ViewSpec, is_below, is_same, live_in, move, remove

MOST_LAYERS = 40
MOST_READ_ONLY = 200
"""Files outside of the project, each of which takes a mount."""


class OverlayView(View):
    kind = "overlay"

    def __init__(self, spec: ViewSpec, folder: Path) -> None:
        """`folder` is where the private layers lie; nothing else is in it."""
        self.spec = spec
        self._folder = folder
        self._project = _Overlaid(
            spec.root,
            spec.layers,
            folder,
            is_open=spec.is_open,
            live=spec.live,
            private=spec.private,
        )
        self.written = self._project.upper
        folders = [each for each in spec.outside if each.path.is_dir()]
        shown = [each for each in folders if not _is_covered(each, folders)]
        self._outside = {
            each.name: _Overlaid(
                each.path,
                layers_in(spec.layers, each.name),
                folder / f"outside-{number}",
                live=live_in(each, spec),
            )
            for number, each in enumerate(shown)
        }
        for each in shown:
            inside = (other.path for other in shown if other.path != each.path)
            for path in (spec.root, *inside):
                if path.is_relative_to(each.path):
                    self._outside[each.name].mounted.add(path.relative_to(each.path).as_posix())
        if covered := [each.name for each in shown if layers_in(spec.layers, each.name)]:
            self._project.hide(covered)
        files = [each for each in spec.outside if not each.path.is_dir()]
        self.read_only = [each.path for each in files if not _is_covered(each, folders)]
        if len(self.read_only) > MOST_READ_ONLY:
            raise OSError(errno.E2BIG, "Too many links lead out of the project")
        self.order = {
            **self._project.order,
            "outside": [each.order for each in self._outside.values()],
            "read_only": [str(path) for path in self.read_only],
        }

    def path(self, path: Path) -> Path:
        return path

    def enter(self) -> None:
        overlay.enter()
        overlay.mount(self.order)
        overlay.drop_capabilities()

    def make_folder(self, path: Path) -> None:
        """Have a folder of the project in the view, whether it is there below or not; and have it
        written to there, also when it is read-only below."""
        relative = path.relative_to(self.spec.root)
        for part in (relative, *relative.parents):
            below = None if part == Path() else find(self.spec.lowers, part.as_posix())
            if part != Path() and (below is None or not os.access(below, os.W_OK)):
                (self._project.upper / relative).mkdir(parents=True, exist_ok=True)
                return

    def changes(self) -> Iterator[tuple[str, Change]]:
        yield from self._project.changes()
        for name, folder in self._outside.items():
            yield from ((f"{name}/{path}", change) for path, change in folder.changes())

    def take(self, path: str, target: Path) -> os.stat_result | None:
        name, inside = part_of(path, self._outside)
        folder = self._outside[name] if name else self._project
        return move(folder.upper / inside, target)

    def close(self) -> None:
        remove(self._folder)


class _Overlaid:
    """A folder with layers laid over it, and a private one on top."""

    def __init__(
        self,
        root: Path,
        layers: Sequence[Layer],
        folder: Path,
        *,
        is_open: bool = True,
        live: Iterable[str] = (),
        private: Iterable[str] = (),
    ) -> None:
        """`folder` is where the private layer lies; nothing else is in it."""
        self.root = root
        self.lowers = [*layers, Layer(root)] if is_open else list(layers)
        self.upper = folder / "upper"
        self._layers = layers
        self._folder = folder
        for name in ("upper", "work"):
            (folder / name).mkdir(parents=True)
        (folder / "work").chmod(0o700)
        self._opened = self.upper.stat().st_ctime_ns
        live = [path for path in live if (root / path).is_dir()]
        private = [path for path in private if (root / path).is_dir()]
        for path in () if is_open else (*live, *private):
            (self.upper / path).mkdir(parents=True, exist_ok=True)
        self.mounted = {*live, *private}
        folders = list(self._folders())
        holds_layers = any(each.is_relative_to(root) for each in folders)
        if is_open and not holds_layers:
            folders.append(root)
        self.order: dict[str, Any] = {
            "root": str(root),
            "lowers": [str(path) for path in folders] or [str(self._made("empty"))],
            "upper": str(self.upper),
            "work": str(folder / "work"),
            "live": live,
            "private": [(path, str(self._hidden(path))) for path in private],
        }
        if is_open and holds_layers:
            self.order["base"] = str(self._made("base/upper", "base/work", "base/root").parent)

    def hide(self, names: Iterable[str]) -> None:
        """Have names be what they are in the project, whatever earlier steps have made there."""
        folder = self._made("names")
        project = [each for each in self.lowers if each.linked or each.folder == self.root]
        for name in names:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            original = find(project, name)
            if original is None:
                overlay.make_whiteout(str(target))
            else:
                copy(original, target)
        self.order["lowers"].insert(0, str(folder))

    def changes(self) -> Iterator[tuple[str, Change]]:
        for path, status in walk(self.upper):
            if is_below(path, self.mounted):
                continue
            if overlay.is_whiteout(status):
                yield path, "deleted"
                continue
            below = find(self.lowers, path)
            if below is None:
                yield path, "created"
            elif not stat.S_ISDIR(status.st_mode):
                if not is_same(self.upper / path, below):
                    yield path, "changed"
            elif not below.is_dir() or below.is_symlink():
                yield path, "deleted"  # and a folder made in its place
            elif overlay.is_opaque(str(self.upper / path)) and self._is_old(below):
                yield from ((gone, "deleted") for gone in self._replaced(path))

    def _is_old(self, folder: Path) -> bool:
        """Whether a folder has been as it is since the view was opened: every folder that a step
        makes hides others of its name, also one that somebody moves there later."""
        return folder.stat().st_ctime_ns <= self._opened

    def _replaced(self, folder: str) -> Iterator[str]:
        """What lay in a folder that the step has removed and created again."""
        seen = {
            name
            for layer in self.lowers
            if (layer.folder / folder).is_dir()
            for name in os.listdir(layer.folder / folder)  # noqa: PTH208
        }
        for name in sorted(seen):
            path = f"{folder}/{name}"
            if not os.path.lexists(self.upper / path) and find(self.lowers, path):
                yield path

    def _folders(self) -> Iterator[Path]:
        layers = list(self._layers)
        if len(layers) > MOST_LAYERS:
            keep = MOST_LAYERS - 1
            layers = [*layers[:keep], _merged(layers[keep:], self._folder / "merged")]
        for number, layer in enumerate(layers):
            if layer.folder.is_dir():
                yield layer.folder
            if layer.deleted:
                yield self._whiteouts(layer, self._folder / f"deleted-{number}")

    def _whiteouts(self, layer: Layer, folder: Path) -> Path:
        folder.mkdir()
        for path in layer.deleted:
            with contextlib.suppress(OSError):  # it lies in a folder that is deleted as well
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                overlay.make_whiteout(str(folder / path))
        return folder

    def _hidden(self, path: str) -> Path:
        name = f"private-{len(path)}-{path.replace('/', '_')[:50]}"
        return self._made(f"{name}/upper", f"{name}/work").parent

    def _made(self, *names: str) -> Path:
        for name in names:
            (self._folder / name).mkdir(parents=True)
        return self._folder / names[-1]


def _merged(layers: Sequence[Layer], folder: Path) -> Layer:
    """Many layers as one, of hard links."""
    folder.mkdir()
    hidden: set[str] = set()
    for layer in layers:
        for path, status in walk(layer.folder):
            target = folder / path
            if os.path.lexists(target) or is_below(path, hidden):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if stat.S_ISDIR(status.st_mode):
                target.mkdir(exist_ok=True)
                continue
            try:
                os.link(layer.folder / path, target, follow_symlinks=False)
            except OSError:
                copy(layer.folder / path, target)
        hidden.update(layer.deleted)
    return Layer(folder, tuple(sorted(hidden)))


def _is_covered(each: Outside, folders: Iterable[Outside]) -> bool:
    """Whether another folder, of which the step has its own version, holds it."""
    return any(
        each.path.is_relative_to(other.path) and (each.path != other.path or each.name > other.name)
        for other in folders
        if other is not each
    )
