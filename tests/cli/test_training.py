"""Training jobs in YAML: every fault has its line, and indents are mended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyterlab_convect.cli import main
from jupyterlab_convect.cli.training_files import check, repair

GOOD = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: train
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: registry:5000/train:v1
              args: ["--backend", "gloo"]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: pytorch
              image: registry:5000/train:v1
"""
TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: train
spec:
  runtimeRef:
    name: torch-distributed
  trainer:
    numNodes: 2
"""


def line_of(text: str, words: str) -> int:
    return next(n for n, line in enumerate(text.split("\n"), 1) if words in line)


@pytest.mark.parametrize("text", [GOOD, TRAIN_JOB, f"{GOOD}---\n{TRAIN_JOB}"])
def test_a_good_job_has_no_faults(text: str) -> None:
    assert check(text) == []
    assert repair(text) == (text, [])


@pytest.mark.parametrize("indent", [0, 8, 10, 13, 18])
def test_a_line_that_is_indented_wrongly_is_found_and_mended(indent: int) -> None:
    right = "              image: registry:5000/train:v1\n              args"
    broken = GOOD.replace(right, f"{' ' * indent}image: registry:5000/train:v1\n              args")
    (fault,) = check(broken)
    assert fault.line == 14
    assert fault.message == (
        f"“image” is indented by {indent} spaces, but the lines around it by 14."
    )
    assert repair(broken)[0] == GOOD


@pytest.mark.parametrize(
    ("old", "new", "words", "message"),
    [
        ("kind: PyTorchJob", "kind: PytorchJob", "kind", "“PytorchJob” is not a training job"),
        ("kubeflow.org/v1", "kubeflow.org/v2", "apiVersion", "apiVersion” of a PyTorchJob is"),
        ("  name: train", "  nam: train", "nam: train", "no name in “metadata”"),
        ("pytorchReplicaSpecs", "pytorchReplicaSpec", "    Master", "has no property"),
        ("    Worker:", "    Slave:", "      replicas: 2", "has no property “Slave”"),
        ("OnFailure", "Sometimes", "Sometimes", "must be one of Always"),
        ("replicas: 1", "replicas: 2", "replicas: 2", "There is one “Master”, not 2"),
        ("replicas: 2", "replicas: two", "replicas: two", "must be a whole number"),
        ("              args", "              arg", "arg:", "A container has no property “arg”"),
        ("registry:5000/train:v1\n              a", "<REPO>/x\n              a", "<REPO>", "image"),
    ],
)
def test_faults_have_their_line(old: str, new: str, words: str, message: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    faults = check(text)
    assert (line_of(text, words), True) in [(f.line, message in f.message) for f in faults], faults


def test_a_container_of_another_name() -> None:
    text = GOOD.replace("name: pytorch", "name: main", 1)
    assert [fault.message for fault in check(text)] == [
        "One container of “Master” must be called “pytorch”."
    ]


@pytest.mark.parametrize("text", ["", "a: [", "kind: x", "- 1\n- 2", "\tkind: x", "a: b: c", "{}"])
def test_whatever_it_is_there_is_a_sentence(text: str) -> None:
    assert check(text)


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broken = GOOD.replace("              image", "        image", 1)
    Path("job.yaml").write_text(broken)
    assert main(["training", "check", "job.yaml"]) == 1
    assert "job.yaml:14: “image” is indented by 8 spaces" in capsys.readouterr().out
    assert Path("job.yaml").read_text() == broken
    assert main(["training", "check", "job.yaml", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["faults"][0]["line"] == 14
    assert main(["training", "check", "job.yaml", "--fix"]) == 0
    assert Path("job.yaml").read_text() == GOOD
    assert main(["training", "check", "none.yaml"]) == 2
