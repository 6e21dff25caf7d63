"""What a notebook or script asks for and gives, read without running it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.discovery import discover

PARAMETERS = '''
%matplotlib inline
import os
!pip list
lr: float = 1  # learning rate
# how many rounds
rounds = 10
name = "x"; other = 'y'
mode: Literal["fast", "slow"] = "fast"
limit: Optional[int] = None
depth = None  # type: int # how deep
many: list[str] = ["a"]
where = Path("x")
required: str
text = """
# not a comment
"""
after = {"a": 1}
'''


def parameters(path: Path) -> dict[str, Any]:
    found = discover(path).to_json()["parameters"]
    return {item.pop("name"): item for item in found}


def test_parameters_of_a_python_notebook(
    tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    found = parameters(write_notebook(tmp_path / "n.ipynb", "x = 1", ("parameters", PARAMETERS)))
    assert list(found) == [
        *("lr", "rounds", "name", "other", "mode", "limit", "depth"),
        *("many", "where", "required", "text", "after"),
    ]
    types = {name: item["type"] for name, item in found.items()}
    assert types == {
        "lr": "number",
        "rounds": "integer",
        "name": "string",
        "other": "string",
        "mode": "string",
        "limit": "integer",
        "depth": "integer",
        "many": "array",
        "where": None,
        "required": "string",
        "text": "string",
        "after": "object",
    }
    assert found["lr"]["help"] == "learning rate"
    assert found["rounds"]["help"] == "how many rounds"
    assert found["depth"]["help"] == "how deep"
    assert found["after"]["help"] is None
    assert found["mode"]["choices"] == ["fast", "slow"]
    assert found["many"]["default"] == ["a"]
    assert found["where"]["source"] == "Path('x')"
    assert [name for name, item in found.items() if item["required"]] == ["required"]


def test_only_the_first_tagged_cell_counts(
    tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    path = write_notebook(tmp_path / "n.ipynb", ("parameters", "a = 1"), ("parameters", "b = 2"))
    assert list(parameters(path)) == ["a"]


def test_a_cell_that_cannot_be_read_says_so(
    tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    path = write_notebook(tmp_path / "n.ipynb", ("parameters", "a = = 1"))
    assert discover(path).parameters is None


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("R", 'rounds <- 10L  # how many\nname = "x"\nfast <- TRUE\nlr <- 1e-3'),
        ("julia", 'rounds = 10  # how many\nname = "x"\nfast = true\nlr = 1e-3'),
        ("scala", 'val rounds = 10  // how many\nval name = "x"\nval fast = true\nval lr = 1e-3'),
        ("bash", "export rounds=10  # how many\nname='x'\nfast=true\nlr=1e-3"),
    ],
)
def test_parameters_in_other_languages(tmp_path: Path, language: str, source: str) -> None:
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": source}
    metadata = {"kernelspec": {"name": "k", "language": language}}
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": metadata}))
    found = parameters(path)
    assert {name: (item["type"], item["default"]) for name, item in found.items()} == {
        "rounds": ("integer", 10),
        "name": ("string", "x"),
        "fast": ("boolean", True),
        "lr": ("number", 0.001),
    }
    assert found["rounds"]["help"] == "how many"


def test_outputs_come_from_tagged_cells_and_calls(
    tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    path = write_notebook(
        tmp_path / "n.ipynb",
        "import jupyterlab_convect as jc\nfrom jupyterlab_convect import output",
        ("outputs", "rows = 1\na, (b, _c) = f()\nrows += 1\nhint: int\nx.y = 3"),
        "jc.output('d', 1); output('e', 2); print('f')",
    )
    assert discover(path).outputs == ("rows", "a", "b", "d", "e")


def test_environment_variables_that_are_read(
    tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    source = (
        "import os\nfrom os import environ, getenv\n"
        "os.environ['A']; os.getenv('B', 1); environ.get('C'); getenv('D'); os.environ['E'] = '1'"
    )
    assert discover(write_notebook(tmp_path / "n.ipynb", source)).env == ("A", "B", "C", "D")
    script = tmp_path / "s.R"
    script.write_text('x <- Sys.getenv("A")')
    assert discover(script).env == ("A",)
    shell = tmp_path / "s.sh"
    shell.write_text('# $NOT\nOWN=1\nfor i in 1 2; do echo "$i ${HOST:-x} $OWN"; done\n')
    assert discover(shell).env == ("HOST",)


def test_local_modules_with_what_they_import(
    tmp_path: Path, write_notebook: Callable[..., Path]
) -> None:
    files = {
        "helpers.py": "from pkg.sub import thing\nimport json",
        "pkg/__init__.py": "from . import low",
        "pkg/low.py": "from ..nowhere import x",
        "pkg/sub.py": "import helpers",
        "unused.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    path = write_notebook(tmp_path / "n.ipynb", "import numpy, helpers")
    assert discover(path).modules == ("helpers.py", "pkg/__init__.py", "pkg/low.py", "pkg/sub.py")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"cells": 3}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_no_notebook_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(content)
    with pytest.raises(ConvectError, match="not a notebook"):
        discover(path)


def test_odd_notebooks_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    cells = [1, {}, {"cell_type": "code", "metadata": 3, "source": [1, "a"]}, {"cell_type": "code"}]
    path.write_text(json.dumps({"cells": cells, "metadata": {"kernelspec": []}}))
    assert discover(path).parameters == ()


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(ConvectError, match="neither a notebook nor a script"):
        discover(tmp_path / "a.txt")
    with pytest.raises(ConvectError, match="no file"):
        discover(tmp_path / "none.py")


@pytest.mark.parametrize("version", [2, 3])
def test_an_old_notebook_is_read_like_one_of_today(tmp_path: Path, version: int) -> None:
    cells = [
        {"cell_type": "markdown", "source": "# Title"},
        {
            "cell_type": "code",
            "input": ["lr = 0.1\n", "n = 3"],
            "metadata": {"tags": ["parameters"]},
        },
        {"cell_type": "code", "input": "auc = 1", "metadata": {"tags": ["outputs"]}},
    ]
    content = {"nbformat": version, "metadata": {}, "worksheets": [{"cells": cells}, 1]}
    (tmp_path / "old.ipynb").write_text(json.dumps(content))
    found = discover(tmp_path / "old.ipynb")
    assert [(each.name, each.default) for each in found.parameters or ()] == [("lr", 0.1), ("n", 3)]
    assert found.outputs == ("auc",)
