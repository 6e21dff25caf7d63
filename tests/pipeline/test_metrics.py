"""Which metrics there will be, and which run is the best, told before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.files import FileCache
from jupyterlab_convect.pipeline.metrics import (
    Reported,
    larger_is_better,
    reported_by,
    require,
    suggest,
)
from jupyterlab_convect.pipeline.resolve import plan_for_file

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("loss", False),
        ("train_loss", False),
        ("valRMSE", False),
        ("val-rmse", False),
        ("log_loss", False),
        ("accuracy", True),
        ("top1_acc", True),
        ("r2", True),
        ("f1", True),
        ("testAuc", True),
        ("rows", None),
        ("temperature", None),
        ("glossy", None),
    ],
)
def test_a_name_says_what_is_better(name: str, better: bool | None) -> None:
    assert larger_is_better(name) is better


@pytest.mark.parametrize(
    ("metrics", "outputs", "select"),
    [
        (["train_loss"], ["train_accuracy"], "min:train_loss"),
        (["y"], [], "max:y"),
        (["rows", "auc"], [], "max:auc"),
        (["train_loss", "val_loss"], [], "min:val_loss"),
        (["loss", "accuracy"], [], None),
        ([], ["accuracy", "rows"], "max:accuracy"),
        ([], ["rows"], None),
        ([], [], None),
    ],
)
def test_the_best_is_told_by_itself_where_that_is_plain(
    metrics: list[str], outputs: list[str], select: str | None
) -> None:
    assert suggest(Reported(tuple(metrics), tuple(outputs))) == select


def reported(folder: Path, name: str, settings: dict[str, object] | None = None) -> Reported:
    return reported_by(plan_for_file(name, folder, settings=settings), FileCache(folder))


def test_metrics_are_found_in_notebooks_modules_and_patterns(
    tmp_path: Path, write_notebook: Write
) -> None:
    (tmp_path / "local.py").write_text("import jupyterlab_convect as c\nc.metric('auc', 1)\n")
    write_notebook(
        tmp_path / "n.ipynb",
        "%%time\nimport numpy, local\nfrom jupyterlab_convect import metric as tell",
        "model.eval()\ntell('loss', 0.1, step=3)\ntell(name='gain', value=1)",
        ("outputs", "rows = 3"),
    )
    found = reported(tmp_path, "n.ipynb", {"metrics": {"lr": "lr=(.*)"}})
    assert found == Reported(("lr", "loss", "gain", "auc"), ("rows",), complete=True)


@pytest.mark.parametrize(
    "cell",
    [
        "from jupyterlab_convect import metric\nfor name in 'ab': metric(name, 1)",
        "from jupyterlab_convect import metric\ntrain(callback=metric)",
        "from jupyterlab_convect import *",
        "!python train.py",
        "%run other.ipynb",
        "import subprocess",
        "import somebodys_library",
    ],
)
def test_what_cannot_be_seen_is_not_denied(
    tmp_path: Path, write_notebook: Write, cell: str
) -> None:
    write_notebook(tmp_path / "n.ipynb", cell)
    found = reported(tmp_path, "n.ipynb")
    assert not found.complete
    require("anything", found)


def test_a_metric_that_does_not_exist_is_refused_with_what_was_meant() -> None:
    known = Reported(("train_loss",), ("train_accuracy",))
    require("train_accuracy", known)
    with pytest.raises(Refused, match="There is no metric “train_acuracy”") as refused:
        require("train_acuracy", known)
    assert refused.value.hint == "Did you mean “train_accuracy”?"
    with pytest.raises(Refused, match="nothing is reported"):
        require("loss", Reported())
