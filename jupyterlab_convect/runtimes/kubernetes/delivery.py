"""Decides how the files of an attempt reach its pod, and makes ready what that takes."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from ...catalog.run import SEEN, input_files
from ...errors import Refused
from ...pipeline.plan import Json
from ...run_files import read_regular
from ...runner.bundle import bundle
from ...runner.saving import write_whole
from ..base import Attempt
from . import bundles
from .manifests import Delivery, Manifest
from .shares import covering
from .site import Site

Way = Literal["shared", "bundle"]

INTERRUPTED = "The pod was stopped from outside."
"""What the runner says when a signal comes that we did not send."""
KEPT = 7 * 86400
"""Seconds for which results wait in a log to be fetched home."""
PYTHON = "python3"
SCRATCH = "/convect-view"
"""Where a step on a shared volume keeps what it writes, until it has ended."""


@dataclass(frozen=True)
class Parcel:
    way: Way
    delivery: Delivery
    secret: Mapping[str, str] | None = None
    """Base64 content of the Secret that has to be made first."""
    results: Json = None
    """Of a component: where its outputs are looked for afterwards."""


def choose_way(attempt: Attempt, site: Site, wanted: str) -> Way:
    """A shared volume wherever there is one. Refused when it must be one and is not."""
    if wanted == "bundle":
        return "bundle"
    outside = covering(site.shares, _paths(attempt))
    if outside is None:
        return "shared"
    if wanted == "shared":
        raise Refused(
            f"No volume of the cluster holds {outside}.",
            code="not-shared",
            hint="Name it in c.KubernetesRuntime.volumes, or allow files to be sent with the run.",
        )
    return "bundle"


def make_parcel(attempt: Attempt, site: Site, way: Way, secret: str, carry: int) -> Parcel:
    """Writes the runner (or reads the files): call it in a thread."""
    if way == "shared":
        write_stop(attempt.folder, "failed", INTERRUPTED)
        command = (PYTHON, str(_runner_beside(attempt.folder)), str(attempt.folder))
        env = {"CONVECT_SCRATCH": SCRATCH}
        return Parcel(way, Delivery(command, env=env, shares=site.shares, scratch=(SCRATCH,)))
    archive = bundles.pack(attempt.folder, attempt.step, bundles.read_run(attempt.folder))
    stop = json.dumps({"state": "failed", "reason": INTERRUPTED}).encode()
    files = {
        "bundle.tar.xz": archive,
        "runner.pyz": bundle(),
        "carrier.py": carrier(),
        "stop.json": stop,
    }
    inbox = Delivery.inbox
    delivery = Delivery(
        (PYTHON, f"{inbox}/carrier.py", "run", inbox, str(carry)),
        env={"CONVECT_LOG_LIMIT": str(carry // 4), "CONVECT_OUTPUT_LIMIT": str(carry // 8)},
        shares=site.shares,
        secret=secret,
        scratch=("/convect",),
        ttl=max(site.ttl, KEPT),
    )
    return Parcel(way, delivery, as_secret(files))


def carrier() -> bytes:
    """The program that unpacks and sends home, which stands alone."""
    return resources.files(__package__).joinpath("carrier.py").read_bytes()


def as_secret(files: Mapping[str, bytes]) -> dict[str, str]:
    """Files as a Secret holds them."""
    return {name: base64.b64encode(data).decode() for name, data in files.items()}


def folder_in_pod(attempt: Attempt) -> str:
    """Where the step works, as its pod sees it."""
    spec: Json = json.loads(read_regular(attempt.folder / "step.json"))
    if (attempt.handle or {}).get("way") != "bundle":
        return str(spec["folder"])
    if spec.get("component"):
        return SEEN.outputs
    root = bundles.read_run(attempt.folder).root
    return str(bundles.translate(spec, root, {})["folder"])


def write_stop(folder: Path, state: str, reason: str) -> None:
    """What the runner finds when it is stopped."""
    write_whole(folder / "stop.json", json.dumps({"state": state, "reason": reason}).encode())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """What people who look at the attempt are shown of it."""
    write_whole(folder / "manifest.json", json.dumps(manifest, indent=1).encode())


def _paths(attempt: Attempt) -> list[str]:
    """Every place that the runner, or a component, will look at."""
    spec: Json = json.loads(read_regular(attempt.folder / "step.json"))
    inputs = [item["from"] for item in spec.get("inputs") or ()]
    given = input_files(spec["component"]) if spec.get("component") else []
    layers = [layer["folder"] for layer in (spec.get("view") or {}).get("layers", ())]
    wanted = [str(attempt.folder), spec.get("source"), spec["folder"], *inputs, *given, *layers]
    return [path for path in wanted if path]


def _runner_beside(attempt_folder: Path) -> Path:
    """The runner in the folder of the runs, where the pod sees it too; one for each version."""
    content, digest = _runner()
    path = attempt_folder.parents[3] / ".runner" / f"{digest}.pyz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)
    return path


@functools.cache
def _runner() -> tuple[bytes, str]:
    content = bundle()
    return content, hashlib.sha256(content).hexdigest()[:16]
