"""A project folder as it was when a run was submitted, kept by content.

A snapshot is a list of files. What is small is copied, once per content; what is large is
linked into a tree of its own, so that a file that is replaced later is still there as it
was. A snapshot is an object like the files it lists, so that it lasts as long as the runs
that name it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import ConvectError
from ..filesystems import mount_points
from ..run_files import (
    copy_regular,
    is_shared,
    make_folder,
    open_regular,
    own_folder,
    read_regular,
    write_whole,
)
from ..runner.layers import SPARES, Key, Layer, copy
from .files import plain
from .outside import leads_out, name_around

MOST_NAMES = 5000
"""A folder with more files is not recorded: runs see it as it is."""
SMALL = 1 << 20
"""Bytes up to which a file is copied."""
COPIED = 32 << 20
"""Bytes that are copied of a folder, code first."""
DELTA = 200
"""Files in which a folder may differ from its tree before a new tree is made."""
TICK = 20_000_000
"""Nanoseconds within which two writes may give a file the same time."""
KEPT = 20
"""Snapshots kept in memory."""
UNUSED, JUST_USED = 86400.0, 600.0
"""Seconds for which something is kept that no run needs, because one may be about to; a tree
with links to deleted files, whose room somebody may miss, for the shorter time."""
SNAPSHOT = b'{"root":'
"""How the object of a snapshot begins."""
DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")
CODE = frozenset((".py", ".ipynb", ".r", ".sh", ".jl", ".sql", ".pyi", ".toml", ".cfg", ".yaml"))

LIVE = frozenset((".venv", "node_modules", ".tox", ".nox", ".conda"))
"""Folders that no run has a version of its own of: large, and not made by runs."""
SKIPPED = frozenset(
    (".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".jupyter_ystore.db")
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`digest` names it; the rest is what it says."""

    digest: str
    root: str
    files: Mapping[str, tuple[Key, str | None]] = field(default_factory=dict)
    """Every file and link, with the digest of what was copied."""
    folders: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    whole: bool = True
    """It lists all files of the folder; otherwise only the sources."""
    unsettled: tuple[str, ...] = ()
    """Files that were written so shortly before that another write could have the same key."""
    outside: Mapping[str, str] = field(default_factory=dict)
    """What runs have a version of their own of as well: where links of the project lead to, by
    the path of the link; and a folder that holds the project, by a name that no file has."""

    def digest_at(self, path: str) -> str | None:
        found = self.files.get(path)
        return found[1] if found else None


@dataclass(frozen=True, slots=True)
class _Scan:
    files: dict[str, Key]
    folders: list[str]
    live: list[str]
    private: list[str]
    whole: bool
    outside: dict[str, str] = field(default_factory=dict)


