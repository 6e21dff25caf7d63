"""Kernels that die, do not start, talk too much, or keep something for their end."""

import json
import os
import sys
from pathlib import Path

import pytest

from jupyterlab_convect.runner import kernels
from jupyterlab_convect.runner.kernels import KernelSpec
from jupyterlab_convect.runner.outcome import StepFailed


@pytest.fixture
def install_kernel(tmp_path, monkeypatch):
    """Install a kernel that runs `argv` for the time of a test."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))

    def install(name, argv, **more):
        folder = tmp_path / "jupyter" / "kernels" / name
        folder.mkdir(parents=True)
        spec = {"argv": argv, "display_name": name, "language": "python", **more}
        (folder / "kernel.json").write_text(json.dumps(spec))

    return install


@pytest.mark.usefixtures("enough_memory")
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import os; os._exit(3)", "The kernel exited with code 3 in cell 2."),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "The kernel was killed (SIGKILL), probably because memory ran out in cell 2.",
        ),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
            "The kernel crashed (SIGSEGV) in cell 2.",
        ),
    ],
)
def test_a_kernel_that_dies(bench, source, reason):
    ended = bench.cells("print('kept')", source, "print('after')")
    assert ended.code == 1
    assert ended.reason == reason
    assert ended.outputs["error"]["cell"] == 2
    assert ended.printed(0) == "kept\n"
    assert [c.metadata.papermill["status"] for c in ended.notebook.cells] == [
        "completed", "failed", "pending"
    ]  # fmt: skip
    assert "after" not in ended.log


def test_too_much_memory_is_an_error_in_the_cell(bench, monkeypatch):
    monkeypatch.setenv("CONVECT_MEMORY_LIMIT", str(500 * 2**20))
    ended = bench.cells("x = bytearray(2**30)")
    assert ended.reason.startswith("Cell 1 raised MemoryError")


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["/no/such/program", "{connection_file}"], "/no/such/program was not found"),
        ([sys.executable, "-c", "print('sorry'); exit(7)"], "The kernel exited with code 7"),
    ],
)
def test_a_kernel_that_does_not_start(bench, install_kernel, argv, reason):
    install_kernel("broken", argv)
    ended = bench.cells("1", kernel="broken")
    assert ended.code == 1
    assert "The kernel broken" in ended.reason
    assert reason in ended.reason
    if argv[0] == sys.executable:
        assert "sorry" in ended.log
        statuses = {cell.metadata.papermill["status"] for cell in ended.notebook.cells}
        assert statuses == {"pending"}


def test_a_kernel_that_never_answers(bench, install_kernel, monkeypatch):
    install_kernel("mute", [sys.executable, "-c", "import time; time.sleep(600)"])
    monkeypatch.setenv("CONVECT_START_TIMEOUT", "0.5")
    ended = bench.cells("1", kernel="mute")
    assert ended.reason == "The kernel did not answer within 0.5 s."


def test_a_kernel_over_tcp_with_an_environment_of_its_own(bench, install_kernel):
    code = "from ipykernel.kernelapp import main; main()"
    install_kernel(
        "Other",
        [sys.executable, "-c", code, "-f", "{connection_file}"],
        env={"FLAVOUR": "${BASE}-x"},
        interrupt_mode="message",
    )
    ended = bench.cells(
        "import os; print(os.environ['FLAVOUR'])", kernel="other", env={"BASE": "vanilla"}
    )
    assert ended.log.endswith("vanilla-x\n")


def test_endless_output_is_cut_with_a_note(bench, monkeypatch):
    monkeypatch.setenv("CONVECT_OUTPUT_LIMIT", "5000")
    monkeypatch.setenv("CONVECT_LOG_LIMIT", "20000")
    ended = bench.cells("for i in range(20000): print(i)", "print('next')")
    assert ended.code == 0
    printed = ended.printed(0)
    assert printed.startswith("0\n1\n2\n")
    assert len(printed) < 5200
    assert printed.endswith("[The output of this cell ends here: it is larger than 5 kB.]\n")
    assert ended.printed(1) == "next\n"
    assert len(ended.log) < 20200
    assert ended.log.endswith("[The log ends here: it is longer than 20 kB.]\n")
    assert len((ended.folder / "events.ndjson").read_bytes()) < 100_000


def test_one_huge_print_is_kept_up_to_the_limit(bench, monkeypatch):
    monkeypatch.setenv("CONVECT_OUTPUT_LIMIT", "1000")
    ended = bench.cells("print('x' * 100_000)")
    assert ended.printed(0).startswith("x" * 1000 + "\n[")


def test_output_that_is_not_text(bench):
    ended = bench.cells(
        "import os, sys\nsys.stdout.flush()\nos.write(1, b'\\xff\\x00\\xfe ok\\n')",
        "from IPython.display import Image, display\n"
        "display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + bytes(50), format='png'))",
    )
    assert ended.code == 0
    assert "ok" in ended.log
    assert "image/png" in ended.notebook.cells[1].outputs[0].data


def test_outputs_that_change(bench):
    ended = bench.cells(
        "from IPython.display import display, clear_output\n"
        "print('gone')\nclear_output()\nprint('stays')\n"
        "handle = display('first', display_id=True)\nprint('a'); print('b')",
        "handle.update('second')",
        "import sys\nfor i in range(3): print(f'\\r{i} done', end='')\nprint()",
    )
    first = ended.notebook.cells[0].outputs
    assert [o.output_type for o in first] == ["stream", "display_data", "stream"]
    assert first[0].text == "stays\n"
    assert first[1].data["text/plain"] == "'second'"
    assert first[2].text == "a\nb\n"
    assert ended.printed(2) == "2 done\n"


def test_what_a_thread_prints_later_stays_with_its_cell(bench):
    ended = bench.cells(
        "import threading, time\n"
        "thread = threading.Thread(target=lambda: (time.sleep(0.3), print('late', flush=True)))\n"
        "thread.start()",
        "thread.join(); print('joined')",
    )
    assert "late" in ended.printed(0) + ended.printed(1)
    assert ended.printed(1).endswith("joined\n")


def test_exit_handlers_run_and_open_files_are_written(bench):
    ended = bench.cells(
        "import atexit, time\n"
        "atexit.register(lambda: (time.sleep(0.2), open('handler.txt', 'w').write('ran')))\n"
        "left = open('left.txt', 'w'); left.write('open')",
        outputs=["*.txt"],
    )
    assert ended.code == 0
    assert [f["path"] for f in ended.outputs["files"]] == ["handler.txt", "left.txt"]
    assert (ended.folder / "files" / "handler.txt").read_text() == "ran"
    assert (ended.folder / "files" / "left.txt").read_text() == "open"


def test_processes_a_notebook_leaves_are_ended(bench, wait_for):
    ended = bench.cells("import subprocess\np = subprocess.Popen(['sleep', '1000'])\nprint(p.pid)")
    assert ended.code == 0
    pid = int(ended.log)
    wait_for(lambda: not _runs(pid))


def _runs(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_reporting_works_in_a_kernel_without_the_package(bench, install_kernel):
    """As in an environment of its own: the package cannot be imported there by itself."""
    code = (
        f"import sys; sys.path = [p for p in sys.path if 'jupyterlab' not in p.lower()]\n"
        f"sys.meta_path = [f for f in sys.meta_path if 'editable' not in str(f).lower()]\n"
        f"sys.path = [p for p in sys.path if p != {str(Path.cwd())!r}]\n"
        "from ipykernel.kernelapp import main; main()"
    )
    install_kernel("bare", [sys.executable, "-c", code, "-f", "{connection_file}"])
    ended = bench.cells(
        "import jupyterlab_convect\njupyterlab_convect.output('x', 1)\n"
        "print(jupyterlab_convect.__file__)",
        kernel="bare",
    )
    assert ended.outputs["values"] == {"x": 1}


class TestSpecifications:
    def test_the_native_kernel_is_always_there(self, monkeypatch, tmp_path):
        monkeypatch.setattr(kernels, "_folders", lambda: [tmp_path])
        assert kernels.find("python3").ipykernel == ([], [])

    def test_damaged_ones_are_passed_over(self, install_kernel, tmp_path):
        install_kernel("good", ["x"])
        for name, content in (("bad", "{"), ("worse", "[]"), ("worst", '{"argv": 3}')):
            folder = tmp_path / "jupyter" / "kernels" / name
            folder.mkdir()
            (folder / "kernel.json").write_text(content)
        found = kernels.installed()
        assert "good" in found
        assert not {"bad", "worse", "worst"} & set(found)

    def test_an_unknown_one_names_the_known(self):
        with pytest.raises(StepFailed, match=r"klingon is not installed; installed are .*python3"):
            kernels.find("klingon")

    def test_the_command(self, tmp_path):
        argv = ("python3", "{resource_dir}/x", "{connection_file}", "{unknown}")
        spec = KernelSpec("k", argv, tmp_path)
        expected = [sys.executable, f"{tmp_path}/x", "/c.json", "{unknown}"]
        assert spec.command("/c.json") == expected

    def test_what_counts_as_ipykernel(self):
        def found(*argv):
            return KernelSpec("k", argv).ipykernel

        file = "{connection_file}"
        assert found("python", "-m", "ipykernel_launcher", "-f", file) == ([], [])
        flags = ("/x/python", "-Xfrozen_modules=off", "-m", "ipykernel_launcher")
        assert found(*flags, "-f", file, "--a") == (["-Xfrozen_modules=off"], ["--a"])
        assert found("python", "-m", "bash_kernel", "-f", file) is None
        assert found("R", "-e", "IRkernel::main()", "--args", file) is None

    def test_a_kernel_that_something_else_runs_is_refused(self, bench, install_kernel):
        provisioner = {"kernel_provisioner": {"provisioner_name": "far-away"}}
        install_kernel("remote", ["x"], metadata=provisioner)
        ended = bench.cells("1", kernel="remote")
        assert ended.reason == "The kernel remote is run by far-away, not as a process here."
