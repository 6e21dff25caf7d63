"""`convect pipeline`, as it is called from a terminal."""

from __future__ import annotations

import functools
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., tuple[int, str, str]]

ELYRA = Path(__file__).parents[3] / "shared/corpus/elyra"
DOCUMENT = {
    "convect": 1,
    "name": "one",
    "parameters": {"lr": {"type": "number", "default": 0.1}},
    "nodes": {"train": {"kind": "notebook", "path": "train.ipynb"}},
}


@pytest.fixture
def folder(
    tmp_path: Path, write_notebook: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.chdir(tmp_path)
    write_notebook(tmp_path / "train.ipynb", "1")
    (tmp_path / "one.pipeline").write_text(json.dumps(DOCUMENT))
    return tmp_path


@pytest.fixture
def call(convect: Call) -> Call:
    return functools.partial(convect, "pipeline")


def edit(folder: Path, **changes: Any) -> None:
    (folder / "one.pipeline").write_text(json.dumps({**DOCUMENT, **changes}))


def test_new_writes_a_pipeline_and_never_over_another(folder: Path, call: Call) -> None:
    assert call("new", "训练")[0] == 0
    content = (folder / "训练.pipeline").read_text(encoding="utf-8")
    assert json.loads(content)["name"] == "训练"
    assert call("validate", "训练.pipeline")[0] == 0
    code, out, err = call("new", "训练.pipeline", "--name", "other")
    assert (code, out) == (2, "")
    assert "already exists" in err
    assert (folder / "训练.pipeline").read_text(encoding="utf-8") == content
    assert call("new", "训练.pipeline", "--name", "other", "--force")[0] == 0
    assert json.loads((folder / "训练.pipeline").read_bytes())["name"] == "other"
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


def test_validate_says_what_is_wrong_by_its_exit_code(folder: Path, call: Call) -> None:
    assert call("validate", "one.pipeline") == (0, "one.pipeline: no errors\n", "")
    edit(folder, nodes={"train": {"kind": "notebook", "path": "gone.ipynb"}})
    code, out, _ = call("validate", "one.pipeline")
    assert code == 1
    assert "train.path: There is no file “gone.ipynb”." in out
    assert out.endswith("one.pipeline: 1 error\n")
    assert call("validate", "--no-files", "one.pipeline")[0] == 0
    edit(folder, nodes={"train": {"kind": "notebook", "path": "train.ipynb", "after": ["nobody"]}})
    code, out, _ = call("validate", "one.pipeline")
    assert code == 2
    assert "nobody" in out


def test_validate_takes_the_values_of_a_run(folder: Path, call: Call) -> None:
    assert call("validate", "-p", "lr=0.5", "one.pipeline")[0] == 0
    assert call("validate", "-p", "lr=fast", "one.pipeline")[0] == 2
    assert call("validate", "-p", "lr", "one.pipeline")[0] == 2
    edit(folder, parameters={"who": {"type": "string"}})
    assert call("validate", "-p", "who=1", "one.pipeline")[0] == 0


def test_json_is_for_programs(folder: Path, call: Call) -> None:
    edit(folder, nodez={})
    code, out, err = call("validate", "--json", "one.pipeline")
    assert (code, err) == (2, "")
    (problem,) = json.loads(out)["problems"]
    assert problem["code"] == "unknown-property"
    assert problem["hint"] == "Did you mean “nodes”?"
    (folder / "one.pipeline").write_text("{")
    code, out, err = call("validate", "--json", "one.pipeline")
    assert (code, err) == (2, "")
    assert json.loads(out)["error"]["code"] == "malformed-json"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"convect": 1,',
        b"\xff\xfe{",
        b'{"convect": 1, "nodes": {}, "nodes": {}}',
        b'{"convect": 1, "nodes": {"a": "\0"}}',
        b'{"convect": 9, "nodes": {}}',
        b"[" * 100_000,
        b'{"convect": 1, "nodes": {"a": {"kind": "notebook", "path": 3}}}',
        b'{"convect": 1, "nodes": [], "parameters": 3, "layout": "x"}',
        b'{"convect": 1, "nodes": {"a": {"kind": "command", "command": ["x"], "after": ["b"]}}}',
    ],
)
@pytest.mark.parametrize("verb", ["validate", "describe"])
def test_bad_files_get_a_sentence_and_exit_2(
    folder: Path, call: Call, verb: str, content: bytes
) -> None:
    path = folder / "one.pipeline"
    path.write_bytes(content)
    code, out, err = call(verb, "one.pipeline")
    assert code == 2
    assert "Traceback" not in out + err
    assert (out + err).strip()
    assert path.read_bytes() == content


