from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, until

from jupyterlab_convect.cli import main

Write = Callable[..., Path]

pytestmark = pytest.mark.slow


@pytest.fixture
def train(work: Path, write_notebook: Write) -> str:
    write_notebook(
        work / "train.ipynb",
        ("parameters", "lr: float = 0.1\nname = 'x'"),
        "print('learning with', lr, name)",
        ("outputs", "accuracy = 1 - lr"),
    )
    return "train.ipynb"


def convect(*arguments: str) -> subprocess.Popen[str]:
    code = "import sys; from jupyterlab_convect.cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def only_run(capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert main(["runs", "show", "latest", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_notebook_runs_with_parameters_of_the_declared_types(
    train: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "-p",
        "lr=0.25",
        "-p",
        "name=7",
        "-p",
        "typo=1",
        "--name",
        "基线",
        "--label",
        "team=a",
    ]
    assert main(["run", train, *arguments]) == 0
    shown = capsys.readouterr()
    assert "succeeded" in shown.out
    assert "accuracy = 0.75" in shown.out
    assert "train: succeeded" in shown.err
    assert "warning: “train.ipynb” has no parameter “typo”." in shown.err
    run = only_run(capsys)
    assert run["parameters"] == {"lr": 0.25, "name": "7", "typo": 1}
    assert (run["name"], run["labels"]) == ("基线", {"team": "a"})


