"""A plan leaves nothing to look up and is the same on every machine."""

from __future__ import annotations

import copy
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.errors import ConvectError, Missing, Refused
from jupyterlab_convect.pipeline.plan import (
    Amount,
    Distributed,
    Gpu,
    Plan,
    Retries,
    Secret,
    SourceFile,
    Toleration,
    Volume,
    from_json,
    to_json,
)
from jupyterlab_convect.pipeline.resolve import plan_for_file, resolve


def test_every_step_is_explicit(churn: dict[str, Any], root: Path) -> None:
    plan = resolve(churn, root=root, path="churn.pipeline", parameters={"lr": 1})  # type: ignore[arg-type]
    assert plan.name == "churn"
    assert plan.parameters == {"lr": 1.0}
    assert [step.id for step in plan.steps] == ["prepare", "train"]
    train = plan.step("train")
    assert train.after == ("prepare",)
    assert train.image == "registry/ds:2026.1"
    assert train.kernel == "python3"
    assert train.parameters == {"lr": 1.0, "rows": "${{ nodes.prepare.outputs.rows }}"}
    assert isinstance(train.parameters["lr"], float)
    assert train.resources.cpu == Amount("500m")
    assert train.resources.gpu == Gpu(1.0, "NVIDIA-A100")
    assert train.retries == Retries(2)
    assert train.timeout == 7200
    content = (root / "train.ipynb").read_bytes()
    assert train.digest == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert from_json(Plan, to_json(plan)) == plan


