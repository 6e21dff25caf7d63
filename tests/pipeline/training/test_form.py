"""A training job as a form: one value changes, and nothing else in the text."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.training.job_check import check
from jupyterlab_convect.pipeline.training.job_form import FormField, change, read_jobs

from .jobs import GOOD, MPI_JOB, TRAIN_JOB


def fields_of(text: str) -> dict[tuple[str, ...], FormField]:
    (job,) = read_jobs(text)
    return {(each.name, *each.roles): each for each in job.fields}


def test_what_is_the_same_for_all_roles_is_one_field() -> None:
    found = fields_of(GOOD)
    assert found["image", "Master", "Worker"].value == "registry:5000/train:v1"
    assert found["args", "Master"].value == ["--backend", "gloo"]
    assert found["args", "Worker"].value is None
    assert found["replicas", "Worker"].value == 2
    assert ("replicas", "Master") not in found
    assert found[("name",)].value == "train"


@pytest.mark.parametrize("text", [GOOD, MPI_JOB, TRAIN_JOB])
def test_every_field_can_be_set_and_taken_out(text: str) -> None:
    values: dict[str, Any] = {
        "text": "训练: #1",
        "whole": 7,
        "amount": "500m",
        "list": ["a b", "10", "轮"],
        "choice": "Never",
    }
    for key, each in fields_of(text).items():
        value = "All" if each.name == "clean_up" else values[each.kind]
        changed = change(text, each.paths, value)
        assert fields_of(changed)[key].value == value, (key, changed)
        again = change(changed, each.paths, None)
        found = [found for found in fields_of(again).values() if found.name == each.name]
        assert all(one.value is None for one in found if set(one.paths) & set(each.paths))


def test_comments_and_order_stay() -> None:
    text = GOOD.replace("replicas: 2", "replicas: 2  # 两个").replace("kind:", "# 注\nkind:")
    changed = change(text, fields_of(text)["replicas", "Worker"].paths, 3)
    assert changed == text.replace("replicas: 2  #", "replicas: 3  #")
    added = change(text, fields_of(text)["gpu", "Master", "Worker"].paths, 1)
    assert check(added) == []
    assert added.count("nvidia.com/gpu: 1") == 2
    assert change(added, fields_of(added)["gpu", "Master", "Worker"].paths, None).count("gpu") == 0


def test_flow_style_and_empty_values() -> None:
    text = MPI_JOB.replace("    cleanPodPolicy: Running\n", "").replace("runPolicy:", "runPolicy:")
    changed = change(text, fields_of(text)[("restarts",)].paths, 2)
    assert yaml.safe_load(changed)["spec"]["runPolicy"] == {"backoffLimit": 2}
    gpu = change(text, fields_of(text)["gpu", "Launcher", "Worker"].paths, 1)
    worker = yaml.safe_load(gpu)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert worker["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 1


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: [", (0, "a")),
        (GOOD, (3, "kind")),
        (GOOD, (0, "kind", "x")),
        ("a: &b {c: 1}\nd: *b\n", (0, "d", "c")),
        ("", (0, "a")),
    ],
)
def test_what_cannot_be_changed_is_refused(text: str, path: tuple[str | int, ...]) -> None:
    with pytest.raises(ConvectError, match="cannot be changed by the form"):
        change(text, [path], "x")


@pytest.mark.parametrize("text", ["", "a: [", "kind: PyTorchJob", "kind: TrainJob\nspec: 3", "- 1"])
def test_whatever_it_is_a_form_can_be_asked_for(text: str) -> None:
    for job in read_jobs(text):
        assert job.fields
