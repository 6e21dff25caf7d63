"""What the place gives to every pod, whatever the step: data, without a look at a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from ...errors import Refused
from ...pipeline.plan import Gpu, Json

DEFAULT_GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Share:
    """A volume that the server and pods see at the same path."""

    path: str
    volume: Mapping[str, Json]
    """The volume's source as a pod has it: `{"persistentVolumeClaim": {"claimName": …}}`."""
    sub_path: str = ""
    read_only: bool = False
    node: str | None = None
    """The only node whose pods can have it, when the volume is bound to one."""

    def covers(self, path: str) -> bool:
        return path == self.path or path.startswith(self.path.rstrip("/") + "/")


@dataclass(frozen=True)
class GpuProfile:
    """How a cluster counts a sort of GPU."""

    requests: Mapping[str, Decimal]
    """Amounts of the cluster's resources for one GPU."""
    type_label: str = ""
    """The label of nodes that says of which type their GPUs are."""
    shareable: bool = False
    """A fraction of a GPU can be had."""


@dataclass(frozen=True)
class Site:
    namespace: str
    image: str = ""
    pull_policy: str | None = None
    pull_secrets: tuple[str, ...] = ()
    shares: tuple[Share, ...] = ()
    tolerations: tuple[Mapping[str, Json], ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pod_security: Mapping[str, Json] = field(default_factory=dict)
    container_security: Mapping[str, Json] = field(default_factory=dict)
    gpus: Mapping[str, GpuProfile] = field(default_factory=dict)
    grace: int = 30
    ttl: int = 3600
    notes: tuple[str, ...] = ()
    """What a user should know before a run, in sentences."""

    def profile(self, gpu: Gpu) -> GpuProfile:
        name = gpu.resource or DEFAULT_GPU
        return self.gpus.get(name) or GpuProfile({name: Decimal(1)})


RESTRICTED_POD: Mapping[str, Json] = {
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
RESTRICTED_CONTAINER: Mapping[str, Json] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def profile_from_config(name: str, config: Mapping[str, Json]) -> GpuProfile:
    """`{"requests": {resource: amount}, "type_label": label, "shareable": bool}`."""
    unknown = set(config) - {"requests", "type_label", "shareable"}
    if unknown:
        raise Refused(f"The GPU profile {name} has an unknown key {min(unknown)!r}.")
    requests = {key: Decimal(str(value)) for key, value in config.get("requests", {}).items()}
    return GpuProfile(
        requests or {name: Decimal(1)},
        str(config.get("type_label", "")),
        bool(config.get("shareable", False)),
    )


def gpu_requests(gpu: Gpu, profile: GpuProfile) -> dict[str, str]:
    """The resources to ask for. Refused when GPUs there come whole only."""
    count = Decimal(str(gpu.count))
    if count != int(count) and not profile.shareable:
        raise Refused(
            f"It asks for {gpu.count:g} GPUs, but {gpu.resource or DEFAULT_GPU} comes whole only.",
            code="whole-gpus",
            hint="Ask for a whole number, or for a resource that is shared.",
        )
    amounts = {name: amount * count for name, amount in profile.requests.items()}
    return {name: str(int(-(-amount // 1))) for name, amount in amounts.items() if amount}
