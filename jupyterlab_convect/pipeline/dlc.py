"""Parameter files of DLC, `key=value` a line, as a pipeline of one command.

Both dialects are read: that of the light edition (`worker_count`, `kind`) and that of the public
service (`workers`, `job_max_running_time_minutes`, `envs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ..errors import ConvectError
from .problems import did_you_mean

if TYPE_CHECKING:
    from .types import Document

KINDS = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "BatchJob")
_WITHOUT_TWIN = {
    "aimaster_enable": "restarts are set by aimaster_args",
    "code_branch": "the code is the project's, as it is",
    "code_commit": "the code is the project's, as it is",
    "code_source": "the code is the project's, as it is",
    "data_sources": "mount claims with “volumes” in a pipeline",
    "enable_preemptible_job": "there are no jobs that can be preempted",
    "node_names": "choose nodes by “kubernetes.node_selector” in a pipeline",
    "oversold_type": "resources are never oversold",
    "priority": "choose a class by “kubernetes.priority” in a pipeline",
    "resource_id": "choose a queue in the settings of the runtime",
    "security_group_id": "networks are the cluster's",
    "success_policy": "it succeeds when every process does",
    "switch_id": "networks are the cluster's",
    "thirdparty_lib_dir": "packages are those of the image",
    "thirdparty_libs": "packages are those of the image",
    "vpc_id": "networks are the cluster's",
    "worker_spec": "write worker_cpu, worker_memory and worker_gpu instead",
    "workspace_id": "choose a namespace in the settings of the runtime",
}
"""Keys that mean nothing here, and what to do instead."""
_AMOUNT = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class DlcJob:
    document: Document
    name: str
    is_followed: bool = False
    """`interactive`: what it prints is shown."""
    notes: tuple[str, ...] = ()
    """Keys that mean nothing here, and why."""


@dataclass(slots=True)
class _DlcDraft:
    node: dict[str, Any] = field(default_factory=lambda: {"kind": "command"})
    resources: dict[str, Any] = field(default_factory=dict)
    gpu: dict[str, Any] = field(default_factory=dict)
    distributed: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    workers: int = 0
    masters: int = 0
    kind: str = "PyTorchJob"
    name: str = "job"
    is_followed: bool = False
    notes: list[str] = field(default_factory=list)


def read_params(text: str, source: str = "The file") -> DlcJob:
    """A job from the text of a parameter file; a ConvectError names the line that is wrong."""
    draft = _DlcDraft()
    seen: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise _fault(source, number, f"“{line.strip()[:60]}” is not key=value")
        if key in seen:
            raise _fault(source, number, f"“{key}” is there already, in line {seen[key]}")
        seen[key] = number
        if key in _WITHOUT_TWIN:
            draft.notes.append(f"{key} is not used: {_WITHOUT_TWIN[key]}.")
            continue
        reader = _READERS.get(key)
        if reader is None:
            hint = did_you_mean(key, [*_READERS, *_WITHOUT_TWIN])
            raise _fault(source, number, f"“{key[:60]}” is not a key of DLC", hint)
        try:
            reader(draft, value)
        except ValueError as error:
            raise _fault(source, number, f"“{key}” {error}, but it is “{value[:60]}”") from None
    if "command" not in draft.node:
        raise ConvectError(f"{source} has no “command”.", code="missing-property")
    return _job(draft)


def _fault(source: str, line: int, what: str, hint: str | None = None) -> ConvectError:
    return ConvectError(f"{source}, line {line}: {what}.", code="bad-params-file", hint=hint)


def _job(draft: _DlcDraft) -> DlcJob:
    node = draft.node
    nodes = max(1, draft.workers + draft.masters)
    if draft.kind != "BatchJob" and (nodes > 1 or draft.distributed):
        launcher = {"launcher": "mpi"} if draft.kind == "MPIJob" else {}
        node["distributed"] = {"nodes": nodes, "processes": 1, **launcher, **draft.distributed}
    if draft.gpu.get("count"):
        draft.resources["gpu"] = draft.gpu
    if draft.resources:
        node["resources"] = draft.resources
    document = {"convect": 1, "name": draft.name, "nodes": {"job": node}}
    return DlcJob(cast("Document", document), draft.name, draft.is_followed, tuple(draft.notes))


def _whole(value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise ValueError("must be a whole number")
    return int(value)


def _gibibytes(value: str) -> str:
    """A number alone counts GiB."""
    return f"{value}Gi" if _AMOUNT.fullmatch(value) else value


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return value.lower() == "true"


def _pairs(value: str) -> dict[str, str]:
    pairs = [item.partition("=") for item in value.split(",") if item.strip()]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("must be NAME=VALUE, separated by commas")
    return {name.strip(): text.strip() for name, _, text in pairs}


def _set_kind(draft: _DlcDraft, value: str) -> None:
    known = {kind.lower(): kind for kind in KINDS}
    if value.lower() not in known:
        raise ValueError(f"must be one of {', '.join(KINDS)}")
    draft.kind = known[value.lower()]


def _set_timeout(draft: _DlcDraft, value: str) -> None:
    if minutes := _whole(value):
        draft.node["timeout"] = minutes * 60


def _set_restarts(draft: _DlcDraft, value: str) -> None:
    """Of what AIMaster is told, the number of restarts has an equivalent."""
    found = re.search(r"--max-num-of-job-restart[ =](\d+)", value)
    if found:
        draft.distributed["restarts"] = int(found[1])
    draft.notes.append("Of aimaster_args only the number of restarts is used.")


def _resource(name: str, read: Callable[[str], Any]) -> Callable[[_DlcDraft, str], None]:
    return lambda draft, value: draft.resources.__setitem__(name, read(value))


def _number(value: str) -> float | int:
    if not _AMOUNT.fullmatch(value):
        raise ValueError("must be a number")
    return float(value) if "." in value else int(value)


_READERS: Mapping[str, Callable[[_DlcDraft, str], None]] = {
    "name": lambda draft, value: setattr(draft, "name", value or "job"),
    "kind": _set_kind,
    "command": lambda draft, value: draft.node.__setitem__("command", ["sh", "-c", value]),
    "worker_count": lambda draft, value: setattr(draft, "workers", _whole(value)),
    "workers": lambda draft, value: setattr(draft, "workers", _whole(value)),
    "masters": lambda draft, value: setattr(draft, "masters", _whole(value)),
    "worker_cpu": _resource("cpu", _number),
    "worker_memory": _resource("memory", _gibibytes),
    "worker_shared_memory": _resource("shared_memory", _gibibytes),
    "worker_gpu": lambda draft, value: draft.gpu.__setitem__("count", _number(value)),
    "worker_gpu_type": lambda draft, value: draft.gpu.__setitem__("type", value),
    "worker_image": lambda draft, value: draft.node.__setitem__("image", value),
    "envs": lambda draft, value: draft.node.__setitem__("env", _pairs(value)),
    "job_max_running_time_minutes": _set_timeout,
    "aimaster_args": _set_restarts,
    "interactive": lambda draft, value: setattr(draft, "is_followed", _flag(value)),
}