class Snapshots:
    """Those of one runs folder. Every method may be called from any thread."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self._last: dict[str, Snapshot] = {}
        self._read: dict[str, Snapshot] = {}
        self._made: dict[str, tuple[list[Layer], bool]] = {}
        self._lock = threading.Lock()

    @functools.cached_property
    def objects(self) -> Path:
        return own_folder(self.runs, "objects")

    @functools.cached_property
    def _trees(self) -> Path:
        return own_folder(self.runs, "views")

    @property
    def _cleaned(self) -> Path:
        return self.objects / "cleaned"

    def take(self, root: Path, sources: Iterable[str], around: Path | None = None) -> Snapshot:
        """The folder as it is now; `sources`, relative to it, are copied whatever their size.

        `around` is a folder that holds it, of which runs have a version of their own as well.
        """
        named = frozenset(sources)
        try:
            with self._lock:
                return self._take(root, named, around)
        except OSError as error:
            raise ConvectError(
                f"The sources of the run cannot be kept in {self.objects}: {plain(error)}.",
                code="unwritable",
                hint="Make room there, or choose another folder for the runs.",
            ) from None

    def read(self, digest: str) -> Snapshot:
        """The snapshot of this name; ConvectError when it is gone."""
        known = self._read.get(digest)
        if known is not None:
            return known
        try:
            data = json.loads(read_regular(self.object(digest)))
            return self._remember(
                Snapshot(
                    digest=digest,
                    root=data["root"],
                    files={
                        path: (Key(*key), copied) for path, (key, copied) in data["files"].items()
                    },
                    folders=tuple(data["folders"]),
                    live=tuple(data["live"]),
                    private=tuple(data["private"]),
                    whole=data["whole"],
                    unsettled=tuple(data["unsettled"]),
                    outside=data.get("outside") or {},
                )
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise gone() from None

    def object(self, digest: str) -> Path:
        """Where content lies, by its digest."""
        name = digest.removeprefix("sha256:")
        return self.objects / name[:2] / name[2:]

    def content(self, digest: str) -> bytes:
        """Content by its digest; ConvectError when it is gone."""
        try:
            return read_regular(self.object(digest))
        except OSError:
            raise gone() from None

    def has(self, digest: str) -> bool:
        """Whether content is there; then it stays for a day at least."""
        return _touch(self.object(digest))

    def keep_files(self, files: Iterable[tuple[Path, str | None]]) -> None:
        """Keep the content of files that belong to no snapshot, given the digests they had."""
        for path, digest in files:
            if digest is None or not _touch(self.object(digest)):
                with contextlib.suppress(OSError):  # whoever needs it says what is wrong with it
                    self._keep_file(path.resolve())

    def _keep_file(self, path: Path) -> None:
        """Keep a file of any size."""
        draft = self.objects / "00" / f".{secrets.token_hex(8)}"
        make_folder(draft.parent)
        try:
            _, digest = copy_regular(path, draft)
            draft.chmod(0o640 if is_shared(draft.parent) else 0o600)
            target = self.object(digest)
            make_folder(target.parent)
            draft.replace(target)
            _touch(target)
        finally:
            draft.unlink(missing_ok=True)

    def keep(self, content: bytes, digest: str | None = None) -> str:
        """Keep content; its digest."""
        digest = digest or f"sha256:{hashlib.sha256(content).hexdigest()}"
        target = self.object(digest)
        if not _touch(target):
            make_folder(target.parent)
            write_whole(target, content)
        return digest

    def layers(self, snapshot: Snapshot) -> tuple[list[Layer], bool]:
        """The snapshot as folders, the topmost first; and whether the project has to lie below
        them, because something of it could not be copied or linked."""
        with self._lock:
            known = self._made.get(snapshot.digest)
            if known is None or not all(map(_is_usable, known[0])):
                while len(self._made) > 100:
                    del self._made[next(iter(self._made))]
                self._made[snapshot.digest] = known = self._layers(snapshot)
            return known

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to clean up, or somebody did within a day."""
        if not (self.runs / "objects").exists():
            return True
        return time.time() - _changed(self._cleaned) < UNUSED

    def clean(self, documents: Iterable[Path], live: Iterable[str]) -> None:
        """Remove what nobody needs and nobody has asked for within a day: objects that none of
        the documents names, nor a snapshot that one of them names, and trees of projects.

        A project stays as it is while runs go on that are named by their snapshots, `live`.
        """
        write_whole(self._cleaned, b"")
        self._clean_trees(live)
        limit = time.time() - UNUSED
        found = {_digest_at(path): path for path in self.objects.glob("??/*")}
        old = {digest for digest, path in found.items() if _changed(path) < limit}
        if not old:
            return
        named = found.keys() - old
        for document in documents:
            named |= _digests_in(document)
        for digest in named & found.keys():
            if _is_snapshot(found[digest]):
                named |= _digests_in(found[digest])
        for digest in old - named:
            if _changed(found[digest]) < limit:  # nobody has asked for it meanwhile
                found[digest].unlink(missing_ok=True)

    def _clean_trees(self, live: Iterable[str]) -> None:
        busy = set()
        for digest in live:
            with contextlib.suppress(ConvectError):
                busy.add(self._trees_of(self.read(digest).root))
        now = time.time()
        for folder in self._trees.glob("*"):
            if folder in busy or not folder.is_dir():
                continue
            for tree in [path for path in folder.iterdir() if path.is_dir()]:
                age = now - max(_changed(tree), _changed(_list_of(tree)))
                if age > UNUSED or (age > JUST_USED and _holds_deleted_files(tree)):
                    _remove_tree(tree)

    def _take(self, root: Path, named: frozenset[str], around: Path | None) -> Snapshot:
        began = time.time_ns()
        scan = _scan(root, self.runs, named)
        if around is not None:
            scan.outside[name_around(root)] = str(around)
        last = self._last_of(root)
        if last is not None and _agrees(last, scan, named):
            return last
        known = {} if last is None else {**last.files, **dict.fromkeys(last.unsettled)}
        files: dict[str, tuple[Key, str | None]] = {}
        wanted = _to_copy(scan.files, named)
        for path, key in scan.files.items():
            if path not in wanted:
                files[path] = (key, None)
                continue
            before = known.get(path)
            if before is not None and before[0] == key and before[1] is not None:
                files[path] = before
            elif (copied := self._copy(root / path)) is not None:
                files[path] = copied
        unsettled = [path for path, (key, _) in files.items() if key.mtime > began - TICK]
        snapshot = self._write(root, files, scan, unsettled)
        self._last[str(root)] = snapshot
        return snapshot

    def _copy(self, path: Path) -> tuple[Key, str] | None:
        """Keep a file's content, as it is at one moment; None when it is gone."""
        for _ in range(5):
            try:
                before = path.lstat()
                content = (
                    os.fsencode(path.readlink())
                    if stat.S_ISLNK(before.st_mode)
                    else read_regular(path)
                )
                after = path.lstat()
            except FileNotFoundError:
                return None
            if Key.of(before) == Key.of(after):
                break
        return Key.of(after), self.keep(content)

    def _write(
        self,
        root: Path,
        files: dict[str, tuple[Key, str | None]],
        scan: _Scan,
        unsettled: list[str],
    ) -> Snapshot:
        facts: dict[str, Any] = {
            "root": str(root),
            "files": files,
            "folders": scan.folders,
            "live": scan.live,
            "private": scan.private,
            "whole": scan.whole,
            "unsettled": unsettled,
            "outside": scan.outside,
        }
        digest = self.keep(json.dumps(facts, separators=(",", ":")).encode())
        return self._remember(
            Snapshot(
                digest,
                str(root),
                files,
                tuple(scan.folders),
                tuple(scan.live),
                tuple(scan.private),
                scan.whole,
                tuple(unsettled),
                scan.outside,
            )
        )

    def _remember(self, snapshot: Snapshot) -> Snapshot:
        while len(self._read) >= KEPT:
            del self._read[next(iter(self._read))]
        self._read[snapshot.digest] = snapshot
        return snapshot

    def _last_of(self, root: Path) -> Snapshot | None:
        """The last snapshot of a folder that this process, or another one, has taken."""
        if str(root) not in self._last:
            digest = _read_json(self._trees_of(str(root)) / "base.json").get("digest")
            if digest:
                with contextlib.suppress(ConvectError):
                    self._last[str(root)] = self.read(digest)
        last = self._last.get(str(root))
        if last is None or time.time() - _changed(self.object(last.digest)) > UNUSED / 2:
            return None  # What it names may be removed soon, or is gone.
        _touch(self.object(last.digest))
        return last

    def _layers(self, snapshot: Snapshot) -> tuple[list[Layer], bool]:
        folder = self._trees_of(snapshot.root)
        base = self._base(folder)
        if base is not None and base.digest == snapshot.digest:
            tree = folder / self._tree_name(base.digest)
            layer, whole = self._build(snapshot, tree, snapshot.files)
            return [layer], not whole
        if base is not None and base.whole and snapshot.whole:
            changed = {
                path for path, entry in snapshot.files.items() if base.files.get(path) != entry
            }
            deleted = [path for path in base.files if path not in snapshot.files]
            deleted += [path for path in base.folders if path not in snapshot.folders]
            if len(changed) + len(deleted) <= DELTA:
                delta = folder / f"{self._tree_name(snapshot.digest)}-{base.digest[7:15]}"
                above, whole = self._build(snapshot, delta, changed)
                tree = folder / self._tree_name(base.digest)
                below, base_whole = self._build(base, tree, base.files)
                return [replace(above, deleted=tuple(deleted)), below], not (whole and base_whole)
        tree = folder / self._tree_name(snapshot.digest)
        layer, whole = self._build(snapshot, tree, snapshot.files)
        write_whole(folder / "base.json", json.dumps({"digest": snapshot.digest}).encode())
        return [layer], not whole

    def _base(self, folder: Path) -> Snapshot | None:
        digest = _read_json(folder / "base.json").get("digest")
        if not digest or not (folder / self._tree_name(digest)).is_dir():
            return None
        with contextlib.suppress(ConvectError):
            return self.read(digest)
        return None

    def _build(self, snapshot: Snapshot, tree: Path, paths: Iterable[str]) -> tuple[Layer, bool]:
        """Make a tree of some files of a snapshot, unless it is there; and whether it has them
        all."""
        lists = _list_of(tree)
        if not (tree.is_dir() and _touch(lists)):
            draft = tree.with_name(f".{tree.name}.{secrets.token_hex(4)}")
            make_folder(draft)
            try:
                write_whole(lists, json.dumps(self._fill(snapshot, draft, paths)).encode())
                draft.rename(tree)
            except OSError:
                shutil.rmtree(draft, ignore_errors=True)
                if not tree.is_dir():
                    raise
        missing = _read_json(lists).get("missing")
        return Layer(tree, (), lists), snapshot.whole and not missing

    def _fill(self, snapshot: Snapshot, tree: Path, paths: Iterable[str]) -> dict[str, Any]:
        """Put files into a tree; those that are links, and those that could not be put there."""
        linked, missing = {}, {}
        for folder in snapshot.folders:
            (tree / folder).mkdir(parents=True, exist_ok=True)
        for path in paths:
            target = tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            key, digest = snapshot.files[path]
            if not self._place(snapshot, path, target):
                missing[path] = key
            elif digest is None:
                linked[path] = key
        return {"linked": linked, "missing": missing}

    def _place(self, snapshot: Snapshot, path: str, target: Path) -> bool:
        key, digest = snapshot.files[path]
        original = Path(snapshot.root, path)
        if digest is None:
            try:
                os.link(original, target, follow_symlinks=False)
            except OSError:
                return False
            return Key.of(target.lstat()) == key
        if stat.S_ISLNK(key.mode):
            target.symlink_to(os.fsdecode(read_regular(self.object(digest))))
            return True
        copy(self.object(digest), target)
        target.chmod(stat.S_IMODE(key.mode))
        os.utime(target, ns=(key.mtime, key.mtime))
        return True

    def _trees_of(self, root: str) -> Path:
        return self._trees / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]

    @staticmethod
    def _tree_name(digest: str) -> str:
        return digest.removeprefix("sha256:")[:24]


