"""The folder a step works in: the project as it was at submit, what earlier steps made, and
a private layer for what this one writes.

An overlay where the system allows one; else a mirror, a copy with links to what is large,
whose originals are write-protected. Either way the runner stays outside.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..filesystems import private_folder
from . import landlock, overlay
from .layers import (
    SPARES,
    Change,
    Key,
    Layer,
    Made,
    changed_links,
    copy,
    digest_file,
    find,
    is_ignored,
    same_content,
    walk,
)
from .outcome import StepFailed

MOST_LAYERS = 40
LARGE = 1 << 20
"""Bytes from which a mirror has a link instead of a copy."""
MOST_FILES, MOST_BYTES = 5000, 256 << 20
"""Of a mirror."""
MOST_SPARES = 4
"""Copies of one project that wait for the next step."""
KNOWN = "known.json"


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """What `step.json` says of the view."""

    root: Path
    layers: tuple[Layer, ...] = ()
    """Read-only, the topmost first."""
    is_open: bool = False
    """The project folder itself is the lowest layer: it was not recorded whole at submit."""
    live: tuple[str, ...] = ()
    """Below the root, what stays as it is for everybody."""
    private: tuple[str, ...] = ()
    """Below the root, what the step may change without any effect outside or afterwards."""
    scratch: tuple[Path, ...] = ()
    """Where the private layer may lie, the best first."""
    protected: tuple[Path, ...] = ()
    """Beside the root, what nobody may write in a mirror; and the exceptions."""
    writable: tuple[Path, ...] = ()
    most_files: int = MOST_FILES
    """Files that are copied, where there can be no overlay."""
    turns: Path | None = None
    """Where runs say that a folder is theirs, when they have to take turns in it."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> ViewSpec:
        return cls(
            root=Path(data["root"]),
            layers=tuple(
                Layer(
                    Path(item["folder"]),
                    tuple(item.get("deleted") or ()),
                    Path(item["linked"]) if item.get("linked") else None,
                )
                for item in data.get("layers") or ()
            ),
            is_open=bool(data.get("is_open")),
            live=tuple(data.get("live") or ()),
            private=tuple(data.get("private") or ()),
            scratch=tuple(Path(path) for path in data.get("scratch") or ()),
            protected=tuple(Path(path) for path in data.get("protected") or ()),
            writable=tuple(Path(path) for path in data.get("writable") or ()),
            turns=Path(data["turns"]) if data.get("turns") else None,
        )

    @property
    def lowers(self) -> tuple[Layer, ...]:
        """All layers, with the project itself where it is one."""
        return (*self.layers, Layer(self.root)) if self.is_open else self.layers

    def changed_meanwhile(self) -> list[str]:
        """The files that are not what they were at submit, because they were not copied."""
        return changed_links(self.layers, self.root)


class View(ABC):
    """How a step comes to its folder."""

    kind: str
    guard: Sequence[Sequence[str]] = ()
    """What must not be written, and the exceptions, where the view cannot see to it itself."""

    @abstractmethod
    def path(self, path: Path) -> Path:
        """Where the step finds what lies at `path` of the project."""

    @abstractmethod
    def enter(self) -> None:
        """In a child process, before it executes: from here on it sees the view."""

    @abstractmethod
    def changes(self) -> Iterator[tuple[str, Change]]:
        """What the step left different: files, links, and the folders that it made."""

    @abstractmethod
    def take(self, path: str, target: Path) -> os.stat_result | None:
        """Move a file or link out of the view; None for what is neither."""

    @abstractmethod
    def close(self) -> None:
        """Remove it, once nobody is inside any more."""


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


