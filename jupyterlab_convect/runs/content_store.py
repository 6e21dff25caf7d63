"""Content that runs need, kept once per digest for as long as a run names it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from ..errors import ConvectError
from ..safe_files import (
    copy_regular,
    is_shared,
    make_folder,
    open_regular,
    own_folder,
    read_regular,
    write_whole,
)

UNUSED = 86400.0
"""Seconds for which something is kept that no run needs, because one may be about to."""
SNAPSHOT = b'{"root":'
"""How the object of a snapshot begins."""
DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")


class ContentStore:
    """Those of one runs folder. Every method may be called from any thread."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs

    @functools.cached_property
    def objects(self) -> Path:
        return own_folder(self.runs, "objects")

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
        return touch(self.object(digest))

    def keep_files(self, files: Iterable[tuple[Path, str | None]]) -> None:
        """Keep the content of files that belong to no snapshot, given the digests they had."""
        for path, digest in files:
            if digest is None or not touch(self.object(digest)):
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
            touch(target)
        finally:
            draft.unlink(missing_ok=True)

    def keep(self, content: bytes, digest: str | None = None) -> str:
        """Keep content; its digest."""
        digest = digest or f"sha256:{hashlib.sha256(content).hexdigest()}"
        target = self.object(digest)
        if not touch(target):
            make_folder(target.parent)
            write_whole(target, content)
        return digest

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to clean up, or somebody did within a day."""
        if not (self.runs / "objects").exists():
            return True
        return time.time() - changed(self._cleaned) < UNUSED

    def remove_unused(self, documents: Iterable[Path]) -> None:
        """Remove what nobody has asked for within a day and none of the documents names, nor a
        snapshot that one of them names."""
        write_whole(self._cleaned, b"")
        limit = time.time() - UNUSED
        found = {_digest_at(path): path for path in self.objects.glob("??/*")}
        old = {digest for digest, path in found.items() if changed(path) < limit}
        if not old:
            return
        named = found.keys() - old
        for document in documents:
            named |= _digests_in(document)
        for digest in named & found.keys():
            if _is_snapshot(found[digest]):
                named |= _digests_in(found[digest])
        for digest in old - named:
            if changed(found[digest]) < limit:  # nobody has asked for it meanwhile
                found[digest].unlink(missing_ok=True)

    @property
    def _cleaned(self) -> Path:
        return self.objects / "cleaned"


def gone() -> ConvectError:
    return ConvectError("The sources of this run no longer exist.", code="missing-source")


def changed(path: Path) -> float:
    """When something was made or asked for; long ago when it is not there."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def touch(path: Path) -> bool:
    """Say that something is needed, so that it is not removed; False when it is not there."""
    try:
        os.utime(path)
    except OSError:
        return path.exists()
    return True


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
