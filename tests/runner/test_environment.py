"""The environment that is written down is that of the interpreter that executed the step."""

import json
import os
import sys
from pathlib import Path

import ipykernel
import pytest

from jupyterlab_convect.runner import environment
from jupyterlab_convect.runner.__main__ import main
from jupyterlab_convect.runner.environment import FILE, Interpreter, current, read, settle


@pytest.fixture
def runs(bench):
    """Execute attempts in a folder of runs; what was recorded of them."""
    count = 0

    def run(source, **step):
        nonlocal count
        count += 1
        described = bench.attempt(source, **step)
        attempt = bench.place / "runs" / f"r{count}" / "steps" / "s" / "1"
        attempt.parent.mkdir(parents=True)
        described.rename(attempt)
        (attempt.parents[2] / "run.json").touch()
        main([str(attempt)])
        assert (attempt / "outputs.json").exists()
        return json.loads((attempt / FILE).read_text())

    run.environments = bench.place / "runs" / environment.FOLDER
    return run


def test_the_environment_of_a_notebook_is_that_of_its_kernel(runs, bench, other_python):
    other_python.install("Only_There", "1.2")
    there = runs(bench.notebook("1"), kernel="other")
    here = runs(bench.notebook("1"))
    assert (there["interpreter"], there["kernel"]) == (other_python.path, "other")
    assert (here["interpreter"], here["kernel"]) == (sys.executable, "python3")
    assert read(runs.environments, there["digest"])["packages"]["only-there"] == "1.2"
    found = read(runs.environments, here["digest"])
    assert "only-there" not in found["packages"]
    assert found["packages"]["ipykernel"] == ipykernel.__version__
    assert found["python"] == sys.version.split()[0]
    assert here["host"]["name"] == os.uname().nodename
    assert here["host"]["cpus"] == os.cpu_count()


def test_a_notebook_that_names_no_kernel_has_the_environment_of_the_one_it_gets(runs, bench):
    notebook = bench.notebook("1")
    content = json.loads(notebook.read_text())
    del content["metadata"]["kernelspec"]
    notebook.write_text(json.dumps(content))
    assert runs(notebook)["kernel"] == "python3"


def test_an_edit_meanwhile_does_not_change_which_kernel_it_was(runs, bench, other_python):
    notebook = bench.notebook("1")
    copy = notebook.with_name("copy.ipynb")
    copy.write_bytes(notebook.read_bytes())
    content = json.loads(notebook.read_text())
    content["metadata"]["kernelspec"]["name"] = "other"
    notebook.write_text(json.dumps(content))
    found = runs(notebook, copy=str(copy))
    assert (found["interpreter"], found["kernel"]) == (sys.executable, "python3")


def test_what_the_notebook_itself_installs_is_part_of_it(runs, bench, other_python):
    before = runs(bench.notebook("1"), kernel="other")
    folder = other_python.packages / "late-3.dist-info"
    install = [
        f"import pathlib; p = pathlib.Path({str(folder)!r}); p.mkdir()",
        "(p / 'METADATA').write_text('Name: late\\nVersion: 3\\n')",
    ]
    after = runs(bench.notebook(*install), kernel="other")
    packages = (read(runs.environments, each["digest"])["packages"] for each in (before, after))
    was, now = packages
    assert {name: now[name] for name in now if now[name] != was.get(name)} == {"late": "3"}


def test_installing_anything_makes_it_another_environment(tmp_path, other_python):
    folder = tmp_path / environment.FOLDER
    interpreter = Interpreter((other_python.path,))
    other_python.install("pandas", "2.1.0")
    git = {"url": "https://ana:secret@host/x", "vcs_info": {"vcs": "git", "commit_id": "c1"}}
    digests, versions = [], []
    for version, origin in (
        ("2.1.0", None),
        ("2.2.3", None),
        ("2.2.3", git),
        ("2.2.3", {**git, "vcs_info": {"vcs": "git", "commit_id": "c2"}}),
        ("2.2.3", {"url": "file:///home/ana/p", "dir_info": {"editable": True}}),
    ):
        other_python.install("pandas", version, origin)
        digests.append(current(folder, interpreter))
        versions.append(read(folder, digests[-1])["packages"]["pandas"])
    assert versions == [
        "2.1.0",
        "2.2.3",
        "2.2.3 @ git+https://host/x@c1",
        "2.2.3 @ git+https://host/x@c2",
        "2.2.3 @ file:///home/ana/p (editable)",
    ]
    assert len({*digests}) == 5
    other_python.install("pandas", "2.1.0")
    assert current(folder, interpreter) == digests[0]
    assert len(list(folder.glob("*.json"))) == 5