class OverlayView(View):
    kind = "overlay"

    def __init__(self, spec: ViewSpec, folder: Path) -> None:
        """`folder` is where the private layer lies; nothing else is in it."""
        self.spec = spec
        self._folder = folder
        self._upper = folder / "upper"
        for name in ("upper", "work"):
            (folder / name).mkdir(parents=True)
        (folder / "work").chmod(0o700)
        live = [path for path in spec.live if (spec.root / path).is_dir()]
        private = [path for path in spec.private if (spec.root / path).is_dir()]
        for path in (*live, *private):
            (self._upper / path).mkdir(parents=True, exist_ok=True)
        self._mounted = frozenset((*live, *private))
        self.order = {
            "root": str(spec.root),
            "lowers": [str(path) for path in self._lowers()] or [str(self._empty())],
            "upper": str(self._upper),
            "work": str(folder / "work"),
            "live": live,
            "private": [(path, str(self._hidden(path))) for path in private],
        }

    def path(self, path: Path) -> Path:
        return path

    def enter(self) -> None:
        overlay.enter()
        overlay.mount(self.order)
        overlay.drop_capabilities()

    def make_folder(self, path: Path) -> None:
        """Have a folder of the project in the view, whether it is there below or not."""
        relative = path.relative_to(self.spec.root).as_posix()
        if relative != "." and find(self.spec.lowers, relative) is None:
            (self._upper / relative).mkdir(parents=True, exist_ok=True)

    def changes(self) -> Iterator[tuple[str, Change]]:
        for path, status in walk(self._upper):
            if _is_below(path, self._mounted):
                continue
            if overlay.is_whiteout(status):
                yield path, "deleted"
                continue
            below = find(self.spec.lowers, path)
            if below is None:
                yield path, "created"
            elif not stat.S_ISDIR(status.st_mode):
                if not _is_same(self._upper / path, below):
                    yield path, "changed"
            elif overlay.is_opaque(str(self._upper / path)):
                yield from ((gone, "deleted") for gone in self._replaced(path))

    def take(self, path: str, target: Path) -> os.stat_result | None:
        return _move(self._upper / path, target)

    def close(self) -> None:
        _remove(self._folder)

    def _replaced(self, folder: str) -> Iterator[str]:
        """What lay in a folder that the step has removed and made anew."""
        below = find(self.spec.lowers, folder)
        if below is None or not below.is_dir():
            return
        seen = {
            name
            for layer in self.spec.lowers
            if (layer.folder / folder).is_dir()
            for name in os.listdir(layer.folder / folder)  # noqa: PTH208
        }
        for name in sorted(seen):
            path = f"{folder}/{name}"
            if not os.path.lexists(self._upper / path) and find(self.spec.lowers, path):
                yield path

    def _lowers(self) -> Iterator[Path]:
        layers = list(self.spec.layers)
        if len(layers) > MOST_LAYERS:
            keep = MOST_LAYERS - 1
            layers = [*layers[:keep], _merged(layers[keep:], self._folder / "merged")]
        for number, layer in enumerate(layers):
            yield layer.folder
            if layer.deleted:
                yield self._whiteouts(layer, self._folder / f"deleted-{number}")
        if self.spec.is_open:
            yield self.spec.root

    def _whiteouts(self, layer: Layer, folder: Path) -> Path:
        folder.mkdir()
        for path in layer.deleted:
            with contextlib.suppress(OSError):  # it lies in a folder that is deleted as well
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                overlay.make_whiteout(str(folder / path))
        return folder

    def _hidden(self, path: str) -> Path:
        folder = self._folder / f"private-{len(path)}-{path.replace('/', '_')[:50]}"
        for name in ("upper", "work"):
            (folder / name).mkdir(parents=True)
        return folder

    def _empty(self) -> Path:
        folder = self._folder / "empty"
        folder.mkdir()
        return folder


