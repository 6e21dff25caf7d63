"""Training jobs of Kubeflow as others: as a pipeline of one node, and as a TrainJob."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import yaml

from ...errors import ConvectError
from ..plan import Json
from ..problems import Problem
from .job_check import mend
from .job_form import TrainingJob, at, main_container, read_jobs, resource_path
from .job_kinds import KINDS

if TYPE_CHECKING:
    from ..types import Document

UNKNOWN = "ENTRYPOINT"
"""In the place of a program that only the image knows."""
_TORCHRUN = re.compile(r"(.*/)?torchrun")
_PYTHON = re.compile(r"(.*/)?python[\d.]*")
_MPIRUN = re.compile(r"(.*/)?(mpirun|mpiexec)")
_TORCH_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_FLAGS = {"--standalone", "--no-python", "--use-env", "-m", "--module"}
"""Options of torchrun without a value."""
_MPI_FLAGS = {
    *("--allow-run-as-root", "--oversubscribe", "--tag-output", "--report-bindings"),
    *("-allow-run-as-root", "-oversubscribe", "-tag-output", "-report-bindings", "-v"),
}
_MPI_PAIRS = {"-mca", "--mca", "-gmca", "--gmca"}
_SHM = "/dev/shm"  # noqa: S108
_USED_IN_POD = {
    *("containers", "volumes", "nodeSelector", "tolerations", "serviceAccountName"),
    *("priorityClassName", "imagePullSecrets"),
}
_USED_IN_CONTAINER = {
    *("name", "image", "command", "args", "env", "resources", "volumeMounts", "ports"),
    "imagePullPolicy",
}


@dataclass(slots=True)
class _Work:
    """What a job runs on each of its nodes, in the words of none of them."""

    name: str
    nodes: int
    processes: int | str
    pod: dict[str, Json] = field(default_factory=dict)
    metadata: dict[str, Json] = field(default_factory=dict)
    container: dict[str, Json] = field(default_factory=dict)
    resources: dict[str, Json] = field(default_factory=dict)
    launcher: str = "plain"
    command: list[str] = field(default_factory=list)
    deadline: int | None = None
    restarts: int = 0
    min_nodes: int | None = None
    notes: list[Problem] = field(default_factory=list)

    def note(self, message: str, hint: str | None = None, severity: str = "info") -> None:
        self.notes.append(Problem(cast(Any, severity), "training-job", message, hint=hint))


def import_job(text: str) -> tuple[Document, list[Problem]]:
    """The pipeline of one node that the job of a file becomes, and what has no equivalent in it."""
    work = _work(only_job(text))
    container, pod = work.container, work.pod
    node: dict[str, Json] = {
        "image": container.get("image"),
        "env": dict(_plain_env(work)),
        "secrets": list(_secrets(work)),
        "resources": _resources(work),
        "volumes": list(_claims(work)),
        "distributed": {
            "nodes": work.nodes,
            "processes": work.processes,
            "launcher": work.launcher,
            **({"restarts": work.restarts} if work.restarts else {}),
            **({"min_nodes": work.min_nodes} if work.min_nodes else {}),
        },
        "timeout": work.deadline,
        "kubernetes": _without_empty(
            {
                "node_selector": pod.get("nodeSelector"),
                "tolerations": list(_tolerations(pod)),
                "annotations": work.metadata.get("annotations"),
                "labels": work.metadata.get("labels"),
                "priority": pod.get("priorityClassName"),
                "service_account": pod.get("serviceAccountName"),
                "pull_secrets": [
                    each["name"] for each in pod.get("imagePullSecrets") or () if at(each, "name")
                ],
            }
        ),
    }
    if not work.command:
        work.note(
            "The job names no command, and what its image starts by itself is not known.",
            f"Enter it in the place of {UNKNOWN} in the command of the node.",
            "warning",
        )
    _note_left(work, [*(pod.keys() - _USED_IN_POD), *(container.keys() - _USED_IN_CONTAINER)])
    command = work.command or [UNKNOWN, *(container.get("args") or [])]
    node = {"kind": "command", "command": command, **_without_empty(node)}
    document = {"convect": 1, "name": work.name, "nodes": {"train": node}}
    return cast("Document", document), work.notes


def as_train_job(text: str) -> tuple[str, list[Problem]]:
    """The TrainJob that does the same as the job of a file, as YAML, and what is different."""
    job = only_job(text)
    if job.kind == "TrainJob":
        raise ConvectError("This is a TrainJob already.", code="training-job")
    if job.kind == "TFJob":
        raise ConvectError(
            "No runtime of Kubeflow Trainer sets TF_CONFIG, so a TFJob cannot be a TrainJob.",
            code="training-job",
        )
    work = _work(job)
    if work.min_nodes:
        work.note("A TrainJob always has the same number of nodes.", severity="warning")
    container = work.container
    trainer = {
        "image": container.get("image"),
        "numNodes": work.nodes,
        "numProcPerNode": work.processes if isinstance(work.processes, int) else None,
        "command": _trainer_command(work),
        "env": container.get("env"),
        "resourcesPerNode": work.resources,
    }
    if not work.command:
        trainer["args"] = container.get("args")
    runtime = "torch-distributed" if job.kind == "PyTorchJob" else "deepspeed-distributed"
    spec = {
        "runtimeRef": {"name": runtime},
        "trainer": _without_empty(trainer),
        "runtimePatches": _patches(work),
        "suspend": at(job.content, "spec", "runPolicy", "suspend"),
        "activeDeadlineSeconds": work.deadline,
    }
    work.note(
        f"It needs the runtime “{runtime}” in the cluster.",
        "Choose another one in “runtimeRef” if yours has another name.",
    )
    patched = {"volumes", "affinity", "securityContext", "schedulingGates", *_PATCHED}
    _note_left(work, work.pod.keys() - patched - {"containers"})
    metadata = {
        key: value
        for key, value in (job.content.get("metadata") or {}).items()
        if key in ("name", "generateName", "namespace", "labels", "annotations")
    }
    made = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": _without_empty(spec),
    }
    return yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=100), work.notes


_PATCHED = (
    *("nodeSelector", "tolerations", "serviceAccountName", "imagePullSecrets"),
    "terminationGracePeriodSeconds",
)


def only_job(text: str) -> TrainingJob:
    """The job of a file without faults."""
    _, faults = mend(text)
    if faults:
        first = faults[0]
        more = len(faults) - 1
        counted = f" There {'is 1 more' if more == 1 else f'are {more} more'}." if more else ""
        raise ConvectError(
            f"Line {first.line}: {first.message}{counted}", code="bad-job", hint=first.hint
        )
    jobs = read_jobs(text)
    if len(jobs) != 1:
        raise ConvectError(
            f"There are {len(jobs)} training jobs in this file.",
            code="bad-job",
            hint="Put each into a file of its own.",
        )
    return jobs[0]


def _work(job: TrainingJob) -> _Work:
    spec = job.content["spec"]
    if job.kind == "TrainJob":
        return _of_train_job(job, spec)
    about = KINDS[job.kind]
    roles = spec[about.replicas]
    present = [role for role in about.roles if role in roles]
    work = _Work(
        job.name or "train",
        sum(_replicas(roles[role]) for role in present if role != "Launcher"),
        1,
        deadline=at(spec, "runPolicy", "activeDeadlineSeconds"),
    )
    main = "Worker" if job.kind == "MPIJob" and "Worker" in roles else present[0]
    _take_pod(work, roles[main], about.container)
    command = _command_of(work.container)
    if job.kind == "PyTorchJob":
        processes = str(spec.get("nprocPerNode") or at(spec, "elasticPolicy", "nProcPerNode") or 1)
        work.processes = _processes(work, processes)
        _without_torchrun(work, command)
        _take_elastic(work, spec.get("elasticPolicy") or {})
    elif job.kind == "MPIJob":
        launcher = _Work("", 1, 1)
        _take_pod(launcher, roles["Launcher"], None)
        work.nodes = max(1, work.nodes)
        work.processes = spec.get("slotsPerWorker") or 1
        work.container = {**work.container, "env": launcher.container.get("env")}
        _without_mpirun(work, _command_of(launcher.container))
    else:
        work.command = command
        work.note(
            "TF_CONFIG is not set: the processes find RANK, WORLD_SIZE and MASTER_ADDR instead.",
            severity="warning",
        )
    others = [role for role in present if role != main and role != "Launcher"]
    for role in others:
        if roles[role].get("template") != roles[main].get("template"):
            work.note(
                f"All nodes are like “{main}”; what is different in “{role}” is left out.",
                severity="warning",
            )
    for name in ("backoffLimit", "ttlSecondsAfterFinished", "schedulingPolicy"):
        if at(spec, "runPolicy", name) is not None:
            work.note(f"“{name}” has no equivalent and is left out.")
    return work


def _of_train_job(job: TrainingJob, spec: Json) -> _Work:
    trainer = spec.get("trainer") or {}
    work = _Work(
        job.name or "train",
        trainer.get("numNodes") or 1,
        trainer.get("numProcPerNode") or 1,
        container={key: trainer[key] for key in ("image", "env") if key in trainer},
        resources=trainer.get("resourcesPerNode") or {},
        deadline=spec.get("activeDeadlineSeconds"),
    )
    if not trainer.get("image"):
        work.note("The image is that of the runtime in the cluster.", "Choose one.", "warning")
    for name in ("initializer", "runtimePatches"):
        if spec.get(name):
            work.note(f"“{name}” has no equivalent and is left out.", severity="warning")
    _without_torchrun(work, _command_of(trainer))
    return work


def _take_pod(work: _Work, role: Json, name: str | None) -> None:
    template = role["template"]
    work.pod = template["spec"]
    work.metadata = template.get("metadata") or {}
    containers = work.pod["containers"]
    work.container = containers[main_container(containers, name)]
    work.resources = work.container.get("resources") or {}
    if len(containers) > 1:
        others = len(containers) - 1
        work.note(
            f"Only one container runs; {others} more beside it are left out.", severity="warning"
        )


def _replicas(role: Json) -> int:
    count = role.get("replicas")
    return 1 if count is None else int(count)


def _command_of(container: Json) -> list[str]:
    command = container.get("command") or []
    return [*command, *(container.get("args") or [])] if command else []


def _processes(work: _Work, said: str) -> int | str:
    if said.isdigit():
        return int(said)
    has_gpus = bool(at(work.resources, *resource_path(work.resources, "gpu")))
    return said if said == "cpu" else "gpu" if said == "gpu" or has_gpus else 1


def _without_torchrun(work: _Work, command: Sequence[str]) -> None:
    """Our launcher in the place of the one in the command, if there is one."""
    words = list(command)
    if words and _TORCHRUN.fullmatch(words[0]):
        python, rest = "python", words[1:]
    elif len(words) > 2 and _PYTHON.fullmatch(words[0]) and words[1] == "-m":
        if words[2] not in _TORCH_MODULES:
            work.command = words
            return
        python, rest = words[0], words[3:]
    else:
        work.command = words
        return
    options, program = _options(rest, _FLAGS, set())
    work.launcher = "torchrun"
    for name, value in options:
        if name.replace("-", "_").strip("_") == "nproc_per_node" and value:
            work.processes = _processes(work, value)
    is_module = any(name in ("-m", "--module") for name, _ in options)
    work.command = [python, *(["-m"] if is_module else []), *program]


def _take_elastic(work: _Work, policy: Json) -> None:
    """As many nodes as it may have, and how few are enough: only torchrun knows what to do then."""
    least, most = at(policy, "minReplicas"), at(policy, "maxReplicas")
    if work.launcher == "torchrun":
        work.restarts = at(policy, "maxRestarts") or 0
        work.nodes = max(work.nodes, most or 0)
        work.min_nodes = least if least and least < work.nodes else None
    elif policy:
        work.note("“elasticPolicy” is left out, because the command is not torchrun.")


def _without_mpirun(work: _Work, command: Sequence[str]) -> None:
    words = list(command)
    if not words or not _MPIRUN.fullmatch(words[0]):
        work.command = words
        return
    _, work.command = _options(words[1:], _MPI_FLAGS, _MPI_PAIRS)
    work.launcher = "mpi"


def _options(
    words: list[str], flags: set[str], pairs: set[str]
) -> tuple[list[tuple[str, str | None]], list[str]]:
    """The options before a program, and the program."""
    found: list[tuple[str, str | None]] = []
    while words and words[0].startswith("-"):
        name, equals, value = words[0].partition("=")
        if name in flags or name.replace("_", "-") in flags:
            found.append((name, None))
            words = words[1:]
        elif equals:
            found.append((name, value))
            words = words[1:]
        else:
            count = 3 if name in pairs else 2
            found.append((name, words[1] if len(words) > 1 else None))
            words = words[count:]
    return found, words


def _trainer_command(work: _Work) -> list[str] | None:
    """Only torchrun knows which rank it is in a TrainJob."""
    command = work.command
    if work.launcher == "mpi":
        return ["mpirun", *command]
    if not command:
        work.note(
            "A TrainJob needs torchrun as its command, and this job names none.",
            "Enter it in “command”.",
            "warning",
        )
        return None
    if work.launcher == "torchrun" or _PYTHON.fullmatch(command[0]):
        if work.launcher == "plain":
            work.note(
                f"“{posixpath.basename(command[0])}” became “torchrun”, which sets the ranks."
            )
        return ["torchrun", *command[1:]]
    work.note(
        "A TrainJob sets no RANK: its command has to be torchrun.",
        "Change “command”.",
        "warning",
    )
    return command


def _patches(work: _Work) -> list[Json]:
    pod = {key: work.pod[key] for key in _PATCHED if work.pod.get(key)}
    mounts = work.container.get("volumeMounts")
    if work.pod.get("volumes"):
        pod["volumes"] = work.pod["volumes"]
    if mounts:
        pod["containers"] = [{"name": "node", "volumeMounts": mounts}]
    metadata = {
        key: value for key, value in work.metadata.items() if key in ("labels", "annotations")
    }
    if not pod and not metadata:
        return []
    template = _without_empty({"metadata": metadata, "spec": pod})
    jobs = [{"name": "node", "template": {"spec": {"template": template}}}]
    runtime = {"template": {"spec": {"replicatedJobs": jobs}}}
    return [{"manager": "jupyterlab-convect.dev/convert", "trainingRuntimeSpec": runtime}]


def _plain_env(work: _Work) -> Iterator[tuple[str, str]]:
    for each in work.container.get("env") or ():
        if "valueFrom" not in each:
            yield each["name"], each.get("value") or ""


def _secrets(work: _Work) -> Iterator[Json]:
    for each in work.container.get("env") or ():
        source = at(each, "valueFrom", "secretKeyRef")
        if source:
            yield {"env": each["name"], "name": source.get("name"), "key": source.get("key")}
        elif "valueFrom" in each:
            work.note(
                f"The variable “{each['name'][:60]}” has no equivalent and is left out.",
                severity="warning",
            )


def _resources(work: _Work) -> Json:
    found = {
        name: at(work.resources, *resource_path(work.resources, name)) for name in ("cpu", "memory")
    }
    gpu = at(work.resources, *resource_path(work.resources, "gpu"))
    shared = [
        at(volume, "emptyDir", "sizeLimit")
        for volume in work.pod.get("volumes") or ()
        for mount in work.container.get("volumeMounts") or ()
        if mount["mountPath"] == _SHM and mount["name"] == volume["name"]
    ]
    return _without_empty(
        {**found, "gpu": int(gpu) if gpu else None, "shared_memory": shared[0] if shared else None}
    )


def _claims(work: _Work) -> Iterator[Json]:
    volumes = {each["name"]: each for each in work.pod.get("volumes") or ()}
    for mount in work.container.get("volumeMounts") or ():
        claim = at(volumes.get(mount["name"]), "persistentVolumeClaim", "claimName")
        if claim:
            yield _without_empty(
                {
                    "claim": claim,
                    "path": mount["mountPath"],
                    "sub_path": mount.get("subPath"),
                    "read_only": mount.get("readOnly") or None,
                }
            )
        elif mount["mountPath"] != _SHM:
            work.note(
                f"What is mounted at “{mount['mountPath'][:80]}” is no claim and is left out.",
                severity="warning",
            )


def _tolerations(pod: Json) -> Iterator[Json]:
    for each in pod.get("tolerations") or ():
        known = {key: each[key] for key in ("key", "operator", "value", "effect") if key in each}
        if known:
            yield known


def _note_left(work: _Work, names: Iterable[str]) -> None:
    if listed := ", ".join(f"“{name}”" for name in sorted(names)):
        work.note(f"{listed} of the pod has no equivalent and is left out.", severity="warning")


def _without_empty(values: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in values.items() if value not in (None, [], {}, "")}
