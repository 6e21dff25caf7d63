from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyterlab_convect.errors import ConvectError, Missing
from jupyterlab_convect.settings import FILE, load_settings
from jupyterlab_convect.workspace import Workspace


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_NO_CONFIG", "")
    return tmp_path


def test_files_configure_the_settings_and_the_runtimes(folder: Path) -> None:
    config = {"Convect": {"keep_runs": 7, "runs_dir": "a"}, "LocalRuntime": {"cpus": 3}}
    (folder / f"{FILE}.json").write_text(json.dumps(config))
    (folder / f"{FILE}.py").write_text("c.Convect.runs_dir = 'b'")
    settings = load_settings()
    assert (settings.keep_runs, settings.runs_dir) == (7, "b")
    assert Workspace(settings).runtimes["local"].cpus == 3  # type: ignore[attr-defined]


def test_only_the_runtimes_that_are_wanted_are_offered(folder: Path) -> None:
    (folder / f"{FILE}.py").write_text("c.Convect.runtimes = ['other']")
    runtimes = Workspace(load_settings()).runtimes
    assert "local" not in runtimes
    with pytest.raises(Missing):
        runtimes["local"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (f"{FILE}.json", "{"),
        (f"{FILE}.py", "c.Convect.keep_runs = "),
        (f"{FILE}.py", "import no_such_module"),
        (f"{FILE}.py", "c.Convect.keep_runs = 'many'"),
    ],
)
def test_a_broken_file_is_named_in_one_sentence(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(ConvectError, match="configuration"):
        load_settings()


def test_a_runs_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    settings = load_settings()
    settings.runs_dir = str(tmp_path / "file" / "runs")
    with pytest.raises(ConvectError, match="runs folder"):
        _ = Workspace(settings).store
