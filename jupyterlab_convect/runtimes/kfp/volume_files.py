"""Files on a volume that the tasks of Kubeflow and we see at the same path."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from ...pipeline.plan import Volume
from ...safe_files import make_folder, write_whole
from ...transfer.base import KEPT, SharedVolume
from ..kubernetes.api import Api, connect
from ..kubernetes.pod_defaults import find_own_pod, inherited

FOLDER = ".kfp"
"""Where they are, in the folder of the runs."""


def own_volumes(namespace: str) -> tuple[tuple[Volume, ...], str]:
    """The claims of the pod that we run in, if tasks are made in its namespace, and the only node
    where tasks can have them, if there is but one. Kubeflow mounts whole volumes alone."""
    api = Api(connect())
    pod = find_own_pod(api)
    if pod is None or api.namespace != namespace:
        return (), ""
    return shareable(inherited(api, pod).shared_volumes)


def shareable(volumes: Sequence[SharedVolume]) -> tuple[tuple[Volume, ...], str]:
    found: dict[str, Volume] = {}
    nodes: set[str] = set()
    for each in volumes:
        claim = str(each.source.get("persistentVolumeClaim", {}).get("claimName", ""))
        if claim and claim not in found and not (each.sub_path or each.read_only):
            found[claim] = Volume(claim, each.path)
            nodes |= {each.node} if each.node else set()
    return tuple(found.values()), min(nodes, default="")


class VolumeFiles:
    """Those of one run."""

    def __init__(self, runs: Path, run: str) -> None:
        self.folder = runs / FOLDER / run

    def share(self, data: bytes) -> tuple[str, str]:
        """Keep them; the address where a task finds them, and their digest."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.folder / f"{digest}.tar"
        write_whole(path, data)
        return path.as_uri(), digest

    def open(self) -> None:
        """Make the folder, and remove those that nobody has asked for in a week."""
        make_folder(self.folder)
        for other in self.folder.parent.iterdir():
            with contextlib.suppress(OSError):
                if time.time() - other.stat().st_mtime > KEPT:
                    shutil.rmtree(other)