def test_a_failed_run_says_why_and_where(
    work: Path, write_notebook: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_notebook(work / "bad.ipynb", "print('so far')", "raise ValueError('no such column')")
    assert main(["run", "bad.ipynb"]) == 1
    shown = capsys.readouterr()
    assert "no such column" in shown.err
    assert "so far" in shown.err
    assert "executed.ipynb" in shown.err


def test_scripts_and_pipelines_run_as_well(
    work: Path, train: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "hello.py").write_text("print('hello from a script')")
    assert main(["run", "hello.py", "--follow"]) == 0
    assert "hello from a script" in capsys.readouterr().out
    document = {
        "convect": 1,
        "nodes": {
            "one": {"kind": "script", "path": "hello.py"},
            "two": {"kind": "notebook", "path": train, "after": ["one"]},
        },
    }
    (work / "both.pipeline").write_text(json.dumps(document))
    assert main(["run", "both.pipeline", "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    assert [step["state"] for step in run["steps"].values()] == ["succeeded", "succeeded"]
    assert main(["run", "both.pipeline", "--only", "two", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["request"]["of"] == run["id"]
    assert again["steps"]["one"]["attempts"] == []


def test_a_file_beside_the_working_folder(
    work: Path, train: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "deeper").mkdir()
    monkeypatch.chdir(work / "deeper")
    assert main(["run", f"../{train}", "--dry-run"]) == 0


def test_a_dry_run_shows_the_plan_and_leaves_nothing(
    work: Path, train: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", train, "-p", "lr=0.5", "--dry-run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["problems"] == []
    assert shown["plan"]["steps"][0]["parameters"] == {"lr": 0.5}
    assert main(["run", train, "--sweep", "lr=0.1,0.2", "--dry-run"]) == 0
    assert "lr=0.2" in capsys.readouterr().out
    assert main(["runs", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"] == 0


def test_a_sweep_shows_its_points_and_the_best(
    train: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--sweep", "lr=0.1:0.3:0.1", "--select", "max:accuracy"]
    assert main(["run", train, *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    (best,) = [line for line in lines if line.startswith("*")]
    assert best.split()[1] == "0.1"


def test_a_sweep_is_renamed(train: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", train, "--sweep", "lr=0.1"]) == 0
    capsys.readouterr()
    assert main(["runs", "best", "latest", "--json"]) == 0
    sweep = json.loads(capsys.readouterr().out)["id"]
    assert main(["runs", "edit", sweep, "--name", "rates", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "rates"
    assert main(["runs", "edit", sweep, "--name", "rates", "--note", "good"]) == 2
    assert "only the name" in capsys.readouterr().err
    assert main(["runs", "edit", "20200101-000000000-abcdef", "--name", "rates"]) == 2
    assert "There is no run" in capsys.readouterr().err


def test_a_sweep_is_one_row_of_the_list(train: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", train, "--sweep", "lr=0.1,0.2"]) == 0
    assert main(["run", train]) == 0
    capsys.readouterr()

    def rows(*options: str) -> list[str]:
        assert main(["runs", "list", *options]) == 0
        return [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]

    run, sweep = rows()
    assert main(["runs", "list"]) == 0
    assert "sweep over lr: 2 of 2 runs" in capsys.readouterr().out
    assert rows("--limit", "1") == [run]
    assert rows("--limit", "1", "--offset", "1") == [sweep]
    assert rows("--until", "1h") == []
    assert len(rows("--each")) == 3
    assert len(rows("--state", "succeeded")) == 3
    assert len(rows("--sweep", sweep)) == 2


def test_a_sweep_with_a_failed_run_is_no_success(work: Path, write_notebook: Write) -> None:
    write_notebook(work / "half.ipynb", ("parameters", "n = 0"), "assert n != 2")
    assert main(["run", "half.ipynb", "--sweep", "n=1,2"]) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["none.ipynb"],
        ["train.ipynb", "-p", "lr=fast"],
        ["train.ipynb", "-p", "lr"],
        ["train.ipynb", "--runtime", "moon"],
        ["train.ipynb", "--label", "x"],
        ["train.ipynb", "--sweep", "lr=fast"],
        ["train.ipynb", "--select", "max:accuracy"],
        ["train.ipynb", "--of", "latest"],
        ["train.ipynb", "--only", "train"],
        ["broken.ipynb"],
        ["broken.pipeline"],
        ["picture.png"],
    ],
    ids=" ".join,
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    work: Path, train: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "broken.ipynb").write_text("{")
    (work / "broken.pipeline").write_text("{")
    (work / "picture.png").write_bytes(b"\x89PNG")
    assert main(["run", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("convect: ")
    assert "Traceback" not in error
    assert main(["run", *arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["message"]


def test_ctrl_c_stops_the_run(
    work: Path, write_notebook: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_notebook(work / "long.ipynb", "print('on it', flush=True)\nimport time; time.sleep(600)")
    process = convect("run", "long.ipynb", "--follow")
    assert process.stdout is not None
    assert process.stdout.readline() == "on it\n"
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, error
    assert only_run(capsys)["state"] == "cancelled"


def test_a_detached_run_goes_on_without_the_terminal(
    train: str, capsys: pytest.CaptureFixture[str]
) -> None:
    process = convect("run", train, "--detach", "-p", "typo=1")
    out, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, error
    assert "warning: “train.ipynb” has no parameter “typo”." in error
    run_id = out.strip()
    until(lambda: only_run(capsys)["ended"], "it ended")
    run = only_run(capsys)
    assert (run["id"], run["state"]) == (run_id, "succeeded")


def test_what_is_wrong_with_a_detached_run_is_told_at_once(train: str) -> None:
    process = convect("run", train, "--detach", "--runtime", "moon")
    _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "moon" in error


def test_a_closed_terminal_leaves_the_run_to_others(
    work: Path,
    write_notebook: Write,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    go_on = tmp_path_factory.mktemp("outside") / "go-on"  # A run does not see what comes later.
    write_notebook(
        work / "wait.ipynb",
        "print('on it', flush=True)\nimport pathlib, time\n"
        f"while not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.02)",
    )
    process = convect("run", "wait.ipynb", "--follow")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE)
    go_on.touch()
    until(lambda: only_run(capsys)["ended"], "it ended")
    run = only_run(capsys)
    assert run["state"] == "succeeded"
    assert len(run["steps"]["wait"]["attempts"]) == 1


def test_a_run_that_diverges_says_so_and_is_never_the_best(
    work: Path, write_notebook: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_notebook(
        work / "diverge.ipynb",
        ("parameters", "lr: float = 0.1"),
        "from jupyterlab_convect import metric, output\n"
        "for step in range(4):\n"
        "    metric('loss', lr if lr < 1 else 0.01 if step < 2 else float('nan'), step)\n"
        "metric('only', float('-inf'))\n"
        "metric('digits', 10**400)\n"
        "output('nested', {'deep': [float('nan'), 'NaN']})",
    )
    assert main(["run", "diverge.ipynb", "--sweep", "lr=0.5,0.1,5", "--select", "min:loss"]) == 0
    lines = capsys.readouterr().out.splitlines()
    [best] = [line.split() for line in lines if line.startswith("*")]
    assert best[1] == "0.1"
    [diverged] = [line.split() for line in lines if line.split()[0] == "5"]
    assert diverged[1:5] == ["succeeded", "1e+400", "NaN", "-Infinity"]
    assert main(["runs", "show", diverged[5]]) == 0
    shown = capsys.readouterr().out
    assert "loss=NaN" in shown
    assert "only=-Infinity" in shown
    assert main(["runs", "show", diverged[5], "--json"]) == 0
    view = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert view["metrics"]["loss"] == {"$numberDouble": "NaN"}
    deep = view["steps"]["diverge"]["outputs"]["nested"]["deep"]
    assert deep == [{"$numberDouble": "NaN"}, "NaN"]


def test_a_run_records_the_parameters_in_effect(
    work: Path, write_notebook: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_notebook(
        work / "n.ipynb",
        (
            "parameters",
            "import pathlib\nlr: float = 0.1\ndepth = 3\nnothing = None\nseed = 40 + 2\n"
            "place = pathlib.Path('data')\nodd = object()\nwidth = depth * 2",
        ),
        "print(lr, depth, seed)",
    )
    assert main(["run", "n.ipynb", "-p", "depth=5", "-p", "width=7"]) == 0
    view = only_run(capsys)
    assert view["parameters"] == {
        "depth": 5,
        "width": 7,
        "lr": 0.1,
        "nothing": None,
        "seed": 42,
        "place": "data",
    }
    assert view["request"]["parameters"] == {"depth": 5, "width": 7}
    assert set(view["defaults"]) == {"lr", "nothing", "seed", "place"}
    assert view["computed"] == {"odd": "object()"}
    assert view["steps"]["n"]["parameters"] == view["parameters"]
    assert main(["runs", "show", "latest"]) == 0
    shown = capsys.readouterr().out
    assert "depth=5, width=7, lr=0.1 (default)" in shown
    assert "odd computed by object()" in shown
    for words, count in (("lr=0.1", 1), ("seed=42", 1), ("lr=0.3", 0)):
        assert main(["runs", "list", "--text", words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["total"] == count


def test_a_step_shows_the_values_that_it_was_handed(
    work: Path, write_notebook: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_notebook(work / "a.ipynb", ("outputs", "rows = 3"))
    write_notebook(work / "b.ipynb", ("parameters", "rows = 0\nlr = 0.1"))
    nodes = {
        "a": {"kind": "notebook", "path": "a.ipynb"},
        "b": {
            "kind": "notebook",
            "path": "b.ipynb",
            "parameters": {"rows": "${{ nodes.a.outputs.rows }}"},
        },
    }
    parameters = {"p": {"type": "integer", "default": 1}, "q": {"type": "integer", "default": 2}}
    document = {"convect": 1, "parameters": parameters, "nodes": nodes}
    (work / "hand.pipeline").write_text(json.dumps(document))
    assert main(["run", "hand.pipeline", "-p", "p=4"]) == 0
    view = only_run(capsys)
    assert (view["parameters"], view["defaults"]) == ({"p": 4, "q": 2}, ["q"])
    assert view["steps"]["b"]["parameters"] == {"rows": 3, "lr": 0.1}


def test_the_best_is_marked_by_itself_and_can_be_chosen_anew(
    train: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", train, "--sweep", "lr=0.5,0.1,0.2"]
    assert main([*arguments, "--select", "max:acuracy"]) == 2
    refused = capsys.readouterr().err
    assert "There is no metric “acuracy”: what is reported is accuracy." in refused
    assert "Did you mean “accuracy”?" in refused
    assert main([*arguments, "--select", "max:acuracy", "--dry-run"]) == 2
    assert main(["runs", "list"]) == 0
    assert capsys.readouterr().out == ""

    assert main(arguments) == 0
    captured = capsys.readouterr()
    [best] = [line.split() for line in captured.out.splitlines() if line.startswith("*")]
    assert best[1] == "0.1"
    assert "* has the highest accuracy." in captured.err
    assert main(["runs", "best", "latest", "min:accuracy"]) == 0
    [best] = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("*")]
    assert best[1] == "0.5"
    assert main(["runs", "best", "latest", "none"]) == 0
    captured = capsys.readouterr()
    assert "*" not in captured.out
    assert "Mark the best with: convect runs best" in captured.err


def test_a_sweep_says_which_of_its_files_have_changed_since(
    train: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", train, "--sweep", "lr=0.5"]) == 0
    assert "Changed since" not in capsys.readouterr().err
    Path(train).write_text(Path(train).read_text() + "\n")
    assert main(["runs", "best", "latest"]) == 0
    assert f"Changed since this sweep was submitted: {train}." in capsys.readouterr().err


def test_a_step_hands_on_nan_as_the_number_it_is(
    work: Path, write_notebook: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_notebook(work / "a.ipynb", ("outputs", "x = float('nan')\ny = [float('inf')]"))
    write_notebook(
        work / "b.ipynb",
        ("parameters", "x = 0.0\ny = []"),
        "import math\nassert math.isnan(x) and y == [math.inf]",
    )
    (work / "hand.pipeline").write_text(
        json.dumps(
            {
                "convect": 1,
                "nodes": {
                    "a": {"kind": "notebook", "path": "a.ipynb"},
                    "b": {
                        "kind": "notebook",
                        "path": "b.ipynb",
                        "parameters": {
                            "x": "${{ nodes.a.outputs.x }}",
                            "y": "${{ nodes.a.outputs.y }}",
                        },
                    },
                },
            }
        )
    )
    assert main(["run", "hand.pipeline"]) == 0, capsys.readouterr().err


def test_a_script_runs_as_several_processes(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "train.py").write_text(
        "import os, jupyterlab_convect as convect\n"
        "print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"
        "convect.metric('rank', int(os.environ['RANK']))\n"
    )
    assert main(["run", "train.py", "--processes", "3", "--outputs-from", "2"]) == 0
    assert only_run(capsys)["metrics"] == {"rank": 2}
    assert main(["runs", "logs", "latest"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "[0] rank 0 of 3",
        "[1] rank 1 of 3",
        "[2] rank 2 of 3",
    ]
    assert main(["runs", "logs", "latest", "train", "--replica", "1"]) == 0
    assert capsys.readouterr().out == "rank 1 of 3\n"
    assert main(["runs", "logs", "latest", "train", "--replica", "3"]) == 2
    assert "Step “train” has no replica 3." in capsys.readouterr().err
    assert main(["runs", "logs", "latest", "--replica", "1"]) == 2
    capsys.readouterr()
    assert main(["runs", "replicas", "latest"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["STEP", "RANK", "STATE"]
    assert [row.split()[:3] for row in rows] == [
        ["train", str(rank), "succeeded"] for rank in range(3)
    ]
    assert main(["runs", "replicas", "latest", "train", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1]["exit_code"] == 0
    assert main(["runs", "replicas", "latest", "train", "--replica", "1"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in told] == ["running", "succeeded"]
    assert main(["runs", "replicas", "latest", "train", "--replica", "3"]) == 2


def test_what_cannot_be_distributed_is_refused_before_the_run(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "s.py").write_text("1")
    assert main(["run", "s.py", "--processes", "2", "--nodes", "2"]) == 2
    assert "there is only this machine" in capsys.readouterr().err
    assert main(["run", "s.py", "--processes", "many"]) == 2
    assert "“processes” must be" in capsys.readouterr().err


def test_a_parameter_file_of_dlc(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "job.params").write_text(
        'name=训练\ncommand=echo "hello world" $A\nenvs=A=1\npriority=1\ninteractive=true\n'
    )
    assert main(["run", "--params_file", "job.params"]) == 0
    told = capsys.readouterr()
    assert "hello world 1" in told.out
    assert "priority is not used" in told.err
    assert only_run(capsys)["name"] == "训练"


def test_a_parameter_file_that_is_wrong(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "job.params").write_text("command=true\nworker_cuont=2\n")
    assert main(["run", "--params_file", "job.params"]) == 2
    assert "job.params, line 2: “worker_cuont” is not a key of DLC." in capsys.readouterr().err
    assert main(["run", "--params_file", "none.params"]) == 2
    assert main(["run"]) == 2
    assert main(["run", "a.ipynb", "--params_file", "job.params"]) == 2
    assert main(["run", "--params_file", "job.params", "--sweep", "a=1,2"]) == 2
    assert "--sweep cannot be combined with --params_file." in capsys.readouterr().err


def test_loops_that_never_began_say_why(work: Path, convect: Callable[..., tuple[int, str, str]]):
    nodes = {
        "give": {"kind": "script", "path": "give.py"},
        "skipped": {
            "kind": "command",
            "command": ["true"],
            "when": "${{ nodes.give.outputs.n > 1 }}",
            "for_each": {"name": "i", "in": [1, 2]},
        },
        "failed": {
            "kind": "command",
            "command": ["true"],
            "for_each": {"name": "i", "in": "${{ nodes.give.outputs.n }}"},
        },
    }
    (work / "give.py").write_text("from jupyterlab_convect import output\noutput('n', 0)\n")
    (work / "p.pipeline").write_text(json.dumps({"convect": 1, "nodes": nodes}))
    code, _, err = convect("run", "p.pipeline")
    assert code == 1
    assert "skipped: skipped: n > 1 was false, n was 0." in err
    lines = [line for line in err.splitlines() if line.startswith("failed: failed: ")]
    assert lines == ["failed: failed: It runs for each item of a list, but it got a number."], err
