"""Would a plan run on this machine? Every property is honoured, or its fate said aloud."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import PurePath

from ...pipeline.plan import Kubernetes, Plan, Resources, Step
from ...pipeline.problems import Problem
from ...pipeline.quantities import quantity
from ...runner.kernels import KernelSpec, installed, known, resolved
from ...runner.limits import can_limit
from ...secret_values import explain_missing, look_up
from .machine import GpuDevice, MachineCapacity, Requirements, too_much

PROGRAMS = {".r": "Rscript", ".sh": "bash"}


def check_plan(plan: Plan, capacity: MachineCapacity, gpus: tuple[GpuDevice, ...]) -> list[Problem]:
    specs = installed()
    return [
        problem
        for step in plan.steps
        for part in (
            _programs(step, specs),
            _resources(step, capacity, gpus),
            _secrets(step),
            _distributed(step),
            _ignored(step),
        )
        for problem in part
    ]


def need_of(step: Step, capacity: MachineCapacity) -> Requirements:
    """What a step holds while it runs. One that asks for nothing counts as one CPU per process."""
    resources, how = step.resources, step.distributed
    count = 1 if how is None else capacity.cpu if how.processes == "cpu" else how.processes
    cpu = resources.cpu and (resources.cpu.request or resources.cpu.limit)
    memory = resources.memory and (resources.memory.request or resources.memory.limit)
    gpu = resources.gpu.count if resources.gpu and capacity.gpus else 0.0
    return Requirements(
        cpu=float(quantity(cpu)) if cpu else min(float(count), capacity.cpu),
        memory=float(quantity(memory)) if memory else 0.0,
        gpu=gpu,
    )


def memory_limit(resources: Resources) -> int:
    """Bytes; 0 where there is no limit."""
    limit = resources.memory and resources.memory.limit
    return int(quantity(limit)) if limit else 0


def cpu_limit(resources: Resources) -> float:
    """Processors; 0 where there is no limit."""
    limit = resources.cpu and resources.cpu.limit
    return float(quantity(limit)) if limit else 0.0


def _programs(step: Step, specs: dict[str, KernelSpec]) -> Iterator[Problem]:
    if step.kernel is not None and resolved(step.kernel).lower() not in specs:
        yield Problem(
            "error",
            "unknown-kernel",
            f"The kernel {step.kernel} is not installed here; {known(specs)}.",
            node=step.id,
            path=("kernel",),
            hint="Install it, or choose one that is.",
        )
    program = PROGRAMS.get(PurePath(step.path or "").suffix.lower())
    if step.kind == "script" and program and shutil.which(program) is None:
        yield Problem(
            "error",
            "missing-program",
            f"{step.path} needs {program}, which is not installed here.",
            node=step.id,
            path=("path",),
        )


def _resources(
    step: Step, capacity: MachineCapacity, gpus: tuple[GpuDevice, ...]
) -> Iterator[Problem]:
    never = too_much(need_of(step, capacity), capacity)
    if never is not None:
        yield Problem(
            "error",
            "does-not-fit",
            f"“{step.name}” {never}.",
            node=step.id,
            path=("resources",),
            hint="Ask for less, or run it on a cluster.",
        )
    gpu = step.resources.gpu
    if gpu is not None and gpu.count > 0 and not gpus:
        yield Problem(
            "warning",
            "no-gpu",
            f"“{step.name}” asks for a GPU; this machine has none, so it runs without one.",
            node=step.id,
            path=("resources", "gpu"),
        )
    elif gpu is not None and gpu.type and not any(_is_like(gpu.type, each) for each in gpus):
        names = ", ".join(sorted({each.name or each.id for each in gpus}))
        yield Problem(
            "warning",
            "other-gpu",
            f"“{step.name}” asks for {gpu.type}; this machine has {names}.",
            node=step.id,
            path=("resources", "gpu", "type"),
        )


def _is_like(wanted: str, device: GpuDevice) -> bool:
    def letters(text: str) -> str:
        return "".join(char for char in text.lower() if char.isalnum())

    return letters(wanted) in letters(device.name) or letters(device.name) in letters(wanted)


def _secrets(step: Step) -> Iterator[Problem]:
    for secret in step.secrets:
        if look_up(secret) is None:
            sentence, hint = explain_missing(secret)
            yield Problem(
                "error", "missing-secret", sentence, node=step.id, path=("secrets",), hint=hint
            )


def _distributed(step: Step) -> Iterator[Problem]:
    how = step.distributed
    if how is None:
        return
    if how.nodes > 1:
        yield Problem(
            "error",
            "one-node",
            f"“{step.name}” asks for {how.nodes} nodes, but there is only this machine.",
            node=step.id,
            path=("distributed", "nodes"),
            hint="Ask for one node with more processes.",
        )
    if how.launcher == "mpi" and shutil.which("mpirun", path=step.env.get("PATH")) is None:
        yield Problem(
            "error",
            "missing-program",
            f"“{step.name}” needs mpirun, which is not installed here.",
            node=step.id,
            path=("distributed", "launcher"),
        )


def _ignored(step: Step) -> Iterator[Problem]:
    resources = step.resources
    ignored = {
        "image": step.image,
        "volumes": step.volumes,
        "kubernetes": step.kubernetes != Kubernetes(),
        "resources.ephemeral_storage": resources.ephemeral_storage,
        "resources.shared_memory": resources.shared_memory,
        "resources.cpu.limit": cpu_limit(resources) and not can_limit("cpu"),
    }
    names = [name for name, value in ignored.items() if value]
    if names:
        yield Problem(
            "info",
            "ignored-locally",
            f"“{step.name}” runs on this machine as it is; {', '.join(names)} "
            f"{'is' if len(names) == 1 else 'are'} only for clusters and ignored here.",
            node=step.id,
        )
