"""The components that ship do what they say, each run for real."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.catalog.execute import collect, execute, make_ready
from jupyterlab_convect.catalog.launch import Folders, arguments_of, as_process
from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.read import read
from jupyterlab_convect.catalog.store_files import INCLUDED
from jupyterlab_convect.errors import ConvectError

pytestmark = pytest.mark.slow

CONTEXT = dict.fromkeys(("run.id", "run.name", "step.id", "step.uid", "root", "time"), "x")


def shipped(name: str) -> Component:
    path = INCLUDED / f"{name}.yaml"
    return read(path.read_bytes(), path.name).components[0]


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the package {package} is not installed")


def run(tmp_path: Path, name: str, **given: Any) -> dict[str, Any]:
    """Run a component as a process; its outputs by name, files as paths that exist."""
    component = shipped(name)
    folders = Folders(tmp_path / "work")
    arguments = arguments_of(component, given, [tmp_path])
    launch = as_process(component, arguments, folders, CONTEXT, os.environ, {})
    make_ready(launch, folders)
    code = execute(launch, folders.work)
    if code:
        raise ConvectError(f"It ended with {code}.")
    found = {}
    for line in collect(component, launch, tmp_path, folders.work):
        value = line["value"]
        if isinstance(value, dict) and "file" in value:
            value = launch.reads[line["name"]]
        found[line["name"]] = value
    return found


def write_table(path: Path, rows: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "size", "city", "label"])
        for number in range(rows):
            writer.writerow(
                [number, number % 10, "北京" if number % 3 else "Paris", int(number % 10 > 4)]
            )


def test_every_one_reads_and_says_what_it_is_for() -> None:
    paths = sorted(INCLUDED.glob("*.yaml"))
    assert len(paths) >= 7
    for path in paths:
        reading = read(path.read_bytes(), path.name)
        assert not reading.errors, reading.errors
        (component,) = reading.components
        assert component.description
        assert component.annotations["category"]
        for end in (*component.inputs, *component.outputs):
            assert end.description, (path.name, end.name)


def test_download_file(tmp_path: Path, site: Any) -> None:
    url = site.put("/data.bin", b"hello")
    digest = hashlib.sha256(b"hello").hexdigest()
    found = run(tmp_path / "a", "download_file", url=url, sha256=digest)
    assert found["file"].read_bytes() == b"hello"
    assert found["size"] == 5
    with pytest.raises(ConvectError):
        run(tmp_path / "b", "download_file", url=url, sha256="0" * 64)
    with pytest.raises(ConvectError):
        run(tmp_path / "c", "download_file", url="file:///etc/passwd")


def test_extract_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("sub/a.txt", "hello")
    found = run(tmp_path, "extract_archive", archive={"file": "x.zip"})
    assert found["files"] == ["sub/a.txt"]
    assert (found["folder"] / "sub" / "a.txt").read_text() == "hello"


def test_split_csv(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", 100)
    found = run(tmp_path, "split_csv", table={"file": "t.csv"}, fraction=0.7)
    assert found["rows"] == {"first": 70, "second": 30}
    whole = (tmp_path / "t.csv").read_text().replace("\r\n", "\n").splitlines()
    parts = [found[name].read_text().splitlines() for name in ("first", "second")]
    assert [part[0] for part in parts] == [whole[0]] * 2
    assert sorted(parts[0][1:] + parts[1][1:]) == sorted(whole[1:])


def test_select_columns(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", 2)
    found = run(tmp_path, "select_columns", table={"file": "t.csv"}, columns=["city", "id"])
    assert found["selected"].read_text() == "city,id\nParis,0\n北京,1\n"
    with pytest.raises(ConvectError):
        run(
            tmp_path / "b",
            "select_columns",
            table={"file": str(tmp_path / "t.csv")},
            columns=["none"],
        )


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_sql_query(tmp_path: Path, form: str) -> None:
    needs("duckdb")
    write_table(tmp_path / "t.csv", 30)
    found = run(
        tmp_path / "a",
        "sql_query",
        data={"file": str(tmp_path / "t.csv")},
        query="SELECT city, count(*) AS n FROM data GROUP BY city ORDER BY n",
        format=form,
    )
    assert found["rows"] == 2
    again = run(
        tmp_path / "b",
        "sql_query",
        data={"file": str(found["result"])},
        query="SELECT n FROM data WHERE city = '北京'",
    )
    assert again["result"].read_text() == "n\n20\n"


def test_train_and_predict(tmp_path: Path) -> None:
    needs("sklearn")
    needs("pandas")
    write_table(tmp_path / "t.csv", 200)
    found = run(
        tmp_path / "a", "train_classifier", table={"file": str(tmp_path / "t.csv")}, label="label"
    )
    assert found["accuracy"] == 1.0
    assert found["report"]["accuracy"] == 1.0
    predicted = run(
        tmp_path / "b",
        "predict",
        model={"file": str(found["model"])},
        table={"file": str(tmp_path / "t.csv")},
    )
    with predicted["predictions"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["prediction"] == row["label"] for row in rows)


def test_the_inline_programs_compile() -> None:
    for path in INCLUDED.glob("*.yaml"):
        container = read(path.read_bytes(), path.name).components[0].container
        assert container is not None
        program = str(container.command[2])
        subprocess.run(
            [sys.executable, "-c", "import ast, json, sys; ast.parse(json.load(sys.stdin))"],
            input=json.dumps(program).encode(),
            check=True,
        )
