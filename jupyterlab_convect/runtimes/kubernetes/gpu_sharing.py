"""GPUs that are shared or cut into parts: what a node's labels and resources say of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal

from ..capacity import GpuSharing, SharingKind

STRATEGY = "nvidia.com/gpu.sharing-strategy"
REPLICAS = "nvidia.com/gpu.replicas"
COUNT = "nvidia.com/gpu.count"
HAMI = "hami.io/node-nvidia-register"
"""The annotation by which HAMi keeps the list of a node's GPUs."""
PARTS = ("gpumem", "gpumem-percentage", "gpucores", "vcuda-memory")
"""Resources that go with another one and are no GPUs by themselves."""
_MIG = re.compile(r"nvidia\.com/mig-(?P<slice>[\w.]+)")


def sharing_of(
    resource: str,
    total: Decimal,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> GpuSharing | None:
    """How this resource of a node is shared; None when one of it is one GPU."""
    _, _, name = resource.partition("/")
    if mig := _MIG.fullmatch(resource):
        return GpuSharing(
            "mig",
            None,
            f"Each is a slice {mig['slice']} of a GPU, with its own memory and processors (MIG).",
        )
    if name == "vcuda-core":
        return GpuSharing("vcuda", float(total / 100), "100 of these units are one GPU (vCUDA).")
    if name == "vcuda-memory":
        return GpuSharing("vcuda", None, "Each unit is 256 MiB of GPU memory (vCUDA).")
    if resource == "aliyun.com/gpu-mem":
        return GpuSharing(
            "memory", None, "Each unit is 1 GiB of the memory of GPUs that are shared."
        )
    if name in ("gpumem", "gpumem-percentage", "gpucores"):
        return GpuSharing("hami", None, "Parts of GPUs that HAMi hands out.")
    if name not in ("gpu", "gpu.shared"):
        return None
    if HAMI in annotations:
        cards = hami_cards(annotations[HAMI])
        return GpuSharing(
            "hami", cards, "Several pods share a GPU, each with a limit of its own (HAMi)."
        )
    strategy = labels.get(STRATEGY, "none")
    replicas = _number(labels.get(REPLICAS)) or 1.0
    if strategy not in ("time-slicing", "mps") and replicas <= 1 and name != "gpu.shared":
        return None
    kind: SharingKind = "mps" if strategy == "mps" else "time-slicing"
    cards = _number(labels.get(COUNT))
    if cards is None and replicas > 1:
        cards = float(total) / replicas
    sentence = (
        "Several pods share a GPU, each with a part of its memory (MPS)."
        if kind == "mps"
        else "Several pods take turns on a GPU; its memory is not divided between them."
    )
    return GpuSharing(kind, cards, sentence)


def hami_cards(register: str) -> float | None:
    """How many GPUs the annotation lists: JSON, or `id,…:id,…:` of older versions."""
    try:
        found = json.loads(register)
        return float(len(found)) if isinstance(found, list) else None
    except ValueError:
        cards = [each for each in register.split(":") if "," in each]
        return float(len(cards)) if cards else None


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
