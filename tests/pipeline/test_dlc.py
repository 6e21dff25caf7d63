"""Parameter files of DLC, in both dialects, as a pipeline of one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.dlc import read_params
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.pipeline.validate import validate

LIGHT = """\
# a job of the light edition
name=训练
kind=PyTorchJob
worker_count=2
worker_cpu=4
worker_gpu=1
worker_gpu_type=NVIDIA-L20Y
worker_memory=4
worker_shared_memory=256Mi
worker_image=registry:5000/pytorch:v1

command=echo "hello world" a=b
priority=1
workspace_id=w1
interactive=true
"""
PUBLIC = """\
name = job
command = python train.py
workers = 1
worker_memory = 16Gi
envs = A=1, B=x=y
job_max_running_time_minutes = 90
aimaster_args = --enable-job-restart True --max-num-of-job-restart 3
"""


def node_of(text: str) -> Any:
    return read_params(text).document["nodes"]["job"]


def test_the_dialect_of_the_light_edition() -> None:
    job = read_params(LIGHT)
    assert (job.name, job.is_followed) == ("训练", True)
    assert job.document["nodes"]["job"] == {
        "kind": "command",
        "command": ["sh", "-c", 'echo "hello world" a=b'],
        "image": "registry:5000/pytorch:v1",
        "distributed": {"nodes": 2, "processes": 1},
        "resources": {
            "cpu": 4,
            "memory": "4Gi",
            "shared_memory": "256Mi",
            "gpu": {"count": 1, "type": "NVIDIA-L20Y"},
        },
    }
    assert [note.partition(" ")[0] for note in job.notes] == ["priority", "workspace_id"]


def test_the_dialect_of_the_public_service() -> None:
    node = node_of(PUBLIC)
    assert node["env"] == {"A": "1", "B": "x=y"}
    assert (node["timeout"], node["resources"]["memory"]) == (5400, "16Gi")
    assert node["distributed"] == {"nodes": 1, "processes": 1, "restarts": 3}


def test_one_worker_is_not_distributed_and_a_batch_never() -> None:
    assert "distributed" not in node_of("command=true\nworker_count=1")
    assert "distributed" not in node_of("command=true\nworker_count=4\nkind=BatchJob")
    assert node_of("command=true\nworkers=2\nkind=mpijob")["distributed"]["launcher"] == "mpi"


@pytest.mark.parametrize("text", [LIGHT, PUBLIC])
def test_what_comes_of_it_is_a_good_pipeline(text: str, tmp_path: Path) -> None:
    document = read_params(text).document
    assert [each for each in validate(document) if each.severity == "error"] == []
    assert resolve(document, root=tmp_path).step("job").kind == "command"


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ("command=true\nworker_cuont=2", "line 2: “worker_cuont” is not a key", "worker_count"),
        ("command=true\n\nworker_count=two", "line 3: “worker_count” must be a whole", None),
        ("name", "line 1: “name” is not key=value", None),
        ("command=a\ncommand=b", "line 2: “command” is there already, in line 1", None),
        ("command=true\nkind=SparkJob", "line 2: “kind” must be one of PyTorchJob", None),
        ("command=true\ninteractive=maybe", "line 2: “interactive” must be true or false", None),
        ("name=x", "has no “command”", None),
    ],
)
def test_mistakes_have_their_line(text: str, sentence: str, hint: str | None) -> None:
    with pytest.raises(ConvectError) as caught:
        read_params(text, "job.params")
    assert sentence in caught.value.sentence
    assert hint is None or hint in (caught.value.hint or "")
