"""Makes ready what the pod of an attempt needs: its files, its Secret, its containers."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...catalog.launch import SEEN, input_files
from ...pipeline.plan import Json, Secret
from ...runner.outcome import INTERRUPTED
from ...runs.gather import make_node_folders
from ...safe_files import read_regular, write_whole
from ...transfer import pack
from ...transfer.base import KEPT, Transfer, Way
from ..base import Attempt
from .gang import stop_nodes
from .jobs import job_of, way_of
from .manifests import Manifest, PodContent
from .pod_defaults import PodDefaults


@dataclass(frozen=True)
class Prepared:
    way: Way
    content: PodContent
    secret: Mapping[str, str] | None = None
    """Base64 content of the Secret that has to be made with the Job."""
    results: Json = None
    """Of a component: where its outputs are looked for afterwards."""


def prepare(
    attempt: Attempt,
    defaults: PodDefaults,
    transfer: Transfer,
    secret: str,
    *,
    has_service: bool = False,
) -> Prepared:
    """Puts the files of a step that the runner executes: call it in a thread.

    `has_service`: its pods are told in a Secret where the first of them is.
    """
    how, mounts = attempt.step.distributed, transfer.mounts()
    if how is not None:
        make_node_folders(attempt.folder, how.nodes)
        stop_nodes(attempt, "failed", INTERRUPTED)
        mounts = replace(mounts, inbox=mounts.inbox or has_service)
    sent = transfer.put(attempt)
    content = PodContent(
        sent.command,
        env=sent.env,
        mounts=mounts,
        secret=secret,
        ttl=defaults.ttl if transfer.way == "shared" else max(defaults.ttl, KEPT),
    )
    return Prepared(transfer.way, content, as_secret(sent.inbox) or None)


def with_variables(attempt: Attempt) -> Attempt:
    """The attempt, with its own variables as secrets of the step, from the Secret of its Job."""
    own = {name: text for name, text in attempt.variables.items() if name != "CONVECT_SECRETS"}
    secrets = tuple(Secret(name, job_of(attempt), name) for name in own)
    step = replace(attempt.step, secrets=(*attempt.step.secrets, *secrets))
    return replace(attempt, step=step, variables=own)


def as_secret(files: Mapping[str, bytes]) -> dict[str, str]:
    """Files as a Secret holds them."""
    return {name: base64.b64encode(data).decode() for name, data in files.items()}


def folder_in_pod(attempt: Attempt) -> str:
    """Where the step works, as its pod sees it."""
    spec: Json = json.loads(read_regular(attempt.folder / "step.json"))
    if way_of(attempt) == "shared":
        return str(spec["folder"])
    if spec.get("component"):
        return SEEN.outputs
    root = attempt.root
    return str(pack.translate(spec, root, {})["folder"])


def write_manifest(folder: Path, manifest: Manifest | list[Manifest]) -> None:
    """What people who look at the attempt are shown of it."""
    write_whole(folder / "manifest.json", json.dumps(manifest, indent=1).encode())


def paths_of(attempt: Attempt) -> list[str]:
    """Every path that the runner, or a component, will look at."""
    spec: Json = json.loads(read_regular(attempt.folder / "step.json"))
    inputs = [item["from"] for item in spec.get("inputs") or ()]
    given = input_files(spec["component"]) if spec.get("component") else []
    layers = [layer["folder"] for layer in (spec.get("view") or {}).get("layers", ())]
    wanted = [str(attempt.folder), spec.get("source"), spec["folder"], *inputs, *given, *layers]
    return [path for path in wanted if path]
