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
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import ConvectError, words_of
from ..runner.layers import SPARES, FileKey, Layer, copy
from ..safe_files import (
    make_folder,
    own_folder,
    read_regular,
    write_whole,
)
from .content_store import UNUSED, ContentStore, changed, gone, touch
from .scan import Scan, name_around, scan_folder

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
JUST_USED = 600.0
"""Seconds for which a tree is kept that alone holds deleted files, whose room somebody may miss."""
CODE = frozenset((".py", ".ipynb", ".r", ".sh", ".jl", ".sql", ".pyi", ".toml", ".cfg", ".yaml"))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`digest` names it; the rest is what it says."""

    digest: str
    root: str
    files: Mapping[str, tuple[FileKey, str | None]] = field(default_factory=dict)
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
    searched: bool = True
    """All its links were looked at; otherwise it has too many files for that."""

    def digest_at(self, path: str) -> str | None:
        found = self.files.get(path)
        return found[1] if found else None


class Snapshots(ContentStore):
    def __init__(self, runs: Path) -> None:
        super().__init__(runs)
        self._last: dict[str, Snapshot] = {}
        self._read: dict[str, Snapshot] = {}
        self._made: dict[str, tuple[list[Layer], bool]] = {}
        self._lock = threading.Lock()
        self._remembering = threading.Lock()

    @functools.cached_property
    def _trees(self) -> Path:
        return own_folder(self.runs, "views")

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
                f"The sources of the run cannot be kept in {self.objects}: {words_of(error)}.",
                code="unwritable",
                hint="Free some space there, or choose another folder for the runs.",
            ) from None

    def read(self, digest: str) -> Snapshot:
        """The snapshot of this name; ConvectError when it is gone."""
        known = self._read.get(digest)
        if known is not None:
            return known
        try:
            data = json.loads(read_regular(self.object(digest)))
            files = {path: (FileKey(*key), copied) for path, (key, copied) in data["files"].items()}
            snapshot = _snapshot(digest, data, files)
        except (OSError, ValueError, KeyError, TypeError):
            raise gone() from None
        return self._remember(snapshot)

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

    def clean(self, documents: Iterable[Path], live: Iterable[str]) -> None:
        """Remove objects that nobody needs, and trees of projects. A project stays as it is
        while runs go on that are named by their snapshots, `live`."""
        self._clean_trees(live)
        self.remove_unused(documents)

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
                age = now - max(changed(tree), changed(_list_of(tree)))
                if age > UNUSED or (age > JUST_USED and _holds_deleted_files(tree)):
                    _remove_tree(tree)

    def _take(self, root: Path, named: frozenset[str], around: Path | None) -> Snapshot:
        began = time.time_ns()
        scan = scan_folder(root, self.runs, named)
        if around is not None:
            scan.outside[name_around(root)] = str(around)
        last = self._last_of(root)
        if last is not None and _agrees(last, scan, named):
            return last
        known = {} if last is None else {**last.files, **dict.fromkeys(last.unsettled)}
        files: dict[str, tuple[FileKey, str | None]] = {}
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

    def _copy(self, path: Path) -> tuple[FileKey, str] | None:
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
            if FileKey.of(before) == FileKey.of(after):
                break
        return FileKey.of(after), self.keep(content)

    def _write(
        self,
        root: Path,
        files: dict[str, tuple[FileKey, str | None]],
        scan: Scan,
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
            "searched": scan.searched,
        }
        digest = self.keep(json.dumps(facts, separators=(",", ":")).encode())
        return self._remember(_snapshot(digest, facts, files))

    def _remember(self, snapshot: Snapshot) -> Snapshot:
        with self._remembering:
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
        if last is None or time.time() - changed(self.object(last.digest)) > UNUSED / 2:
            return None  # What it names may be removed soon, or is gone.
        touch(self.object(last.digest))
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
        if not (tree.is_dir() and touch(lists)):
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
            if not self._put_file(snapshot, path, target):
                missing[path] = key
            elif digest is None:
                linked[path] = key
        return {"linked": linked, "missing": missing}

    def _put_file(self, snapshot: Snapshot, path: str, target: Path) -> bool:
        key, digest = snapshot.files[path]
        original = Path(snapshot.root, path)
        if digest is None:
            try:
                os.link(original, target, follow_symlinks=False)
            except OSError:
                return False
            return FileKey.of(target.lstat()) == key
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


def _snapshot(
    digest: str, facts: Mapping[str, Any], files: Mapping[str, tuple[FileKey, str | None]]
) -> Snapshot:
    """What an object says, whose `files` are these."""
    return Snapshot(
        digest=digest,
        root=facts["root"],
        files=files,
        folders=tuple(facts["folders"]),
        live=tuple(facts["live"]),
        private=tuple(facts["private"]),
        whole=facts["whole"],
        unsettled=tuple(facts["unsettled"]),
        outside=facts.get("outside") or {},
        searched=facts.get("searched", True),
    )


def _agrees(last: Snapshot, scan: Scan, named: frozenset[str]) -> bool:
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
        and last.searched == scan.searched
    )


def _to_copy(files: Mapping[str, FileKey], named: frozenset[str]) -> frozenset[str]:
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


def _holds_deleted_files(tree: Path) -> bool:
    """Whether a tree has the last link to a large file, which takes up room for nobody."""
    for path in _read_json(_list_of(tree)).get("linked") or ():
        with contextlib.suppress(OSError):
            if (tree / path).lstat().st_nlink == 1:
                return True
    return False


def _is_usable(layer: Layer) -> bool:
    return layer.folder.is_dir() and touch(_list_of(layer.folder))


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


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_regular(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
