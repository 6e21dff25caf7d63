"""The operators that run the pods of a distributed step together, and the Job that needs none.

Each of them wraps the indexed Job of an attempt, as `manifests.job` makes it, into its own object:
the same pods with the same runner, one for each node. What becomes of them is read from the pods
and from what their runners leave, never from the status of the object alone: a PyTorchJob counts
as running when one pod of it does, and as succeeded when one pod of an elastic one has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from ...errors import Refused
from ...pipeline.plan import Distributed
from . import jobs
from .objects import Object, seconds_of

Manifest = dict[str, Any]
AUTO, NONE = "auto", "none"
TRAINING = "training.kubeflow.org/"
JOB_SET = "jobset.sigs.k8s.io/"
NODE, MASTER = "CONVECT_NODE", "CONVECT_MASTER"
PORT = 29500
SILENT = 20.0
"""Seconds after which an operator that has said nothing of its object counts as absent."""


@dataclass(frozen=True)
class Operator:
    kind: str
    """Of its object; documents name it so."""
    version: str
    plurals: tuple[str, ...]
    """What is made, in this order; the last one is the object that is followed."""
    wrap: Callable[[Manifest], list[Manifest]]
    launchers: Collection[str] = ()
    """Those for which it is chosen where nothing else is asked for."""
    keeps: bool = True
    """Whether its object is removed by the cluster itself some time after it has ended."""
    is_elastic: bool = False
    """Whether it lets the other pods go on when one is lost, and does not start that one again."""
    children: tuple[str, ...] = field(default=())
    """How the names of what it makes for the pods end: what is wrong with them is told there."""

    @property
    def plural(self) -> str:
        return self.plurals[-1]


def _job(job: Manifest) -> list[Manifest]:
    return [job]


def _pytorch(job: Manifest) -> list[Manifest]:
    # Without a master: one that has ended would end the workers, whatever they are doing.
    roles = {"Worker": _role(job, "pytorch", job["spec"]["completions"], "{name}-worker-0")}
    return [_object(job, PYTORCH, {"runPolicy": _policy(job), "pytorchReplicaSpecs": roles})]


def _tensorflow(job: Manifest) -> list[Manifest]:
    roles = {"Worker": _role(job, "tensorflow", job["spec"]["completions"], "{name}-worker-0")}
    spec = {"runPolicy": _policy(job), "successPolicy": "AllWorkers", "tfReplicaSpecs": roles}
    return [_object(job, TENSORFLOW, spec)]


def _train(job: Manifest) -> list[Manifest]:
    """With a runtime of its own, because a TrainJob alone cannot say all that a pod needs."""
    name = job["metadata"]["name"]
    template = _template(job, "node", "{name}-node-0-0.{name}", jobs.INDEX_PATH)
    replicated = {
        "name": "node",
        "replicas": 1,
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            # Without both, JobSet would start a failed pod again, and say nothing.
            "spec": {**_failures(job), "template": template},
        },
    }
    runtime = {
        "apiVersion": TRAIN.version,
        "kind": "TrainingRuntime",
        "metadata": {
            **_metadata(job),
            "labels": {**job["metadata"]["labels"], "trainer.kubeflow.org/framework": "torch"},
        },
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [replicated]}},
        },
    }
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": name}
    trainer = {"numNodes": job["spec"]["completions"]}
    return [
        runtime,
        _object(job, TRAIN, {"runtimeRef": reference, "trainer": trainer, **_suspend(job)}),
    ]


def _mpi(job: Manifest) -> list[Manifest]:
    """Its launcher is the first node. No ssh is needed: runners start what mpirun asks for."""
    first = "{name}-launcher.{name}"
    roles = {
        "Launcher": _role(job, "mpi", 1, first),
        "Worker": _role(job, "mpi", job["spec"]["completions"] - 1, first),
    }
    # The workers have something to say after the launcher has ended; then we delete all of it.
    policy = {**_policy(job), "cleanPodPolicy": "None", "backoffLimit": 0}
    spec = {"runLauncherAsWorker": True, "slotsPerWorker": 1, "mpiReplicaSpecs": roles}
    return [_object(job, MPI, {**spec, "runPolicy": policy})]


JOB = Operator("Job", "batch/v1", ("jobs",), _job, is_elastic=True)
TRAIN = Operator(
    "TrainJob",
    "trainer.kubeflow.org/v1alpha1",
    ("trainingruntimes", "trainjobs"),
    _train,
    ("torchrun", "plain"),
    keeps=False,
    children=("-node-0",),
    is_elastic=True,
)
PYTORCH = Operator(
    "PyTorchJob", "kubeflow.org/v1", ("pytorchjobs",), _pytorch, ("torchrun", "plain")
)
TENSORFLOW = Operator("TFJob", "kubeflow.org/v1", ("tfjobs",), _tensorflow)
MPI = Operator(
    "MPIJob",
    "kubeflow.org/v2beta1",
    ("mpijobs",),
    _mpi,
    ("mpi",),
    keeps=False,
    children=("-launcher",),
)
OPERATORS = (TRAIN, PYTORCH, TENSORFLOW, MPI)
"""The first that the cluster has is chosen."""
_BY_KIND = {each.kind: each for each in (JOB, *OPERATORS)}


def operator_of(kind: str | None) -> Operator:
    """By what the handle of an attempt says; a Job if it says nothing."""
    return _BY_KIND[kind or JOB.kind]


def choose(how: Distributed | None, there: Collection[Operator], *, queued: bool) -> Operator:
    """What runs a step, of the operators that the cluster has and that we may use.

    `queued`: a queue of Kueue lets it in, which knows Jobs on every cluster. Refused when the one
    that is asked for is not there.
    """
    if how is None or how.operator == NONE:
        return JOB
    if how.operator != AUTO:
        wanted = _BY_KIND[how.operator]
        if wanted not in there:
            raise Refused(
                f"No {wanted.kind} of {wanted.version} can be created in the cluster.",
                code="no-operator",
                hint="Its operator has to be installed, and your account needs the rights in "
                f"`deploy/`; or set “operator” to `{NONE}`.",
            )
        if how.is_elastic and not wanted.is_elastic:
            raise Refused(
                f"A {wanted.kind} cannot continue with fewer nodes: its operator starts a lost pod "
                "again, or ends all others.",
                code="not-elastic",
                hint=f"Set “operator” to `{TRAIN.kind}` or `{NONE}`, or leave “min_nodes” out.",
            )
        if how.nodes == 1 and wanted is MPI:
            raise Refused(
                "An MPIJob needs at least two nodes.",
                code="no-operator",
                hint=f"Ask for more nodes, or set “operator” to `{NONE}`.",
            )
        return wanted
    if how.nodes == 1 or queued:
        return JOB
    fitting = (each for each in there if how.launcher in each.launchers)
    return next((each for each in fitting if each.is_elastic or not how.is_elastic), JOB)


def place_of(pod: Object) -> tuple[str, int]:
    """The name of the object that a pod belongs to, and its number there."""
    labels = pod["metadata"].get("labels") or {}
    if name := labels.get(f"{JOB_SET}jobset-name"):
        return name, int(labels.get(jobs.INDEX, 0))
    if name := labels.get(f"{TRAINING}job-name"):
        return name, int(labels.get(f"{TRAINING}replica-index", 0))
    return labels.get(jobs.JOB, ""), int(labels.get(jobs.INDEX, 0))


def as_job(item: Object) -> Object:
    """What an operator says of its object, where a Job says it."""
    if item.get("kind", JOB.kind) == JOB.kind:
        return item
    spec = item.get("spec") or {}
    policy = spec.get("runPolicy") or spec
    return {**item, "spec": {"suspend": bool(policy.get("suspend"))}}


def is_ignored(item: Object, now: float) -> bool:
    """Whether nobody has taken care of an operator's object for a while."""
    made = item["metadata"].get("creationTimestamp")
    is_ours = item.get("kind", JOB.kind) == JOB.kind
    return not is_ours and not item.get("status") and bool(made) and now > seconds_of(made) + SILENT


