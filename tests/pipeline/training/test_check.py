"""Training jobs in YAML: every fault has its line, and what has one remedy is mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyterlab_convect.pipeline.training.job_check import check, is_training_job, mend

from .jobs import GOOD, MPI_JOB, TRAIN_JOB

SEED = Path(__file__).parents[4] / "shared/corpus/seeds/job.yaml"


def line_of(text: str, words: str) -> int:
    return next(n for n, line in enumerate(text.split("\n"), 1) if words in line)


@pytest.mark.parametrize("text", [GOOD, TRAIN_JOB, MPI_JOB, f"{GOOD}---\n{TRAIN_JOB}"])
def test_a_good_job_has_no_faults(text: str) -> None:
    assert check(text) == []
    assert mend(text) == (text, [])


@pytest.mark.parametrize("indent", [0, 8, 10, 13, 18])
def test_a_line_that_is_indented_wrongly_is_found_and_mended(indent: int) -> None:
    right = "              image: registry:5000/train:v1\n              args"
    broken = GOOD.replace(right, f"{' ' * indent}image: registry:5000/train:v1\n              args")
    (fault,) = check(broken)
    assert fault.line == 14
    assert fault.message == (
        f"“image” is indented by {indent} spaces, but the lines around it by 14."
    )
    assert mend(broken)[0] == GOOD


@pytest.mark.parametrize(
    ("old", "new", "words", "message"),
    [
        ("kind: PyTorchJob", "kind: PytorchJob", "kind", "“PytorchJob” is not a training job"),
        ("kubeflow.org/v1", "kubeflow.org/v2", "apiVersion", "apiVersion” of a PyTorchJob is"),
        ("  name: train", "  nam: train", "nam: train", "no name in “metadata”"),
        ("pytorchReplicaSpecs", "pytorchReplicaSpec", "ReplicaSpec:", "has no property"),
        ("    Worker:", "    Slave:", "Slave", "has no property “Slave”"),
        ("OnFailure", "Sometimes", "Sometimes", "must be one of Always"),
        ("replicas: 1", "replicas: 2", "replicas: 2", "There is one “Master”, not 2"),
        ("replicas: 2", "replicas: two", "replicas: two", "must be a whole number"),
        ("              args", "              arg", "arg:", "has no property “arg”"),
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


def test_numbers_that_must_be_text_are_put_in_quotes() -> None:
    text = GOOD.replace('["--backend", "gloo"]', "[--epochs, 10, --轮, yes]  # 十")
    assert [(fault.line, fault.message, fault.is_mended) for fault in check(text)] == [
        (15, "“args[1]” must be text.", True),
        (15, "“args[3]” must be text.", True),
    ]
    mended, _ = mend(text)
    assert '[--epochs, "10", --轮, "yes"]  # 十' in mended
    assert check(mended) == []


def test_what_is_no_training_job_beside_one_is_left_alone() -> None:
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: y}\n"
    assert check(f"{other}---\n{GOOD}") == []
    assert check(other)
    assert is_training_job(GOOD)
    assert not is_training_job(other)


def test_properties_of_a_container_in_the_pod() -> None:
    text = GOOD.replace("              image: registry", "          image: registry").replace(
        "              args", "          args"
    )
    faults = check(text)
    assert [fault.message for fault in faults if fault.line == 14] == [
        "“image” belongs to a container."
    ]


def test_aliases_that_unfold_without_end_are_refused_soon() -> None:
    layers = "".join(f"  l{n}: &l{n} [{','.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 12))
    text = GOOD.replace("  name: train", f"  name: train\n  annotations:\n  l0: &l0 [x]\n{layers}")
    assert check(text)
    assert check("a: " + "[" * 5000)
    assert check("x" * 300_000)[0].message == "A job has at most 256 KiB of text."


@pytest.mark.skipif(not SEED.exists(), reason="The collected files are not here.")
def test_the_file_of_a_guide_is_mended() -> None:
    text = SEED.read_text()
    (indent,) = (fault for fault in check(text) if fault.is_mended)
    assert indent.line == 17
    assert "“image” is indented by 8 spaces" in indent.message
    mended, _ = mend(text)
    left = check(mended)
    assert [fault.line for fault in left] == [17, 32]
    assert all("is not the name of an image" in fault.message for fault in left)
    assert check(mended.replace("<YOUR_REPO>", "registry")) == []
