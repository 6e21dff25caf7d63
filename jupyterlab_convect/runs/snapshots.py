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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import ConvectError
from ..filesystems import mount_points
from ..run_files import make_folder, own_folder, write_whole
from ..runner.layers import Key, Layer, copy
from .files import plain

MOST_NAMES = 5000
"""A folder with more files is not recorded: runs see it as it is."""
SMALL = 1 << 20
"""Bytes up to which a file is copied."""
COPIED = 32 << 20
"""Bytes that are copied of a folder, code first."""
DELTA = 200
"""Files in which a folder may differ from its tree before a new tree is made."""
KEPT = 20
"""Snapshots kept in memory."""
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

    def take(self, root: Path, sources: Iterable[str]) -> Snapshot:
        """The folder as it is now; `sources`, relative to it, are copied whatever their size."""
        named = frozenset(sources)
        try:
            with self._lock:
                return self._take(root, named)
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
            data = json.loads(self.object(digest).read_bytes())
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
                )
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise ConvectError(
                "The sources of this run are not there any more.", code="missing-source"
            ) from None

    def object(self, digest: str) -> Path:
        """Where content lies, by its digest."""
        name = digest.removeprefix("sha256:")
        return self.objects / name[:2] / name[2:]

    def has(self, digest: str) -> bool:
        return self.object(digest).exists()

    def keep_files(self, paths: Iterable[Path]) -> None:
        """Keep the content of files that belong to no snapshot."""
        for path in paths:
            with contextlib.suppress(OSError):  # whoever executes it says what is wrong with it
                self.keep(path.read_bytes())

    def keep(self, content: bytes, digest: str | None = None) -> str:
        """Keep content; its digest."""
        digest = digest or f"sha256:{hashlib.sha256(content).hexdigest()}"
        target = self.object(digest)
        if not target.exists():
            make_folder(target.parent)
            write_whole(target, content)
        return digest

    def layers(self, snapshot: Snapshot) -> tuple[list[Layer], bool]:
        """The snapshot as folders, the topmost first; and whether the project has to lie below
        them, because something of it could not be copied or linked."""
        with self._lock:
            known = self._made.get(snapshot.digest)
            if known is None or not all(layer.folder.is_dir() for layer in known[0]):
                while len(self._made) > 100:
                    del self._made[next(iter(self._made))]
                self._made[snapshot.digest] = known = self._layers(snapshot)
            return known

    def clean(self, live: Iterable[str], objects: Iterable[str]) -> None:
        """Remove trees that no live run needs, and objects that no run names."""
        needed = {self._tree_name(digest) for digest in live}
        for tree in self._trees.glob("*/*"):
            base = str(_read_json(tree.parent / "base.json").get("digest") or "")
            if tree.is_dir() and tree.name[:24] not in {*needed, self._tree_name(base)}:
                shutil.rmtree(tree, ignore_errors=True)
        named = set(objects)
        for path in self.objects.glob("??/*"):
            if f"sha256:{path.parent.name}{path.name}" not in named:
                path.unlink(missing_ok=True)

    def _take(self, root: Path, named: frozenset[str]) -> Snapshot:
        scan = _scan(root, self.runs, named)
        last = self._last_of(root)
        if last is not None and _agrees(last, scan):
            return last
        known = last.files if last is not None else {}
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
        snapshot = self._write(root, files, scan)
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
                    else path.read_bytes()
                )
                after = path.lstat()
            except FileNotFoundError:
                return None
            if Key.of(before) == Key.of(after):
                break
        return Key.of(after), self.keep(content)

    def _write(self, root: Path, files: dict[str, tuple[Key, str | None]], scan: _Scan) -> Snapshot:
        facts: dict[str, Any] = {
            "root": str(root),
            "files": files,
            "folders": scan.folders,
            "live": scan.live,
            "private": scan.private,
            "whole": scan.whole,
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
        return self._last.get(str(root))

    def _layers(self, snapshot: Snapshot) -> tuple[list[Layer], bool]:
        folder = self._trees_of(snapshot.root)
        base = self._base(folder)
        if base is not None and base.digest == snapshot.digest:
            layer, whole = self._build(snapshot, folder / self._tree_name(base.digest), ())
            return [layer], not whole
        if base is not None and base.whole == snapshot.whole:
            changed = {
                path for path, entry in snapshot.files.items() if base.files.get(path) != entry
            }
            deleted = [path for path in base.files if path not in snapshot.files]
            deleted += [path for path in base.folders if path not in snapshot.folders]
            if len(changed) + len(deleted) <= DELTA:
                delta = folder / f"{self._tree_name(snapshot.digest)}-{base.digest[7:15]}"
                above, whole = self._build(snapshot, delta, changed)
                below, base_whole = self._build(base, folder / self._tree_name(base.digest), ())
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
        lists = tree.with_name(f"{tree.name}.json")
        if not tree.is_dir():
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
            target.symlink_to(os.fsdecode(self.object(digest).read_bytes()))
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


def _scan(root: Path, runs: Path, named: frozenset[str]) -> _Scan:
    """What lies in a folder; only the named files when there is too much of it."""
    scan = _Scan({}, [], [], [], True)
    mounts = mount_points()
    left = [""]
    while left:
        inside = left.pop()
        try:
            entries = os.scandir(root / inside)
        except OSError:
            continue
        with entries:
            for entry in entries:
                path = f"{inside}/{entry.name}" if inside else entry.name
                if entry.name in SKIPPED:
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                mode = status.st_mode
                if not stat.S_ISDIR(mode):
                    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                        scan.files[path] = Key.of(status)
                elif entry.name == ".git":
                    scan.private.append(path)
                elif _is_live(root / path, entry.name, runs, mounts):
                    scan.live.append(path)
                else:
                    scan.folders.append(path)
                    left.append(path)
        if len(scan.files) + len(scan.folders) > MOST_NAMES:
            return _only(root, named, scan)
    return scan


def _only(root: Path, named: frozenset[str], scan: _Scan) -> _Scan:
    files = {}
    for path in named:
        with contextlib.suppress(OSError):
            files[path] = Key.of((root / path).lstat())
    return _Scan(files, [], [], scan.private, False)


def _is_live(path: Path, name: str, runs: Path, mounts: frozenset[str]) -> bool:
    return (
        name in LIVE
        or path == runs
        or str(path) in mounts
        or (name in ("venv", "env") and (path / "pyvenv.cfg").exists())
    )


def _agrees(last: Snapshot, scan: _Scan) -> bool:
    return (
        last.whole == scan.whole
        and last.files.keys() == scan.files.keys()
        and all(last.files[path][0] == key for path, key in scan.files.items())
        and list(last.folders) == scan.folders
        and list(last.live) == scan.live
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


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