def test_missing_files_and_folders(folder: Path, call: Call) -> None:
    assert call("validate", "none.pipeline")[0] == 2
    assert call("describe", ".")[0] == 2
    assert call("new", "no/such/folder/x.pipeline")[0] == 2
    (folder / "taken.pipeline").mkdir()
    assert call("new", "taken.pipeline", "--force")[0] == 2
    assert call("new", "\udcff.pipeline")[0] == 2
    assert call("validate", "\udcff.pipeline", "\0")[0] == 2
    assert not list(folder.glob(".*"))


def test_several_files_at_once(folder: Path, call: Call) -> None:
    (folder / "bad.pipeline").write_text("{")
    code, out, _ = call("validate", "one.pipeline", "bad.pipeline")
    assert code == 2
    assert "one.pipeline: no errors" in out
    assert "bad.pipeline: error: Line 1" in out


def test_describe_lists_what_a_run_needs(folder: Path, call: Call) -> None:
    edit(folder, defaults={"image": "ds:1", "resources": {"memory": "2Gi"}})
    code, out, _ = call("describe", "one.pipeline")
    assert code == 0
    for words in ("one: 1 notebook", "train.ipynb", "ds:1", "2Gi", "lr"):
        assert words in out
    assert json.loads(call("describe", "--json", "one.pipeline")[1])["images"] == {
        "ds:1": ["train"]
    }


@pytest.mark.skipif(not ELYRA.is_dir(), reason="the corpus of Elyra pipelines is not here")
def test_every_elyra_pipeline_is_imported_or_refused(folder: Path, call: Call) -> None:
    for path in sorted(ELYRA.glob("*.pipeline")):
        before = path.read_bytes()
        code, out, err = call("import", str(path), "-o", f"{path.name}.new")
        assert path.read_bytes() == before
        written = folder / f"{path.name}.new"
        if path.name.startswith("bad-"):
            assert (code, out, written.exists()) == (2, "", False)
            assert err.startswith("convect: ")
        else:
            assert code == 0
            assert call("validate", "--no-files", written.name)[0] in (0, 1)


@pytest.mark.skipif(not ELYRA.is_dir(), reason="the corpus of Elyra pipelines is not here")
def test_an_import_goes_to_standard_output_or_a_new_file(folder: Path, call: Call) -> None:
    source = str(ELYRA / "v7-two-notebooks.pipeline")
    code, out, _ = call("import", source)
    assert code == 0
    assert json.loads(out)["convect"] == 1
    assert call("import", source, "-o", "one.pipeline")[0] == 2
    assert json.loads((folder / "one.pipeline").read_text()) == DOCUMENT
    assert set(json.loads(call("import", source, "--json")[1])) == {"document", "report"}
    code, _, err = call("import", "one.pipeline")
    assert code == 2
    assert "already a Convect pipeline" in err


@pytest.mark.skipif(not ELYRA.is_dir(), reason="the corpus of Elyra pipelines is not here")
def test_an_import_into_another_folder_finds_the_same_files(folder: Path, call: Call) -> None:
    (folder / "old").mkdir()
    for name in ("v0-covid", "v7-two-notebooks"):
        source = folder / f"old/{name}.pipeline"
        source.write_bytes((ELYRA / source.name).read_bytes())
        assert call("import", str(source), "-o", "here.pipeline", "--force")[0] == 0
        assert call("import", str(source), "-o", "old/there.pipeline", "--force")[0] == 0
        here, there = (
            json.loads(call("describe", path, "--json")[1])["files"]
            for path in ("here.pipeline", "old/there.pipeline")
        )
        assert here == there != []