def test_what_has_not_changed_is_not_looked_at_again(tmp_path, other_python, monkeypatch):
    folder, project = tmp_path / environment.FOLDER, tmp_path / "project"
    project.mkdir()
    interpreter = Interpreter((other_python.path,), {"PYTHONPATH": str(project)})
    other_python.settle()
    digest = current(folder, interpreter)
    looked = []
    monkeypatch.setattr(environment, "look", looked.append)
    assert current(folder, interpreter) == digest
    (project / "data.csv").touch()  # The folder of a project, which any file changes.
    assert current(folder, interpreter) == digest
    assert looked == []
    (project / "ours.egg-info").mkdir()
    current(folder, interpreter)
    (project / "ours.egg-info").rmdir()
    (other_python.packages / "more.pth").touch()
    current(folder, interpreter)
    assert len(looked) == 2


def test_what_is_installed_after_the_end_is_not_taken_for_what_was_used(
    runs, bench, other_python, monkeypatch
):
    look = environment.look

    def late(interpreter):
        other_python.install("late", "1")
        return look(interpreter)

    monkeypatch.setattr(environment, "look", late)
    recorded = runs(bench.notebook("1"), kernel="other")
    assert (recorded["digest"], recorded["kernel"]) == (None, "other")
    monkeypatch.setattr(environment, "look", look)
    recorded = runs(bench.notebook("1"), kernel="other")
    assert read(runs.environments, recorded["digest"])["packages"]["late"] == "1"


def test_what_was_deleted_is_kept_again(tmp_path, other_python):
    folder = tmp_path / environment.FOLDER
    other_python.settle()
    digest = current(folder, Interpreter((other_python.path,)))
    (kept,) = folder.glob("*.json")
    kept.unlink()
    assert current(folder, Interpreter((other_python.path,))) == digest
    assert kept.exists()


def test_scripts_and_commands_have_one_where_a_python_executes_them(runs, bench, other_python):
    script, shell = bench.work / "s.py", bench.work / "s.sh"
    script.write_text("1")
    shell.write_text("true")
    assert runs(script)["interpreter"] == sys.executable
    assert runs(script, kernel="other")["interpreter"] == other_python.path
    command = runs(None, kind="command", command=[other_python.path, "-c", "1"])
    assert read(runs.environments, command["digest"])["python"] == sys.version.split()[0]
    other = runs(shell)
    assert (other["digest"], other["interpreter"]) == (None, None)
    assert other["host"]["machine"] == os.uname().machine


def test_a_step_that_cannot_begin_has_a_host_at_least(runs, bench):
    recorded = runs(bench.notebook("1"), kernel="nowhere")
    assert (recorded["digest"], recorded["kernel"]) == (None, None)
    assert recorded["host"]["name"]


def test_far_from_the_runs_it_is_sent_along_and_kept_at_home(bench, tmp_path):
    folder = bench.attempt(bench.notebook("1"))
    main([str(folder)])
    sent = (folder / FILE).read_bytes()
    content = json.loads(sent)["content"]
    assert content["packages"]["ipykernel"] == ipykernel.__version__
    attempt = tmp_path / "runs" / "r" / "steps" / "s" / "1"
    attempt.mkdir(parents=True)
    (attempt.parents[2] / "run.json").touch()
    at_home = json.loads(settle(attempt, sent))
    assert "content" not in at_home
    assert read(tmp_path / "runs" / environment.FOLDER, at_home["digest"]) == content


@pytest.mark.parametrize(
    "content",
    [[], {}, {"packages": {"a": 1}}, {"python": "3", "packages": {"a": "x" * 2000}}],
    ids=str,
)
def test_a_stranger_s_environment_is_not_believed(tmp_path, content):
    attempt = tmp_path / "runs" / "r" / "steps" / "s" / "1"
    attempt.mkdir(parents=True)
    (attempt.parents[2] / "run.json").touch()
    with pytest.raises(ValueError, match="no environment"):
        settle(attempt, json.dumps({"content": content}).encode())
    assert not (tmp_path / "runs" / environment.FOLDER).exists()


def test_nothing_that_goes_wrong_with_it_spoils_the_step(bench, monkeypatch):
    def fail(*_):
        raise RuntimeError

    folder = bench.attempt(bench.notebook("1"))
    monkeypatch.setattr(environment, "look", fail)
    assert main([str(folder)]) == 0
    assert not (folder / FILE).exists()
    assert environment.runs_folder(Path("/convect/attempt")) is None


def test_a_digest_is_no_way_out_of_the_folder(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    assert read(tmp_path / environment.FOLDER, "sha256:../x") is None
