"""Which operator runs a distributed step, and what it is given."""

from __future__ import annotations

from typing import Any

import pytest

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.plan import Distributed, Step
from jupyterlab_convect.runtimes.kubernetes.api import ApiError
from jupyterlab_convect.runtimes.kubernetes.checks import by_operator
from jupyterlab_convect.runtimes.kubernetes.explain import explain
from jupyterlab_convect.runtimes.kubernetes.jobs import LONGEST_OF_MANY, job_name, make
from jupyterlab_convect.runtimes.kubernetes.manifests import PodContent, job
from jupyterlab_convect.runtimes.kubernetes.operators import (
    JOB,
    MPI,
    PYTORCH,
    SILENT,
    TENSORFLOW,
    TRAIN,
    Operator,
    as_job,
    choose,
    is_ignored,
    place_of,
)

from .test_manifests import DEFAULTS, RUN

TWO = Distributed(nodes=2)
STEP = Step("训练", "script", "train", distributed=TWO)


def wrapped(operator: Operator, **how: Any) -> list[dict[str, Any]]:
    made = job(RUN, STEP, 1, DEFAULTS, PodContent(("python3",), env={"A": "1"}), **how)
    return operator.wrap(made)


@pytest.mark.parametrize(
    ("how", "there", "chosen"),
    [
        (TWO, [], JOB),
        (TWO, [TRAIN, PYTORCH], TRAIN),
        (TWO, [PYTORCH, TENSORFLOW], PYTORCH),
        (TWO, [TENSORFLOW], JOB),
        (Distributed(nodes=1, processes=8), [TRAIN], JOB),
        (Distributed(nodes=2, operator="none"), [TRAIN], JOB),
        (Distributed(nodes=2, operator="TFJob"), [TRAIN, TENSORFLOW], TENSORFLOW),
        (Distributed(nodes=1, operator="PyTorchJob"), [PYTORCH], PYTORCH),
        (None, [TRAIN], JOB),
        (Distributed(nodes=2, launcher="mpi"), [TRAIN, PYTORCH, MPI], MPI),
        (Distributed(nodes=2, launcher="mpi"), [TRAIN, PYTORCH], JOB),
        (Distributed(nodes=3, min_nodes=2), [PYTORCH, TENSORFLOW], JOB),
        (Distributed(nodes=3, min_nodes=2), [TRAIN], TRAIN),
        (Distributed(nodes=3, min_nodes=3), [PYTORCH], PYTORCH),
    ],
)
def test_the_first_that_the_cluster_has_is_chosen(
    how: Distributed | None, there: list[Operator], chosen: Operator
) -> None:
    assert choose(how, there, queued=False) is chosen