def test_the_plan_does_not_depend_on_place_or_key_order(
    churn: dict[str, Any], root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(root, elsewhere)
    turned = {key: churn[key] for key in reversed(churn)}
    turned["nodes"] = {key: churn["nodes"][key] for key in reversed(churn["nodes"])}
    first, second = resolve(churn, root=root), resolve(turned, root=elsewhere)  # type: ignore[arg-type]
    assert first.digest == second.digest


def test_moving_a_node_does_not_change_the_plan(churn: dict[str, Any], root: Path) -> None:
    before = resolve(churn, root=root).digest  # type: ignore[arg-type]
    churn["layout"]["train"] = [9, 9]
    churn["comments"] = {"note": {"text": "hello"}}
    churn["nodes"]["group"] = {"kind": "group", "members": ["train"]}
    assert resolve(churn, root=root).digest == before  # type: ignore[arg-type]


def test_defaults_run_settings_and_node_are_merged_in_this_order(
    churn: dict[str, Any], root: Path
) -> None:
    churn["defaults"] |= {
        "env": {"A": "default", "B": "default", "C": "default"},
        "secrets": [{"env": "S", "name": "s", "key": "default"}],
        "volumes": [{"claim": "one", "path": "/one"}, {"claim": "two", "path": "/two"}],
        "retries": {"count": 1, "delay": 5},
        "kubernetes": {"labels": {"a": "1"}, "tolerations": [{"operator": "Exists"}]},
    }
    churn["nodes"]["prepare"] |= {
        "env": {"C": "node"},
        "secrets": [{"env": "S", "name": "s", "key": "node"}],
        "volumes": [{"claim": "three", "path": "/two", "read_only": True}],
        "resources": {"memory": {"limit": "4Gi"}},
        "kubernetes": {"labels": {"b": "2"}},
    }
    settings = {"env": {"B": "run", "C": "run"}, "image": "run:1", "timeout": 5}
    step = resolve(churn, root=root, settings=settings).step("prepare")  # type: ignore[arg-type]
    assert step.env == {"A": "default", "B": "run", "C": "node"}
    assert step.secrets == (Secret("S", "s", "node"),)
    assert step.volumes == (Volume("one", "/one"), Volume("three", "/two", read_only=True))
    assert step.image == "run:1"
    assert step.timeout == 5
    assert step.retries == Retries(1, 5.0, 2.0)
    assert step.resources.memory == Amount(None, "4Gi")
    assert step.kubernetes.labels == {"a": "1", "b": "2"}
    assert step.kubernetes.tolerations == (Toleration(operator="Exists"),)


def test_components_keep_their_image_and_bring_their_definition(
    churn: dict[str, Any], root: Path
) -> None:
    (root / "notes.txt").write_text("x")
    definition = {"name": "Add", "inputs": [{"name": key} for key in ("lr", "rows", "text")]}
    churn["components"] = {"sha256:1": definition, "sha256:2": {"name": "unused"}}
    churn["nodes"]["add"] = {
        "kind": "component",
        "component": "sha256:1",
        "inputs": {
            "lr": "${{ parameters.lr }}",
            "rows": "${{ nodes.prepare.outputs.rows }}",
            "text": {"file": "notes.txt"},
        },
    }
    plan = resolve(churn, root=root)  # type: ignore[arg-type]
    step = plan.step("add")
    assert plan.components == {"sha256:1": definition}
    assert step.image is None
    assert step.after == ("prepare",)
    assert step.parameters == {
        "lr": 0.1,
        "rows": "${{ nodes.prepare.outputs.rows }}",
        "text": {"file": "notes.txt"},
    }
    assert [item.path for item in step.dependencies] == ["notes.txt"]


def test_paths_are_relative_to_the_root(
    churn: dict[str, Any], root: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(root / "sub/deep/prepare.ipynb", ("outputs", "rows = 1"))
    (root / "sub/deep/data").mkdir()
    for name in ("a.csv", "b.csv", ".hidden.csv"):
        (root / "sub/deep/data" / name).write_text(name)
    churn["nodes"]["prepare"] |= {
        "path": "deep/prepare.ipynb",
        "dependencies": ["data", "../../*.ipynb", "none*"],
        "working_folder": "source",
    }
    churn["nodes"]["train"] |= {"path": "../train.ipynb", "working_folder": "./isolated"}
    plan = resolve(churn, root=root, path="sub/churn.pipeline")  # type: ignore[arg-type]
    prepare = plan.step("prepare")
    assert prepare.path == "sub/deep/prepare.ipynb"
    assert [item.path for item in prepare.dependencies] == [
        "prepare.ipynb",
        "sub/deep/data/a.csv",
        "sub/deep/data/b.csv",
        "train.ipynb",
    ]
    digest = hashlib.sha256(b"a.csv").hexdigest()
    assert SourceFile("sub/deep/data/a.csv", f"sha256:{digest}") in prepare.dependencies
    assert plan.step("train").working_folder == "sub/isolated"


def test_commands_are_bound(churn: dict[str, Any], root: Path) -> None:
    churn["nodes"] = {
        "say": {
            "kind": "command",
            "command": ["echo", "lr=${{ parameters.lr }}", "${{ parameters.lr }}", "${{ run.id }}"],
            "env": {"LR": "${{ parameters.lr }}"},
        }
    }
    step = resolve(churn, root=root).step("say")  # type: ignore[arg-type]
    assert step.command == ("echo", "lr=0.1", "0.1", "${{ run.id }}")
    assert step.env == {"LR": "0.1"}


def test_a_document_is_not_changed(churn: dict[str, Any], root: Path) -> None:
    before = copy.deepcopy(churn)
    resolve(churn, root=root)  # type: ignore[arg-type]
    assert churn == before


def test_errors_are_raised_with_their_code(churn: dict[str, Any], root: Path) -> None:
    churn["nodes"]["prepare"]["after"] = ["train"]
    with pytest.raises(Refused) as caught:
        resolve(churn, root=root)  # type: ignore[arg-type]
    assert caught.value.code == "cycle"
    churn["nodes"]["prepare"]["after"] = 3
    with pytest.raises(ConvectError) as malformed:
        resolve(churn, root=root)  # type: ignore[arg-type]
    assert (malformed.value.status, malformed.value.code) == (400, "wrong-type")
    with pytest.raises(Refused, match="nothing to run"):
        resolve({"convect": 1, "nodes": {}}, root=root)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"imagee": "x"}, "unknown-property"),
        ({"resources": {"memory": "2GB"}}, "bad-quantity"),
        ({"env": {"A": "${{ nodes.prepare.outputs.rows }}"}}, "misplaced-expression"),
        ({"kubernetes": {"labels": {"a b": "c"}}}, "bad-label"),
        ([1], "wrong-type"),
    ],
)
def test_the_settings_of_a_run_are_checked(
    churn: dict[str, Any], root: Path, settings: Any, code: str
) -> None:
    with pytest.raises(ConvectError) as caught:
        resolve(churn, root=root, settings=settings)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_a_single_notebook_is_a_pipeline_of_one_node(
    tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(tmp_path / "sub/训练 1.ipynb", ("parameters", "lr = 0.1"), kernel="mine")
    plan = plan_for_file("sub/训练 1.ipynb", tmp_path, {"lr": 2}, {"resources": {"cpu": 2}})
    assert plan.name == "训练 1"
    assert plan.path == "sub/训练 1.ipynb"
    (step,) = plan.steps
    assert (step.id, step.kind, step.path) == ("训练-1", "notebook", "sub/训练 1.ipynb")
    assert step.kernel == "mine"
    assert step.parameters == plan.parameters == {"lr": 2}
    assert step.resources.cpu == Amount("2")


def test_a_single_script(tmp_path: Path) -> None:
    (tmp_path / "___.sh").write_text("true")
    (step,) = plan_for_file("___.sh", tmp_path).steps
    assert (step.id, step.kind, step.kernel) == ("___", "script", None)


def test_files_that_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(Missing):
        plan_for_file("none.py", tmp_path)
    with pytest.raises(ConvectError, match="neither a notebook nor a script"):
        plan_for_file("a.txt", tmp_path)
    with pytest.raises(Refused, match="outside"):
        plan_for_file("../x.py", tmp_path)


@pytest.mark.parametrize(
    ("processes", "resources", "expected"),
    [
        (3, {}, 3),
        (2.0, {}, 2),
        ("gpu", {"gpu": 4}, 4),
        ("gpu", {"gpu": {"count": 0.5}}, 1),
        ("cpu", {"cpu": "2500m"}, 2),
        ("cpu", {}, "cpu"),
    ],
)
def test_how_many_processes_there_are_is_in_the_plan(
    tmp_path: Path, processes: Any, resources: Any, expected: Any
) -> None:
    node = {
        "kind": "command",
        "command": ["true"],
        "resources": resources,
        "distributed": {"processes": processes, "restarts": 1},
    }
    document: Any = {"convect": 1, "nodes": {"c": node}}
    plan = resolve(document, root=tmp_path)
    assert plan.step("c").distributed == Distributed(processes=expected, restarts=1)
    assert from_json(Plan, to_json(plan)) == plan


def test_a_run_distributes_a_notebook_only_if_it_is_the_only_node(
    churn: dict[str, Any], root: Path
) -> None:
    first = churn["nodes"]["prepare"]
    settings: Any = {"distributed": {"processes": 2}}
    churn["nodes"] = {"prepare": first, "again": first}
    with pytest.raises(Refused, match="Only a notebook, a script or a command"):
        resolve(churn, root=root, settings=settings)  # type: ignore[arg-type]
    churn["nodes"] = {"prepare": first}
    plan = resolve(churn, root=root, settings=settings)  # type: ignore[arg-type]
    assert plan.step("prepare").distributed == Distributed(processes=2)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": "a"},
        {"steps": [None]},
        {"steps": [{"id": ["a"], "kind": "script", "name": "a"}]},
        {"steps": [{"id": "a", "kind": "script", "name": "a", "after": "b"}]},
        {"steps": [{"id": "a", "kind": "script", "name": "a", "retries": 2**63}]},
        {"steps": [{"id": "a", "kind": "script", "name": "a", "timeout": 10**400}]},
        {"components": []},
        {"name": None},
    ],
)
def test_what_is_not_of_its_type_is_not_read(change: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        from_json(Plan, {"name": "p", "steps": [], **change})


def test_a_number_is_read_however_it_is_written() -> None:
    written = {"id": "a", "kind": "script", "name": "a", "timeout": 10**30}
    found = from_json(Plan, {"name": "p", "steps": [{**written, "unknown": 1}]})
    assert found.steps[0].timeout == 1e30


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("${{ parameters.auc >= 0.8 }}", "Skipped: auc >= 0.8 was false, auc was 0.71."),
        ("${{ false }}", "Skipped: its condition is false."),
        ("${{ parameters.auc < 0.8 }}", None),
    ],
)
def test_a_condition_of_parameters_says_why_it_is_false(
    root: Path, when: str, said: str | None
) -> None:
    node = {"kind": "command", "command": ["true"], "when": when}
    document: Any = {
        "convect": 1,
        "parameters": {"auc": {"type": "number", "default": 0.71}},
        "nodes": {"good": node},
    }
    (step,) = resolve(document, root=root).steps
    assert step.why_not == said
