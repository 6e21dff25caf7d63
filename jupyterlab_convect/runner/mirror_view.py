"""A view that is a copy, where the system allows no overlay."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from ..filesystems import private_folder
from . import landlock
from .layers import SPARES, Change, FileKey, Layer, copy, find, layers_in, part_of, walk
from .view_spec import Outside, View, ViewSpec, is_below, is_same, live_in, move, remove, remove_one

LARGE = 1 << 20
"""Bytes from which a mirror has a link instead of a copy."""
MOST_BYTES = 256 << 20
MOST_BESIDE, MOST_BYTES_BESIDE = 500, 32 << 20
"""Of one folder outside of the project; what is larger can only be read."""
MOST_SPARES = 4
"""Copies of one project that wait for the next step."""
KNOWN = "known.json"


class MirrorView(View):
    """A copy of the project, with links to what is large.

    A copy of the project as it was at submit is kept for the next step that needs the same.
    """

    kind = "mirror"

    def __init__(self, spec: ViewSpec, folder: Path) -> None:
        self.spec = spec
        self._folder = folder
        self._around = next((each for each in spec.outside if not each.is_link), None)
        self._files = folder / "mirror"
        if self._around is not None:
            self._files /= spec.root.relative_to(self._around.path)
        self.written = self._files
        self._mounted = {*spec.live, *spec.private}
        self._live = [spec.root / path for path in spec.live]
        self.read_only: list[Path] = []
        self._known: dict[str, FileKey] = {}
        """What lay in the mirror before the step began."""
        self._bytes = 0
        base = spec.lowers[-1:]
        self._base = base[0] if base and base[0].linked is not None else None
        if not self._take_spare():
            self._files.mkdir(parents=True)
            for layer in base:
                self._add(layer)
        self._plain = dict(self._known)
        """What of it a spare would have as well."""
        for layer in reversed(spec.lowers[:-1]):
            self._cover(layer, except_for={each.name for each in spec.outside})
        for path in (*spec.live, *spec.private):
            target = self._files / path
            if (spec.root / path).is_dir() and not os.path.lexists(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(spec.root / path)
        for each in spec.outside:
            self._add_outside(each)
        if self.read_only and landlock.version() < 1:
            raise TooLarge
        around = [] if self._around is None else [self._around.path]
        protected = (spec.root, *spec.protected, *around, *self.read_only)
        self.guard = (
            [str(path) for path in protected],
            [str(path) for path in (*spec.writable, folder, *self._live)],
        )

    def path(self, path: Path) -> Path:
        if path == self.spec.root or path.is_relative_to(self.spec.root):
            return self._files / path.relative_to(self.spec.root)
        return path

    def enter(self) -> None:
        protected, except_for = self.guard
        landlock.protect(map(Path, protected), map(Path, except_for))

    def make_folder(self, path: Path) -> None:
        self.path(path).mkdir(parents=True, exist_ok=True)

    def changes(self) -> Iterator[tuple[str, Change]]:
        seen = set()
        for path, status in self._walk():
            if path in self._mounted:
                continue
            seen.add(path)
            before = self._known.get(path)
            if before is None:
                yield path, "created"
            elif not stat.S_ISDIR(status.st_mode) and FileKey.of(status) != before:
                below = self._find(path)
                if below is None or not is_same(self._at(path), below):
                    yield path, "changed"
        gone = self._known.keys() - seen
        for path in sorted(gone):
            # What is in a folder that cannot be listed was not seen, and is not gone.
            if _parent(path) not in gone and _is_gone(self._at(path)):
                yield path, "deleted"

    def take(self, path: str, target: Path) -> os.stat_result | None:
        return move(self._at(path), target)

    def close(self) -> None:
        if self._base is not None:
            with contextlib.suppress(OSError):
                self._leave_spare(self._base)
        remove(self._folder)

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Everything in the mirror, by the path that it has as a file made by the step."""
        if self._around is None:
            yield from walk(self._files)
            return
        project = self.spec.root.relative_to(self._around.path).as_posix()
        for path, status in walk(self._folder / "mirror"):
            if path.startswith(f"{project}/"):
                yield path[len(project) + 1 :], status
            elif path != project and not project.startswith(f"{path}/"):
                yield f"{self._around.name}/{path}", status

    def _at(self, path: str) -> Path:
        if self._around is not None and path.startswith(f"{self._around.name}/"):
            return self._folder / "mirror" / path[len(self._around.name) + 1 :]
        return self._files / path

    def _find(self, path: str) -> Path | None:
        folders = {each.name: each.path for each in self.spec.outside}
        name, inside = part_of(path, folders)
        if not name:
            return find(self.spec.lowers, path)
        return find([*layers_in(self.spec.layers, name), Layer(folders[name])], inside)

    def _add(self, layer: Layer, name: str = "", except_for: Collection[str] = ()) -> None:
        own = layer.folder == self.spec.root
        for inside, status in walk(layer.folder):
            path = f"{name}/{inside}" if name else inside
            if is_below(path, except_for):
                continue
            if not own:
                self._put(layer.folder / inside, path, status)
            elif not is_below(path, self._mounted):
                # Others work there too: what is gone meanwhile, or cannot be read, is not seen.
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    self._put(layer.folder / inside, path, status)

    def _cover(self, layer: Layer, name: str = "", except_for: Collection[str] = ()) -> None:
        """Lay a layer over what is there."""
        for inside in layer.deleted:
            path = f"{name}/{inside}" if name else inside
            if is_below(path, except_for) and path not in except_for:
                continue
            remove_one(self._at(path))
            for gone in [each for each in self._known if is_below(each, {path})]:
                del self._known[gone]
        self._add(layer, name, except_for)

    def _add_outside(self, each: Outside) -> None:
        """Copy what is small of what is outside the project; the rest can only be read."""
        above = layers_in(self.spec.layers, each.name)
        if not each.is_link:
            self._surround(each)
        elif each.path.is_dir() and (inside := self._small(each.path)) is not None:
            remove_one(self._files / each.name)
            (self._files / each.name).mkdir(parents=True)
            self._put_all(each.path, each.name, inside)
        elif above:
            raise TooLarge
        else:
            self.read_only.append(each.path)
        for layer in reversed(above):
            self._cover(layer, each.name)

    def _surround(self, around: Outside) -> None:
        """Have beside the project what lies beside it, up to the folder that holds it all."""
        live = {around.path / path for path in live_in(around, self.spec)}
        self._live += live
        folder = around.path
        for part in self.spec.root.relative_to(around.path).parts:
            for entry in sorted(folder.iterdir()):
                if entry.name != part:
                    with contextlib.suppress(FileNotFoundError, PermissionError):
                        self._put_beside(around, entry, entry in live)
            folder /= part

    def _put_beside(self, around: Outside, source: Path, is_live: bool) -> None:
        path = f"{around.name}/{source.relative_to(around.path).as_posix()}"
        status = source.lstat()
        if not stat.S_ISDIR(status.st_mode):
            self._put(source, path, status)
        elif not is_live and (inside := self._small(source)) is not None:
            self._put(source, path, status)
            self._put_all(source, path, inside)
        else:
            self._at(path).symlink_to(source)
            self._mounted.add(path)
            if not is_live:
                self.read_only.append(source)

    def _put_all(
        self, folder: Path, name: str, inside: Iterable[tuple[str, os.stat_result]]
    ) -> None:
        for path, status in inside:
            with contextlib.suppress(FileNotFoundError, PermissionError):
                self._put(folder / path, f"{name}/{path}", status)

    def _small(self, folder: Path) -> list[tuple[str, os.stat_result]] | None:
        """What lies in a folder outside of the project; None when it is too much to be copied."""
        found: list[tuple[str, os.stat_result]] = []
        most = min(MOST_BESIDE, self.spec.most_files - len(self._known) - 1)
        room = min(MOST_BYTES_BESIDE, MOST_BYTES - self._bytes)
        for path, status in walk(folder):
            found.append((path, status))
            room -= status.st_size if status.st_size <= LARGE else 0
            if len(found) > most or room < 0 or self.spec.root.is_relative_to(folder / path):
                return None
        return found

    def _put(self, source: Path, path: str, status: os.stat_result) -> None:
        target = self._at(path)
        if stat.S_ISDIR(status.st_mode):
            self._make(target)
        else:
            self._make(target.parent)
            remove_one(target)
            if stat.S_ISREG(status.st_mode) and status.st_size > LARGE:
                target.symlink_to(source)
            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                copy(source, target)
                self._bytes += status.st_size
            else:
                return
        self._known[path] = FileKey.of(target.lstat())
        if len(self._known) > self.spec.most_files or self._bytes > MOST_BYTES:
            raise TooLarge

    def _make(self, folder: Path) -> None:
        """Make a folder in the mirror; the mirror itself may be gone with the run that it is in."""
        missing = []
        while folder != self._folder and not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            each.mkdir(exist_ok=True)

    def _take_spare(self) -> bool:
        """Begin with a copy that an earlier step has left, if there is one."""
        if self._base is None:
            return False
        for spare in sorted(_spares_of(self._base, self._folder).glob("*")):
            with contextlib.suppress(OSError, ValueError):
                spare.rename(self._folder)  # which only one can do
                known = json.loads((self._folder / KNOWN).read_bytes())
                self._known = {path: FileKey(*key) for path, key in known.items()}
                if self._is_as_known():
                    return True
            self._known = {}
            remove(self._folder)
        return False

    def _is_as_known(self) -> bool:
        """Whether a copy that lay there for a while is whole: what a cleaner of temporary files
        took from it would count as deleted by the step."""
        found = dict(self._walk())
        return found.keys() == self._known.keys() and all(
            stat.S_ISDIR(key.mode) or FileKey.of(found[path]) == key
            for path, key in self._known.items()
        )

    def _leave_spare(self, base: Layer) -> None:
        """Undo what was laid over the copy and what the step did to it, and keep it."""
        spares = _spares_of(base, self._folder)
        if len(list(spares.glob("*"))) >= MOST_SPARES:
            return
        seen = {}
        for path, status in list(self._walk()):
            if path not in self._plain:
                remove_one(self._at(path))
            else:
                seen[path] = status
        for path, key in self._plain.items():
            now = seen.get(path)
            if now is None or (not stat.S_ISDIR(key.mode) and FileKey.of(now) != key):
                source = base.folder / path
                self._put(source, path, source.lstat())
                self._plain[path] = self._known[path]
        (self._folder / KNOWN).write_text(json.dumps(self._plain))
        spares.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.rename(spares / f"{os.getpid()}-{secrets.token_hex(4)}")


class TooLarge(Exception):
    """A folder has more in it than is copied for a run."""


def _spares_of(base: Layer, near: Path) -> Path:
    """Where copies of a tree wait: on the disk on which they are used."""
    beside = base.folder.with_name(f"{base.folder.name}{SPARES}")
    with contextlib.suppress(OSError):
        if beside.parent.stat().st_dev == near.parent.stat().st_dev:
            return beside
    return private_folder("convect-views") / beside.name


def _is_gone(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass
    return False


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
