"""The ways that are there, by the settings, and which of them an attempt goes."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from ..errors import Refused
from ..text import size_text
from .base import SharedVolume, Transfer, Wanted, Way, choose
from .bundle import LARGEST, BundleTransfer
from .s3 import MOST_SLOTS, ObjectStore, S3Transfer
from .shared_volume import SharedVolumeTransfer


class Transfers:
    def __init__(
        self, wanted: Wanted, volumes: tuple[SharedVolume, ...], store: ObjectStore, limit: int
    ) -> None:
        self._wanted = wanted
        self._volumes = volumes
        self.bundle = BundleTransfer(volumes, limit)
        self.s3 = S3Transfer(store, volumes, limit) if store.is_configured else None
        self.shared = SharedVolumeTransfer(volumes)

    def choose(self, paths: Sequence[str] = ()) -> Transfer:
        """For an attempt that needs these paths; without any, for most attempts."""
        return self.of(choose(self._wanted, self._volumes, paths, self.s3 is not None))

    def of(self, way: Way) -> Transfer:
        if way == "shared":
            return self.shared
        if way == "bundle":
            return self.bundle
        if self.s3 is None:
            raise Refused("No object store is configured.", code="no-object-store")
        return self.s3

    def note(self) -> str | None:
        """What a user should know before a run; nothing where a volume is shared."""
        way = self.choose().way
        if way == "bundle":
            return (
                "No volume is shared with the cluster: files that are declared are sent with "
                f"the run, up to {size_text(LARGEST)}, and up to "
                f"{size_text(self.bundle.limit)} are copied back."
            )
        if way == "s3" and self.s3 is not None:
            store = self.s3.store
            return (
                f"Files go through the object store at {urlsplit(store.endpoint).netloc}: up to "
                f"{size_text(store.project_limit)} that are not declared, and up to "
                f"{size_text(MOST_SLOTS * store.part_size)} of results."
            )
        return None
