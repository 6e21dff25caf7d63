"""The wheel, installed in a clean environment without Node, is a whole extension."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LABEXTENSION = ROOT / "jupyterlab_convect" / "labextension"
ENTRY_BUDGET = 60_000
"""Bytes, compressed, that JupyterLab loads at its start."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (LABEXTENSION / "package.json").exists(), reason="the front end is not built"
    ),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def clean_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A virtual environment with the wheel and JupyterLab, and no Node to be found."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    bin_folder = folder / "venv" / "bin"
    pip = (sys.executable, "-m", "pip", "--python", bin_folder / "python")
    quickly = ("--quiet", "--disable-pip-version-check", "--no-compile")
    subprocess.run([*pip, "install", *quickly, f"{wheel}[lab]"], check=True)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")
    }
    return {**environment, "PATH": str(bin_folder), "HOME": str(folder)}


def jupyter(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [str(Path(environment["PATH"]) / "jupyter"), *arguments],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout


def line_with(text: str, what: str) -> str:
    return next((line for line in text.splitlines() if what in line), "")


def test_the_lab_extension_is_enabled(clean_environment: dict[str, str]) -> None:
    line = line_with(jupyter(clean_environment, "labextension", "list"), "jupyterlab-convect v")
    assert "enabled" in line
    assert "OK" in line


def test_the_server_extension_is_enabled(clean_environment: dict[str, str]) -> None:
    listed = jupyter(clean_environment, "server", "extension", "list")
    assert "enabled" in line_with(listed, "jupyterlab_convect")
    assert "Validating jupyterlab_convect" in listed
    assert re.search(r"jupyterlab_convect \S+ .*OK", listed), listed


def test_the_wheel_holds_the_front_end_and_no_development_files(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    shared = "data/share/jupyter/labextensions/jupyterlab-convect"
    assert any(f"{shared}/static/remoteEntry" in name for name in names)
    assert any(f"{shared}/schemas/" in name for name in names)
    assert any(name.endswith(f"{shared}/install.json") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "ui-tests/", "src/", "lib/"))]


def test_jupyterlab_loads_little_at_its_start() -> None:
    build = json.loads((LABEXTENSION / "package.json").read_text())["jupyterlab"]["_build"]
    remote_entry = LABEXTENSION / build["load"]
    exposed = remote_entry.read_text().split('"./index"', 1)[1].split("}", 1)[0]
    chunks = set(re.findall(r"""\.e\(["']?(\w+)""", exposed))
    # A chunk without a file is a module that JupyterLab shares.
    files = [path for chunk in chunks for path in (LABEXTENSION / "static").glob(f"{chunk}.*.js")]
    assert files
    files.append(remote_entry)
    size = sum(len(gzip.compress(path.read_bytes())) for path in files)
    assert size <= ENTRY_BUDGET, f"{size} bytes are loaded at the start"


def test_chinese_is_offered_and_complete(clean_environment: dict[str, str]) -> None:
    code = (
        "from jupyterlab_server.translation_utils import get_language_pack, get_language_packs\n"
        "print('zh_CN' in get_language_packs()[0])\n"
        "print(len(get_language_pack('zh_CN')[0]['jupyterlab_convect']) > 1)"
    )
    python = Path(clean_environment["PATH"]) / "python"
    done = subprocess.run(
        [python, "-c", code], env=clean_environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "True"]