def test_a_queue_is_given_a_job_unless_something_else_is_asked_for() -> None:
    assert choose(TWO, [TRAIN], queued=True) is JOB
    asked = Distributed(nodes=2, operator="TrainJob")
    assert choose(asked, [TRAIN], queued=True) is TRAIN


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        (
            Distributed(nodes=3, min_nodes=2, operator="PyTorchJob"),
            "A PyTorchJob cannot continue with fewer nodes",
        ),
        (Distributed(nodes=1, operator="MPIJob"), "An MPIJob needs at least two nodes"),
    ],
)
def test_what_an_operator_cannot_do_is_refused_before_the_run(
    how: Distributed, sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        choose(how, [TRAIN, PYTORCH, MPI], queued=False)


def test_an_mpi_job_has_the_first_node_as_its_launcher() -> None:
    (made,) = wrapped(MPI)
    spec = made["spec"]
    assert (made["apiVersion"], spec["runLauncherAsWorker"]) == ("kubeflow.org/v2beta1", True)
    roles = spec["mpiReplicaSpecs"]
    assert {name: role["replicas"] for name, role in roles.items()} == {"Launcher": 1, "Worker": 1}
    name = made["metadata"]["name"]
    for role in roles.values():
        (container,) = role["template"]["spec"]["containers"]
        env = {each["name"]: each for each in container["env"]}
        assert env["CONVECT_MASTER"]["value"] == f"{name}-launcher.{name} 29500"


def test_pods_of_an_elastic_step_may_be_lost() -> None:
    elastic = Step("a", "script", "a", distributed=Distributed(nodes=3, min_nodes=2))
    made = job(RUN, elastic, 1, DEFAULTS, PodContent(("python3",)))
    wanted = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
    assert made["spec"].items() >= wanted.items()
    assert "backoffLimit" not in made["spec"]
    runtime, _ = TRAIN.wrap(made)
    (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert replicated["template"]["spec"].items() >= wanted.items()


def test_an_operator_that_is_not_there_is_refused_before_the_run() -> None:
    asked = Distributed(nodes=2, operator="PyTorchJob")
    with pytest.raises(Refused, match="No PyTorchJob of kubeflow") as refused:
        choose(asked, [TRAIN], queued=False)
    (said,) = by_operator(STEP, refused.value)
    assert (said.severity, said.code, said.path) == (
        "error",
        "no-operator",
        ("distributed", "operator"),
    )
    (said,) = by_operator(STEP, TRAIN)
    assert said.message == "“train” would run as a TrainJob of trainer.kubeflow.org/v1alpha1."
    (said,) = by_operator(STEP, JOB)
    assert said.message == "“train” would run as a Job, without an operator."
    assert not list(by_operator(Step("a", "script", "a"), JOB))


@pytest.mark.parametrize(
    ("operator", "roles", "container"),
    [(PYTORCH, "pytorchReplicaSpecs", "pytorch"), (TENSORFLOW, "tfReplicaSpecs", "tensorflow")],
)
def test_an_operator_gets_the_pods_of_the_job(
    operator: Operator, roles: str, container: str
) -> None:
    (made,) = wrapped(operator)
    name = made["metadata"]["name"]
    assert (made["kind"], made["apiVersion"]) == (operator.kind, operator.version)
    (role,) = made["spec"][roles].items()
    assert (role[0], role[1]["replicas"], role[1]["restartPolicy"]) == ("Worker", 2, "Never")
    policy = made["spec"]["runPolicy"]
    assert (policy["cleanPodPolicy"], "suspend" in policy) == ("Running", False)
    pod = role[1]["template"]
    assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    (found,) = pod["spec"]["containers"]
    env = {item["name"]: item for item in found["env"]}
    assert (found["name"], env["A"]["value"]) == (container, "1")
    assert env["CONVECT_MASTER"]["value"] == f"{name}-worker-0 29500"
    number = "metadata.labels['training.kubeflow.org/replica-index']"
    assert env["CONVECT_NODE"]["valueFrom"] == {"fieldRef": {"fieldPath": number}}
    assert wrapped(operator, suspended=True)[0]["spec"]["runPolicy"]["suspend"] is True


def test_a_trainjob_has_a_runtime_of_its_own_that_never_starts_a_pod_again() -> None:
    runtime, made = wrapped(TRAIN, suspended=True)
    name = made["metadata"]["name"]
    assert made["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"] == name
    assert (made["spec"]["trainer"], made["spec"]["suspend"]) == ({"numNodes": 2}, True)
    (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    spec = replicated["template"]["spec"]
    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (0, "Never")
    env = {item["name"]: item for item in spec["template"]["spec"]["containers"][0]["env"]}
    assert env["CONVECT_MASTER"]["value"] == f"{name}-node-0-0.{name} 29500"


@pytest.mark.parametrize("step", ["train", "3d", "训练", "x" * 80, "3" * 80])
def test_names_leave_room_for_what_operators_add_and_begin_with_a_letter(step: str) -> None:
    name = job_name(RUN, step, 1, of_many=True)
    assert len(name) <= LONGEST_OF_MANY
    assert name[0].isalpha()
    assert (
        name == job_name(RUN, step, 1, of_many=True) != job_name(RUN, f"{step}y", 1, of_many=True)
    )


def test_the_place_of_a_pod() -> None:
    def pod(**labels: str) -> dict[str, Any]:
        return {"metadata": {"labels": {key.replace("__", "/"): labels[key] for key in labels}}}

    index = {"batch.kubernetes.io/job-completion-index": "1"}
    of_set = {**index, "jobset.sigs.k8s.io/jobset-name": "t"}
    of_job = {**index, "batch.kubernetes.io/job-name": "t"}
    of_torch = {"training.kubeflow.org/job-name": "t", "training.kubeflow.org/replica-index": "1"}
    for labels in (of_set, of_job, of_torch):
        assert place_of({"metadata": {"labels": labels}}) == ("t", 1)
    assert place_of(pod()) == ("", 0)


@pytest.mark.parametrize("spec", [{"suspend": True}, {"runPolicy": {"suspend": True}}])
def test_a_suspended_object_looks_like_a_suspended_job(spec: Any) -> None:
    assert as_job({"kind": "PyTorchJob", "metadata": {}, "spec": spec})["spec"]["suspend"] is True
    assert as_job({"kind": "PyTorchJob", "metadata": {}, "spec": {}})["spec"]["suspend"] is False


def test_an_operator_that_does_nothing_is_named() -> None:
    made = {"name": "t", "uid": "u", "creationTimestamp": "2026-11-17T10:00:00Z"}
    item = as_job({"kind": "PyTorchJob", "metadata": made, "spec": {}})
    then = 1794909600.0
    assert not is_ignored(item, then + SILENT)
    assert explain(item, None, now=then).reason == "Waiting for the cluster to create its pod."
    found = explain(item, None, now=then + SILENT + 1)
    assert found.reason == "Waiting: the operator has not begun to work on its PyTorchJob."
    said = {**item, "status": {"conditions": []}}
    assert not is_ignored({**said, "status": {"startTime": "x"}}, then + 100)
    failed = {"type": "Failed", "status": "True", "message": "no"}
    found = explain({**item, "status": {"conditions": [failed]}}, None, now=then)
    assert (found.state, found.reason) == ("failed", "Kubernetes marked the PyTorchJob as failed.")


def test_an_object_is_made_again_when_its_operator_has_not_seen_what_it_needs() -> None:
    """Its webhook looks into a cache that is a moment old."""
    (_, made), asked = wrapped(TRAIN), []

    class Late:
        def path(self, plural: str) -> str:
            return plural

        def create(self, path: str, manifest: dict[str, Any]) -> dict[str, Any]:
            asked.append(path)
            if len(asked) < 3:
                words = "specified trainingRuntime must be created before the TrainJob is created"
                raise ApiError(403, words, "Forbidden")
            return manifest

    assert make(Late(), "trainjobs", made) is made  # type: ignore[arg-type]
    assert asked == ["trainjobs"] * 3