def gone() -> ConvectError:
    return ConvectError("The sources of this run are not there any more.", code="missing-source")


def _scan(root: Path, runs: Path, named: frozenset[str]) -> _Scan:
    """What lies in a folder; only the named files when there is too much of it."""
    scan = _Scan({}, [], [], [], True)
    files, top, places, home = scan.files, str(root), _places(runs), Path.home()
    left = [""]
    while left:
        inside = left.pop()
        try:
            entries = os.scandir(f"{top}/{inside}")
        except OSError:
            continue
        with entries:
            for entry in entries:
                name = entry.name
                path = inside + name
                if name in SKIPPED:
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                mode = status.st_mode
                if stat.S_ISREG(mode):
                    files[path] = Key(mode, status.st_size, status.st_mtime_ns, status.st_ino)
                elif stat.S_ISLNK(mode):
                    files[path] = Key.of(status)
                    if target := leads_out(root, path):
                        scan.outside[path] = target
                elif not stat.S_ISDIR(mode):
                    continue
                elif name == ".git":
                    scan.private.append(path)
                elif _is_live(root / path, name, places, home):
                    scan.live.append(path)
                else:
                    scan.folders.append(path)
                    left.append(f"{path}/")
        if len(scan.files) + len(scan.folders) > MOST_NAMES:
            return _near(root, runs, named, scan.private)
    return scan


