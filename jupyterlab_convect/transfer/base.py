"""How the files of a step reach the pod that runs it, and how its results come back.

One interface with three ways behind it. Nothing here knows a cluster's client: whoever
makes the pod mounts what `mounts` names, starts what `put` returns, and has the results
brought into the attempt's folder by what `fetch` returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from ..errors import Refused
from ..pipeline.plan import Json
from ..pipeline.problems import Problem
from ..runtimes.base import Attempt

Way = Literal["shared", "s3", "bundle"]
Wanted = Literal["auto", "shared", "s3", "bundle"]

PYTHON = "python3"
INBOX = "/convect-in"
"""Where a pod finds the small files that `put` returns."""
KEPT = 7 * 86400
"""Seconds for which the results of a step wait to be copied back."""


@dataclass(frozen=True)
class SharedVolume:
    """A volume that the server and pods see at the same path."""

    path: str
    source: Mapping[str, Json]
    """As a pod has it: `{"persistentVolumeClaim": {"claimName": …}}`."""
    sub_path: str = ""
    read_only: bool = False
    node: str | None = None
    """The only node whose pods can have it, when the volume is bound to one."""

    def covers(self, path: str) -> bool:
        return path == self.path or path.startswith(self.path.rstrip("/") + "/")


@dataclass(frozen=True)
class Mounts:
    """What the pod of a step has mounted, apart from what the step itself asks for."""

    volumes: tuple[SharedVolume, ...] = ()
    scratch: tuple[str, ...] = ()
    """Paths of empty folders that end with the pod."""
    inbox: bool = False
    """Whether it has files at `INBOX`, read-only."""


@dataclass(frozen=True)
class Sent:
    """An attempt whose files are there: what its pod starts."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    inbox: Mapping[str, bytes] = field(default_factory=dict)


class Receiver(Protocol):
    """Brings the results of one attempt into its folder; may be begun again at any time."""

    told_all: bool
    """The pod has said all that it had to say."""
    ended: bool
    """All has arrived."""
    missing: tuple[str, ...]
    """Files that were too large."""
    trouble: str | None
    """Why what came back cannot be used."""
    other_lines: list[str]
    """What somebody else said in the log."""

    def take(self, data: bytes) -> None:
        """More of the log of the pod."""

    def finish(self) -> None:
        """The log is over, or cannot be read: fetch what comes in another way. May block."""


class Transfer(ABC):
    """Everything here may block: it is called in threads."""

    way: Way

    @abstractmethod
    def mounts(self) -> Mounts:
        """What a pod needs, known before anything is sent."""

    @abstractmethod
    def put(self, attempt: Attempt) -> Sent:
        """Make the files of an attempt ready for its pod. Refused when they are too large."""

    def fetch(
        self, attempt: Attempt, folder: Path, *, outputs_only: bool = False
    ) -> Receiver | None:
        """What brings the results into the folder; None where they are written there anyway.

        `outputs_only`: what comes are the outputs of a component, for its working folder.
        """
        return None

    def forget(self, attempt: Attempt) -> None:  # noqa: B027
        """Remove what was kept for it elsewhere. Idempotent."""

    def check(self) -> list[Problem]:
        """What keeps it from working, each thing by its name."""
        return []


def choose(
    wanted: Wanted, volumes: Sequence[SharedVolume], paths: Sequence[str], has_store: bool
) -> Way:
    """A shared volume wherever one holds all the paths, else the object store, else a bundle.

    Pure. Refused when it must be a way that is not there, with the reason.
    """
    if wanted == "s3" and not has_store:
        raise Refused(
            "No object store is configured.",
            code="no-object-store",
            hint="Set c.ObjectStore.endpoint and c.ObjectStore.bucket.",
        )
    if wanted in ("s3", "bundle"):
        return wanted
    outside = first_uncovered(volumes, paths)
    if volumes and outside is None:
        return "shared"
    if wanted == "shared":
        raise Refused(
            f"No volume of the cluster holds {outside or 'the files of the run'}.",
            code="not-shared",
            hint="Name it in c.KubernetesRuntime.volumes, or allow files to be sent with the run.",
        )
    return "s3" if has_store else "bundle"


def first_uncovered(volumes: Sequence[SharedVolume], paths: Sequence[str]) -> str | None:
    """The first of the paths that no pod would see; None when all is well."""
    for path in paths:
        if not any(volume.covers(path) for volume in volumes):
            return path
    return None
