"""What a shell completes, in a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jupyterlab_convect.cli import VERBS, main
from jupyterlab_convect.cli.completion import candidates


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([""], list(VERBS)),
        (["ru"], ["run", "runs"]),
        (["runs", "l"], ["list", "logs"]),
        (["runs", "rerun", "--v"], ["--version"]),
        (["runs", "rerun", "--version", ""], ["today", "run"]),
        (["run", "--name", ""], []),
        (["run", "x.ipynb", "--mode", "g"], ["grid"]),
        (["no-such-verb", ""], list(VERBS)),
        (["runs", "show", "lat"], ["latest"]),
        (["runs", "stop", "latest", ""], []),
    ],
)
def test_words_are_completed(
    words: list[str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVECT_RUNS_DIR", str(tmp_path / "runs"))
    assert candidates(words) == expected


def test_runs_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONVECT_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("")
    assert main(["run", "a.py"]) == 0
    (run_id,) = (path.name for path in (tmp_path / "runs").glob("2*"))
    capsys.readouterr()
    assert main(["completion", "words", "--", "runs", "logs", "2"]) == 0
    assert capsys.readouterr().out.split() == [run_id]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes(tmp_path: Path) -> None:
    script = """
eval "$(convect completion bash)"
COMP_WORDS=(convect pipeline ex) COMP_CWORD=2
_convect
echo "${COMPREPLY[@]}"
"""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": path, "CONVECT_RUNS_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["export"]