def _near(root: Path, runs: Path, named: frozenset[str], private: list[str]) -> _Scan:
    """The named files of a folder that is too large, and the folders at its top that they are
    in, unless these are too large as well; and what leads out of it at its top."""
    scan = _Scan({}, [], [], private, False)
    places, home = _places(runs), Path.home()
    for path in named:
        with contextlib.suppress(OSError):
            scan.files[path] = Key.of((root / path).lstat())
    for top in {path.partition("/")[0] for path in named if "/" in path}:
        inside = _scan(root / top, runs, frozenset())
        if inside.whole:
            scan.files.update({f"{top}/{path}": key for path, key in inside.files.items()})
            scan.outside.update({f"{top}/{path}": to for path, to in inside.outside.items()})
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.is_symlink():
                if target := leads_out(root, entry.name):
                    scan.outside[entry.name] = target
            elif entry.is_dir() and _is_live(root / entry.name, entry.name, places, home):
                scan.live.append(entry.name)
    for path in sorted(places):
        inner = path.removeprefix(f"{root}/")
        if inner != path and inner.partition("/")[0] not in scan.live:
            scan.live.append(inner)
    return scan


def _places(runs: Path) -> frozenset[str]:
    """Folders of which nobody has a version of their own, wherever they lie: the runs, what is
    mounted, and temporary files, where the runner meets its kernel."""
    return mount_points() | {str(runs), tempfile.gettempdir()}