def _object(job: Manifest, operator: Operator, spec: Manifest) -> Manifest:
    return {
        "apiVersion": operator.version,
        "kind": operator.kind,
        "metadata": _metadata(job),
        "spec": spec,
    }


def _metadata(job: Manifest) -> Manifest:
    return dict(job["metadata"])


def _failures(job: Manifest) -> Manifest:
    names = ("backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes")
    return {name: job["spec"][name] for name in names if name in job["spec"]}


def _policy(job: Manifest) -> Manifest:
    return {
        # Those that run on when another has failed.
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": job["spec"]["ttlSecondsAfterFinished"],
        **_suspend(job),
    }


def _suspend(job: Manifest) -> Manifest:
    return {"suspend": True} if job["spec"].get("suspend") else {}


def _role(job: Manifest, container: str, count: int, first: str) -> Manifest:
    number = f"metadata.labels['{TRAINING}replica-index']"
    template = _template(job, container, first, number)
    return {"replicas": count, "restartPolicy": "Never", "template": template}


def _template(job: Manifest, container: str, first: str, number: str) -> Manifest:
    """The pods of the Job: `first` is how the first of them is reached, by a name of the cluster,
    and `number` where each finds which it is."""
    template = job["spec"]["template"]
    (step,) = template["spec"]["containers"]
    given: dict[str, Manifest] = {
        NODE: {"valueFrom": {"fieldRef": {"fieldPath": number}}},
        MASTER: {"value": f"{first.format(name=job['metadata']['name'])} {PORT}"},
    }
    env = [
        {"name": each["name"], **given[each["name"]]} if each["name"] in given else each
        for each in step["env"]
    ]
    renamed = {**step, "name": container, "env": env}
    return {**template, "spec": {**template["spec"], "containers": [renamed]}}