def test_colours_are_for_terminals_alone(folder: Path) -> None:
    edit(folder, nodez={}, nodes={"train": {"kind": "notebook", "path": "gone.ipynb"}})
    program = "import sys; from jupyterlab_convect.cli import main; sys.exit(main())"

    def on_terminal(*words: str, **variables: str) -> str:
        """What a terminal shows; standard error goes elsewhere."""
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", **variables}
        with (folder / "err").open("wb") as err:
            subprocess.run(
                [sys.executable, "-c", program, "pipeline", *words],
                stdout=theirs,
                stderr=err,
                env=environment,
            )
        os.close(theirs)
        shown = os.read(ours, 1 << 16).decode()
        os.close(ours)
        return shown

    assert "\x1b[31merror" in on_terminal("validate", "one.pipeline", NO_COLOR="")
    assert "\x1b" not in on_terminal("validate", "one.pipeline", NO_COLOR="1")
    edit(folder, nodes={"train": {"kind": "notebook", "path": "gone.ipynb"}})
    shown = on_terminal("describe", "one.pipeline", NO_COLOR="")
    assert "source  \x1b[31mmissing\x1b[0m  train" in shown
    (folder / "elyra.pipeline").write_text(
        json.dumps({"pipelines": [{"id": "a", "nodes": [], "app_data": {"odd": 1}}]})
    )
    assert "ready" in on_terminal("import", "elyra.pipeline", "-o", "new.pipeline", NO_COLOR="")
    assert "odd" in (folder / "err").read_text()
    assert "\x1b" not in (folder / "err").read_text()


def test_the_program_itself(folder: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        program = "import sys; from jupyterlab_convect.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", program, *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    assert run("--version").stdout.startswith("convect ")
    helped = run("--help")
    assert helped.returncode == 0
    assert "pipeline" in helped.stdout
    assert run().returncode == 2
    assert run("pipeline").returncode == 2
    assert run("dream").returncode == 2
    good = run("pipeline", "validate", "one.pipeline")
    assert (good.returncode, good.stdout) == (0, "one.pipeline: no errors\n")


def test_export_writes_a_pipeline_of_kubeflow_or_says_what_it_cannot_do(
    folder: Path, call: Call
) -> None:
    code, out, err = call("export", "one.pipeline", "--to", "kfp")
    assert (code, out) == (2, "")
    assert "“train” has no image." in err
    target = ("one.pipeline", "--to", "kfp", "--image", "ds:1", "-o", "one.yaml")
    assert call("export", *target, "-p", "lr=0.5")[0] == 0
    text = (folder / "one.yaml").read_text("utf-8")
    assert "schemaVersion: 2.1.0" in text
    assert call("export", *target)[0] == 2  # It is there already.
    code, out, _ = call("export", "train.ipynb", "--to", "kfp", "--image", "ds:1", "--json")
    assert code == 0
    assert "comp-train" in json.loads(out)["text"]
    edit(folder, defaults={"image": "ds:1", "kubernetes": {"priority": "high"}})
    code, _, err = call("export", "one.pipeline", "--to", "kfp")
    assert code == 2
    assert "Node “train”: Kubeflow Pipelines cannot set a priority class." in err


def test_describe_tells_when_and_how_often_nodes_run(folder: Path, call: Call) -> None:
    run = {"kind": "command", "command": ["true"]}
    nodes = {
        "a": {**run, "for_each": {"name": "region", "in": ["eu", "us"], "parallel": 2}},
        "b": {**run, "after": ["a"], "run_if": "always", "when": "${{ run.name != 'x' }}"},
        "c": {**run, "when": "${{ run.name != 'y' }}", "disabled": True},
        "g": {"kind": "group", "members": ["a", "c"], "run_if": "always"},
    }
    (folder / "rules.pipeline").write_text(json.dumps({"convect": 1, "nodes": nodes}))
    _, out, _ = call("describe", "rules.pipeline")
    assert 'for each region in ["eu", "us"], 2 at a time' in out
    assert "when run.name != 'x'; always" in out
    assert "disabled" in out
    assert "'y'" not in out
    assert "  g  always" in out
    assert "a, c" in out