class MirrorView(View):
    """A copy of the project, with links to what is large.

    A copy of the project as it was at submit is kept for the next step that needs the same.
    """

    kind = "mirror"

    def __init__(self, spec: ViewSpec, folder: Path) -> None:
        self.spec = spec
        self._folder = folder
        self._files = folder / "mirror"
        self._mounted = frozenset((*spec.live, *spec.private))
        live = [spec.root / path for path in spec.live]
        self.guard = (
            [str(path) for path in (spec.root, *spec.protected)],
            [str(path) for path in (*spec.writable, folder, *live)],
        )
        self._known: dict[str, Key] = {}
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
            self._cover(layer)
        for path in self._mounted:
            target = self._files / path
            if (spec.root / path).is_dir() and not os.path.lexists(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(spec.root / path)

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
        for path, status in walk(self._files):
            if path in self._mounted:
                continue
            seen.add(path)
            before = self._known.get(path)
            if before is None:
                yield path, "created"
            elif not stat.S_ISDIR(status.st_mode) and Key.of(status) != before:
                below = find(self.spec.lowers, path)
                if below is None or not _is_same(self._files / path, below):
                    yield path, "changed"
        gone = self._known.keys() - seen
        yield from ((path, "deleted") for path in sorted(gone) if _parent(path) not in gone)

    def take(self, path: str, target: Path) -> os.stat_result | None:
        return _move(self._files / path, target)

    def close(self) -> None:
        if self._base is not None:
            with contextlib.suppress(OSError):
                self._leave_spare(self._base)
        _remove(self._folder)

    def _add(self, layer: Layer) -> None:
        own = layer.folder == self.spec.root
        for path, status in walk(layer.folder):
            if not own:
                self._put(layer.folder / path, path, status)
            elif not _is_below(path, self._mounted):
                # Others work there too: what is gone meanwhile, or cannot be read, is not seen.
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    self._put(layer.folder / path, path, status)

    def _cover(self, layer: Layer) -> None:
        """Lay a layer over what is there."""
        for path in layer.deleted:
            _remove_one(self._files / path)
            for gone in [each for each in self._known if _is_below(each, {path})]:
                del self._known[gone]
        self._add(layer)

    def _put(self, source: Path, path: str, status: os.stat_result) -> None:
        target = self._files / path
        if stat.S_ISDIR(status.st_mode):
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_one(target)
            if stat.S_ISREG(status.st_mode) and status.st_size > LARGE:
                target.symlink_to(source)
            elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                copy(source, target)
                self._bytes += status.st_size
            else:
                return
        self._known[path] = Key.of(target.lstat())
        if len(self._known) > self.spec.most_files or self._bytes > MOST_BYTES:
            raise TooLarge

    def _take_spare(self) -> bool:
        """Begin with a copy that an earlier step has left, if there is one."""
        if self._base is None:
            return False
        for spare in sorted(_spares_of(self._base, self._folder).glob("*")):
            with contextlib.suppress(OSError, ValueError):
                spare.rename(self._folder)  # which only one can do
                known = json.loads((self._folder / KNOWN).read_bytes())
                self._known = {path: Key(*key) for path, key in known.items()}
                return True
        return False

    def _leave_spare(self, base: Layer) -> None:
        """Undo what was laid over the copy and what the step did to it, and keep it."""
        spares = _spares_of(base, self._folder)
        if len(list(spares.glob("*"))) >= MOST_SPARES:
            return
        seen = {}
        for path, status in list(walk(self._files)):
            if path not in self._plain:
                _remove_one(self._files / path)
            else:
                seen[path] = status
        for path, key in self._plain.items():
            now = seen.get(path)
            if now is None or (not stat.S_ISDIR(key.mode) and Key.of(now) != key):
                source = base.folder / path
                self._put(source, path, source.lstat())
                self._plain[path] = self._known[path]
        (self._folder / KNOWN).write_text(json.dumps(self._plain))
        spares.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.rename(spares / f"{os.getpid()}-{secrets.token_hex(4)}")


class TurnView(Plain):
    """The project folder itself, for one run at a time: it is too large to be copied."""

    kind = "turns"


class TooLarge(Exception):
    """A folder has more in it than is copied for a run."""


def _spares_of(base: Layer, near: Path) -> Path:
    """Where copies of a tree wait: on the disk on which they are used."""
    beside = base.folder.with_name(f"{base.folder.name}{SPARES}")
    with contextlib.suppress(OSError):
        if beside.parent.stat().st_dev == near.parent.stat().st_dev:
            return beside
    return private_folder("convect-views") / beside.name


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
    place = _scratch(spec)
    place.rmdir()
    try:
        view = MirrorView(spec, place)
    except OSError as error:
        raise StepFailed(f"The folder {spec.root} cannot be copied: {error.strerror}.") from error
    except TooLarge:
        _remove(place)
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
    for place in ([Path(given, "view")] if given else []) + list(spec.scratch):
        with contextlib.suppress(OSError):
            _remove(place)
            place.mkdir(mode=0o700, parents=True)
            return place
    raise StepFailed("There is no folder in which the step could keep what it writes.")


def _merged(layers: Sequence[Layer], folder: Path) -> Layer:
    """Many layers as one, of hard links."""
    folder.mkdir()
    hidden: set[str] = set()
    for layer in layers:
        for path, status in walk(layer.folder):
            target = folder / path
            if os.path.lexists(target) or _is_below(path, hidden):
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


def _is_below(path: str, folders: frozenset[str] | set[str]) -> bool:
    if not folders:
        return False
    parts = path.split("/")
    return any("/".join(parts[:count]) in folders for count in range(1, len(parts) + 1))


def _is_same(one: Path, other: Path) -> bool:
    return same_content(one, other) and one.lstat().st_mode == other.lstat().st_mode


def _move(source: Path, target: Path) -> os.stat_result | None:
    status = source.lstat()
    if stat.S_ISDIR(status.st_mode):
        target.mkdir(exist_ok=True)
        return None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        return None
    try:
        source.rename(target)
    except OSError:
        copy(source, target)
    return status


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _remove_one(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        _remove(path)
    else:
        path.unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    """Remove a tree, also the folder without any rights that an overlay leaves behind."""
    if not os.path.lexists(folder):
        return
    for place, names, _ in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
