"""Scripts and commands go the same way as notebooks."""

import json
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

from jupyterlab_convect.runner.record import StepRecord


def test_a_python_script_with_parameters_values_and_metrics(bench):
    ended = bench.script(
        "import json, os, sys\n"
        "print(os.environ['lr'], os.environ['name'], os.environ['flags'])\n"
        "print('to stderr', file=sys.stderr)\n"
        "given = json.load(open(os.environ['CONVECT_PARAMETERS']))\n"
        "from jupyterlab_convect import metric, output\n"
        "output('given', given)\nmetric('acc', 0.5)\nprint('loss=0.25')\n",
        parameters={"lr": 0.1, "name": "é {x}", "flags": [True, None]},
        metrics={"loss": "loss=(.*)"},
    )
    assert ended.code == 0
    assert ended.state == "succeeded"
    assert "0.1 é {x} [true, null]\n" in ended.log
    assert "to stderr" in ended.log
    assert ended.outputs["values"]["given"] == {"lr": 0.1, "name": "é {x}", "flags": [True, None]}
    assert ended.outputs["metrics"] == {"acc": 0.5, "loss": 0.25}


def test_nothing_heavy_is_imported_for_a_script(bench):
    code = (
        "import sys; from pathlib import Path; from jupyterlab_convect.runner.attempt import run\n"
        "run(Path(sys.argv[1])); print(sorted({m.split('.')[0] for m in sys.modules}))"
    )
    path = bench.work / "s.sh"
    path.write_text("true")
    ended = bench.run(
        None, kind="command", command=[sys.executable, "-c", code, str(bench.attempt(path))]
    )
    for name in ("nbclient", "nbformat", "papermill", "jupyter_client", "zmq", "traitlets"):
        assert f"'{name}'" not in ended.log


def test_a_shell_script(bench):
    ended = bench.script('echo "$x" "$(pwd)"; exit 3', "it's {a} 值.sh", parameters={"x": "a b"})
    assert ended.code == 1
    assert ended.reason == f"it's {{a}} 值.sh exited with code 3: a b {bench.work}"
    assert ended.outputs["error"]["traceback"] == f"a b {bench.work}"


def test_a_failing_script_tells_its_last_words(bench):
    ended = bench.script("raise ValueError('bad value')")
    assert ended.reason == "s.py exited with code 1: ValueError: bad value"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("s.jl", "There is no known way to run s.jl: it is not a .py, .R or .sh file"),
        ("s.R", "s.R needs Rscript, which is not installed here."),
    ],
)
def test_what_cannot_be_run(bench, name, reason):
    if name == "s.R" and shutil.which("Rscript"):
        pytest.skip("R is installed")
    assert bench.script("", name).reason.startswith(reason)


def test_a_missing_script(bench):
    assert bench.run(bench.work / "gone.py").reason == "gone.py was not found."


def test_an_executable_file_runs_by_itself(bench):
    path = bench.work / "tool"
    path.write_text("#!/bin/sh\necho by itself\n")
    path.chmod(0o755)
    assert bench.run(path).log == "by itself\n"


def test_a_command_is_a_list_never_shell_text(bench):
    ended = bench.run(None, kind="command", command=["echo", "$HOME; rm -rf *", "a  b"])
    assert ended.log == "$HOME; rm -rf * a  b\n"


@pytest.mark.parametrize("command", [["/no/such"], ["a\0b"]])
def test_a_command_that_cannot_start(bench, command):
    ended = bench.run(None, kind="command", command=command)
    assert ended.code == 1
    assert "could not be started: " in ended.reason


@pytest.mark.usefixtures("enough_memory")
def test_a_script_that_is_killed(bench):
    ended = bench.script("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert ended.reason == "s.py was killed (SIGKILL), probably because memory ran out."


def test_a_child_in_the_background_does_not_keep_the_step(bench):
    began = time.monotonic()
    ended = bench.script("sleep 300 &\necho done", "s.sh")
    assert ended.code == 0
    assert time.monotonic() - began < 100


def test_output_that_is_not_text(bench):
    ended = bench.script("import sys; sys.stdout.buffer.write(bytes(range(256)) * 100)")
    assert ended.code == 0
    assert "ABC" in ended.log


def test_a_log_that_is_just_full_ends_with_a_word_when_more_comes(tmp_path):
    record = StepRecord(tmp_path, log_limit=5)
    record.log("12345")
    record.log("6")
    record.log("7")
    record.close()
    text = (tmp_path / "log.txt").read_text()
    assert text == "12345\n[The log ends here: it is longer than 5 bytes.]\n"


def test_endless_output_is_cut(bench, monkeypatch):
    monkeypatch.setenv("CONVECT_LOG_LIMIT", "10000")
    ended = bench.script("for i in range(100000): print(i)\nprint('loss=7')",
                         metrics={"loss": "loss=(.*)"})  # fmt: skip
    assert len(ended.log) < 10100
    assert "The log ends here" in ended.log
    assert ended.outputs["metrics"] == {"loss": 7.0}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is not JSON"),
        ("[]", "does not describe a step"),
        ('{"kind": "dance"}', "kind 'dance' is none of"),
        ('{"kind": "notebook"}', "a notebook needs a source"),
        ('{"kind": "command"}', "a command needs a command"),
    ],
)
def test_a_damaged_step(bench, content, reason):
    folder = bench.attempt(None, kind="command", command=["true"])
    (folder / "step.json").write_text(content)
    process = bench.start(folder)
    process.wait()
    outputs = json.loads((folder / "outputs.json").read_text())
    assert process.returncode == 1
    assert outputs["state"] == "failed"
    assert reason in outputs["reason"]


def test_a_pattern_that_is_no_regular_expression(bench):
    ended = bench.script("", metrics={"loss": "("})
    assert ended.reason.startswith("The pattern of metric loss is not a regular expression: ")


def test_wrong_usage(bench):
    process = bench.start(bench.place / "attempt")
    assert process.wait() == 74
    import subprocess

    alone = subprocess.run(
        [sys.executable, "-m", "jupyterlab_convect.runner"], capture_output=True, text=True
    )
    assert alone.returncode == 2
    assert "Exit codes" in alone.stderr


def test_the_end_of_a_process_that_is_waited_for_is_not_taken_away() -> None:
    script = """
        import asyncio, sys
        from jupyterlab_convect.runner import kernels, processes

        async def look():
            while True:
                kernels.reap_rest()
                await asyncio.sleep(0)

        async def main():
            looking = asyncio.ensure_future(look())
            for _ in range(20):
                process = await kernels.create_process("false")
                assert await process.wait() == 1
            looking.cancel()

        assert processes.adopt()
        asyncio.run(main())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
