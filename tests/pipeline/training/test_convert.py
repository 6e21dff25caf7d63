"""Training jobs as pipelines of one node, and as TrainJobs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.foreign import import_file
from jupyterlab_convect.pipeline.training.job_check import check
from jupyterlab_convect.pipeline.training.job_convert import UNKNOWN, as_train_job, import_job
from jupyterlab_convect.pipeline.validate import validate

from .jobs import GOOD, MPI_JOB, TRAIN_JOB

RICH = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: train
  labels: {team: 视觉}
spec:
  nprocPerNode: auto
  runPolicy: {activeDeadlineSeconds: 3600, backoffLimit: 2}
  pytorchReplicaSpecs:
    Worker:
      replicas: 3
      template:
        metadata:
          annotations:
            sidecar.istio.io/inject: "false"
        spec:
          nodeSelector: {pool: gpu}
          tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
          priorityClassName: high
          volumes:
            - name: data
              persistentVolumeClaim: {claimName: mnist}
            - name: shm
              emptyDir: {medium: Memory, sizeLimit: 2Gi}
          containers:
            - name: pytorch
              image: registry:5000/train:v1
              command: [torchrun, --nnodes=3, --nproc_per_node, "2", train.py]
              args: ["--lr", "0.1"]
              env:
                - {name: A, value: b}
                - name: TOKEN
                  valueFrom: {secretKeyRef: {name: s, key: k}}
              resources:
                requests: {cpu: 4, memory: 8Gi}
                limits: {nvidia.com/gpu: 2}
              volumeMounts:
                - {name: data, mountPath: /data, readOnly: true}
                - {name: shm, mountPath: /dev/shm}
"""


def node_of(text: str) -> dict[str, Any]:
    document, _ = import_job(text)
    errors = [problem for problem in validate(document) if problem.severity == "error"]
    assert errors == []
    (node,) = document["nodes"].values()
    return dict(node)


def test_a_job_becomes_a_node() -> None:
    assert node_of(RICH) == {
        "kind": "command",
        "command": ["python", "train.py", "--lr", "0.1"],
        "image": "registry:5000/train:v1",
        "env": {"A": "b"},
        "secrets": [{"env": "TOKEN", "name": "s", "key": "k"}],
        "resources": {"cpu": 4, "memory": "8Gi", "gpu": 2, "shared_memory": "2Gi"},
        "volumes": [{"claim": "mnist", "path": "/data", "read_only": True}],
        "distributed": {"nodes": 3, "processes": 2, "launcher": "torchrun"},
        "timeout": 3600,
        "kubernetes": {
            "node_selector": {"pool": "gpu"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "annotations": {"sidecar.istio.io/inject": "false"},
            "priority": "high",
        },
    }


def test_mpirun_becomes_our_launcher() -> None:
    node = node_of(MPI_JOB)
    assert node["command"] == ["python", "ring.py"]
    assert node["distributed"] == {"nodes": 2, "processes": 2, "launcher": "mpi"}
    assert node["resources"] == {"cpu": 2, "memory": "4Gi"}


def test_what_only_the_image_knows_is_asked_for() -> None:
    _, report = import_job(GOOD)
    assert node_of(GOOD)["command"] == [UNKNOWN, "--backend", "gloo"]
    assert [each.severity for each in report] == ["warning", "warning"]
    assert "names no command" in report[1].message


def test_a_train_job_becomes_a_node() -> None:
    node = node_of(TRAIN_JOB + "    image: i:1\n    command: [torchrun, -m, train]\n")
    assert node["distributed"] == {"nodes": 2, "processes": 1, "launcher": "torchrun"}
    assert node["command"] == ["python", "-m", "train"]


ELASTIC = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: elastic}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 4, maxRestarts: 3, nProcPerNode: 2}
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: pytorch, image: "i:1", command: [torchrun, a.py]}]}}
"""


def test_a_job_that_may_shrink_keeps_how_far() -> None:
    assert node_of(ELASTIC)["distributed"] == {
        "nodes": 4,
        "processes": 2,
        "launcher": "torchrun",
        "restarts": 3,
        "min_nodes": 1,
    }
    _, report = as_train_job(ELASTIC)
    assert "A TrainJob always has the same number of nodes." in [p.message for p in report]


def test_only_torchrun_can_shrink() -> None:
    document, report = import_job(ELASTIC.replace("torchrun, a.py", "python, a.py"))
    assert document["nodes"]["train"]["distributed"]["nodes"] == 2
    assert any("“elasticPolicy” is left out" in problem.message for problem in report)


def test_a_job_becomes_a_train_job() -> None:
    text, report = as_train_job(RICH)
    assert check(text) == []
    spec = yaml.safe_load(text)["spec"]
    assert spec["runtimeRef"] == {"name": "torch-distributed"}
    trainer = spec["trainer"]
    assert trainer["command"] == ["torchrun", "train.py", "--lr", "0.1"]
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (3, 2)
    assert trainer["resourcesPerNode"]["limits"] == {"nvidia.com/gpu": 2}
    (patch,) = spec["runtimePatches"]
    (job,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]
    assert pod["metadata"]["annotations"] == {"sidecar.istio.io/inject": "false"}
    assert [each["name"] for each in pod["spec"]["volumes"]] == ["data", "shm"]
    said = " ".join(problem.message for problem in report)
    assert "“priorityClassName” of the pod has no equivalent" in said


def test_python_becomes_torchrun() -> None:
    args = "              args"
    text = GOOD.replace(args, f'              command: ["python3"]\n{args}')
    made, report = as_train_job(text)
    assert yaml.safe_load(made)["spec"]["trainer"]["command"][0] == "torchrun"
    assert any("became “torchrun”" in problem.message for problem in report)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TRAIN_JOB, "already"),
        (GOOD.replace("PyTorch", "TF").replace("pytorch", "tf"), "Line"),
        (f"{GOOD}---\n{GOOD}", "There are 2 training jobs"),
        ("x: [", "Line"),
        ("", "Line"),
    ],
)
def test_what_cannot_be_converted_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConvectError, match=words):
        as_train_job(text)


def test_files_are_told_apart_by_their_endings() -> None:
    assert import_file(RICH.encode(), "job.YAML")[0]["name"] == "train"
    document, report = import_file(b"name=x\ncommand=ls\npriority=1\n", "a.params")
    node: dict[str, Any] = dict(document["nodes"]["job"])
    assert node["command"] == ["sh", "-c", "ls"]
    assert [each.message for each in report] == [
        "priority is not used: choose a class by “kubernetes.priority” in a pipeline."
    ]
    for data, name in ((b"\xff", "a.params"), (b"\xff", "a.yaml"), (b"{}", "a.pipeline")):
        with pytest.raises(ConvectError):
            import_file(data, name)
