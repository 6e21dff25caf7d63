"""What is said before a run, from the plan alone."""

from __future__ import annotations

from typing import Any

import pytest

from jupyterlab_convect.pipeline.plan import Distributed, Step
from jupyterlab_convect.runtimes.base import Feature
from jupyterlab_convect.runtimes.kfp.runtime import KfpRuntime
from jupyterlab_convect.runtimes.kubernetes.checks import distributed, outside_the_folder
from jupyterlab_convect.runtimes.kubernetes.runtime import KubernetesRuntime


@pytest.mark.parametrize(
    "given",
    [
        {"parameters": {"data": "../data/x.csv", "n": 1}},
        {"defaults": {"data": "../data/x.csv"}},
        {"env": {"DATA": "../data/x.csv"}},
        {"command": ("cat", "../data/x.csv")},
    ],
)
def test_a_path_out_of_the_folder_is_named_before_the_run(given: Any) -> None:
    (found,) = outside_the_folder(Step("train", "script", "train", **given))
    assert (found.severity, found.node) == ("warning", "train")
    assert found.message.startswith("../data/x.csv leads out of the folder of “train”")


def test_a_path_in_the_folder_is_none_of_these() -> None:
    step = Step("train", "script", "train", parameters={"data": "data/x.csv", "dots": "..", "n": 1})
    assert outside_the_folder(step) == []


@pytest.mark.parametrize(
    ("how", "where", "sentence"),
    [
        (
            {"processes": "cpu"},
            "processes",
            "How many processes each node of “train” runs is not known before they start.",
        ),
    ],
)
def test_what_several_nodes_cannot_do(how: Any, where: str, sentence: str) -> None:
    step = Step("train", "script", "train", distributed=Distributed(nodes=2, **how))
    (found,) = distributed(step)
    assert (found.severity, found.node, found.path) == ("error", "train", ("distributed", where))
    assert found.message == sentence


def test_one_node_can_do_all_that_this_machine_can() -> None:
    how = Distributed(processes="cpu", launcher="mpi", restarts=2)
    assert list(distributed(Step("train", "script", "train", distributed=how))) == []
    assert Feature.DISTRIBUTED in KubernetesRuntime.features
    assert Feature.DISTRIBUTED not in KfpRuntime.features