def _is_live(path: Path, name: str, places: frozenset[str], home: Path) -> bool:
    """Whether a folder stays as it is for everybody: also those of programs, in a home folder."""
    return (
        name in LIVE
        or str(path) in places
        or (name in ("venv", "env") and (path / "pyvenv.cfg").exists())
        or (path.parent == home and (name.startswith(".") or (path / "conda-meta").exists()))
    )


def _agrees(last: Snapshot, scan: _Scan, named: frozenset[str]) -> bool:
    """Whether a snapshot says what lies in the folder now, and has copies of what is named."""
    return (
        last.whole == scan.whole
        and not last.unsettled
        and all(last.digest_at(path) is not None for path in named if path in scan.files)
        and last.files.keys() == scan.files.keys()
        and all(last.files[path][0] == key for path, key in scan.files.items())
        and list(last.folders) == scan.folders
        and list(last.live) == scan.live
        and last.outside == scan.outside
    )


def _to_copy(files: Mapping[str, Key], named: frozenset[str]) -> frozenset[str]:
    """Which files are copied: those named, links, then what is small, code first."""
    chosen = set(named)
    left = COPIED

    def order(path: str) -> tuple[bool, int, str]:
        return os.path.splitext(path)[1].lower() not in CODE, files[path].size, path  # noqa: PTH122

    for path in sorted(files, key=order):
        key = files[path]
        if stat.S_ISLNK(key.mode):
            chosen.add(path)
        elif key.size <= SMALL and left >= key.size:
            left -= key.size
            chosen.add(path)
    return frozenset(chosen)


def _digest_at(path: Path) -> str:
    return f"sha256:{path.parent.name}{path.name}"


def _digests_in(path: Path) -> set[str]:
    """All that a document names, even a damaged one. One that is not this user's to read is
    of somebody who has objects of their own."""
    try:
        return {found.decode() for found in DIGEST.findall(read_regular(path))}
    except (FileNotFoundError, PermissionError):
        return set()


def _is_snapshot(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(len(SNAPSHOT)) == SNAPSHOT
    except FileNotFoundError:
        return False


def _holds_deleted_files(tree: Path) -> bool:
    """Whether a tree has the last link to a large file, which takes up room for nobody."""
    for path in _read_json(_list_of(tree)).get("linked") or ():
        with contextlib.suppress(OSError):
            if (tree / path).lstat().st_nlink == 1:
                return True
    return False


def _is_usable(layer: Layer) -> bool:
    return layer.folder.is_dir() and _touch(_list_of(layer.folder))


def _list_of(tree: Path) -> Path:
    return tree.with_name(f"{tree.name}.json")


def _remove_tree(tree: Path) -> None:
    """Remove a tree at once, so that nobody finds a part of it; and what belongs to it."""
    aside = tree.with_name(f".old-{secrets.token_hex(8)}")
    with contextlib.suppress(OSError):
        tree.rename(aside)
        _list_of(tree).unlink(missing_ok=True)
        for folder in (aside, tree.with_name(f"{tree.name}{SPARES}")):
            shutil.rmtree(folder, ignore_errors=True)


def _changed(path: Path) -> float:
    """When something was made or asked for; long ago when it is not there."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _touch(path: Path) -> bool:
    """Say that something is needed, so that it is not removed; False when it is not there."""
    try:
        os.utime(path)
    except OSError:
        return path.exists()
    return True


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_regular(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
