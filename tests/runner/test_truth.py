"""One attempt is executed once, and its end is written down even when that is hard."""

import json
import os
import subprocess
import sys
import threading

import pytest

from jupyterlab_convect.runner.attempt import run
from jupyterlab_convect.runner.notebook_work import Pace
from jupyterlab_convect.runner.outcome import explain_end
from jupyterlab_convect.runner.processes import identify, is_alive, is_here, start_time
from jupyterlab_convect.safe_files import write_whole


def test_two_runners_of_one_attempt(bench):
    path = bench.work / "s.sh"
    path.write_text("echo once; sleep 0.2")
    folder = bench.attempt(path)
    processes = [bench.start(folder) for _ in range(3)]
    assert sorted(process.wait() for process in processes) == [0, 75, 75]
    assert (folder / "log.txt").read_text() == "once\n"
    winner = json.loads((folder / "runner.json").read_text())["pid"]
    (first,) = [process for process in processes if process.returncode == 0]
    assert winner == first.pid


def test_a_finished_attempt_is_not_executed_again(bench):
    ended = bench.script("print('once')")
    before = (ended.folder / "outputs.json").read_bytes()
    assert run(ended.folder) == 75
    assert (ended.folder / "outputs.json").read_bytes() == before
    assert ended.log == "once\n"


def test_two_notebooks_at_once_from_the_same_source(bench):
    source = bench.notebook("import os; print(os.environ['N'])")
    folders = [bench.attempt(source, env={"N": str(n)}) for n in range(3)]
    for process in [bench.start(folder) for folder in folders]:
        assert process.wait() == 0
    assert [(folder / "log.txt").read_text() for folder in folders] == ["0\n", "1\n", "2\n"]


def test_a_folder_that_cannot_be_written(bench):
    process = bench.start(bench.place / "no" / "such")
    assert process.wait() == 74
    assert "cannot be written: No such file or directory." in process.stderr.read()


def test_a_mistake_of_the_runner_still_has_an_end(bench, monkeypatch):
    from jupyterlab_convect.runner import declared_files

    def fail(*_):
        raise RuntimeError("oops")

    monkeypatch.setattr(declared_files, "place", fail)
    ended = bench.script("")
    assert ended.code == 1
    assert ended.reason == "The runner failed: RuntimeError: oops"


def _can_mount():
    test = ["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(test, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


@pytest.mark.skipif(not _can_mount(), reason="a small disk cannot be mounted here")
@pytest.mark.parametrize("kind", ["notebook", "script"])
def test_a_disk_that_is_full(bench, tmp_path, kind):
    if kind == "notebook":
        source = bench.notebook(
            "print('x' * 1000)", f"open('{tmp_path}/disk/fill', 'wb').write(bytes(10**7))"
        )
    else:
        source = bench.work / "s.py"
        source.write_text(
            "import sys\ntry:\n    f = open('fill', 'wb', buffering=0)\n"
            "    while True: f.write(bytes(1024))\nexcept OSError: pass\nprint('x' * 100000)"
        )
    (tmp_path / "disk").mkdir()
    step = {"kind": kind, "source": str(source), "folder": str(tmp_path / "disk"), "step": "s"}
    (tmp_path / "step.json").write_text(json.dumps(step))
    script = (
        'mount -t tmpfs -o size=512k none "$1/disk" && mkdir "$1/disk/a" && '
        'cp "$1/step.json" "$1/disk/a" && "$2" -m jupyterlab_convect.runner "$1/disk/a"; '
        'echo "code $?"; cat "$1/disk/a/outputs.json"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", str(tmp_path),
         sys.executable],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    code, _, outputs = done.stdout.partition("\n")
    assert code == "code 1", done
    result = json.loads(outputs)
    assert result["state"] == "failed"
    assert "space" in result["reason"].lower()


class TestSaving:
    def test_never_more_than_a_quarter_of_the_time(self):
        now = 0.0
        spent = 0.0
        saves = 0
        pace = Pace(least=1.0, clock=lambda: now)

        def write():
            nonlocal now, spent, saves
            now += 2.0
            spent += 2.0
            saves += 1

        for _ in range(10_000):
            now += 0.01
            if pace.due():
                pace.save(write)
        assert saves > 3
        assert spent <= 0.25 * now + 2.0

    def test_a_reader_never_sees_a_part(self, tmp_path):
        path = tmp_path / "f.json"
        contents = {bytes([letter]) * 200_000 for letter in b"abc"}
        write_whole(path, b"a" * 200_000)
        seen = set()
        stop = threading.Event()

        def read():
            while not stop.is_set():
                seen.add(path.read_bytes())

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(100):
            for content in contents:
                write_whole(path, content)
        stop.set()
        reader.join()
        assert seen <= contents
        assert [p.name for p in tmp_path.iterdir()] == ["f.json"]

    def test_a_failed_write_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "f"
        path.mkdir()
        with pytest.raises(OSError, match="directory"):
            write_whole(path, b"x")
        assert [p.name for p in tmp_path.iterdir()] == ["f"]


class TestIdentity:
    def test_this_process_lives(self):
        me = identify(os.getpid())
        assert is_alive(me)
        assert is_here(me)

    def test_another_process_with_the_same_id_is_not_it(self):
        me = identify(os.getpid())
        assert not is_alive({**me, "start_time": (me["start_time"] or 0) + 1})
        assert not is_alive({**me, "boot": "other"})
        assert not is_alive({**me, "host": "other"})

    def test_the_dead_and_the_undead(self):
        process = subprocess.Popen(["true"])
        found = identify(process.pid)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert start_time(process.pid) is None  # a zombie
        assert not is_alive(found)
        process.wait()
        assert not is_alive(found)

    def test_a_name_with_parentheses(self, tmp_path):
        program = tmp_path / "a) 1 (b"
        program.symlink_to("/bin/sleep")
        process = subprocess.Popen([program, "60"])
        try:
            assert is_alive(identify(process.pid))
        finally:
            process.kill()
            process.wait()


def test_ends():
    assert explain_end(3) == "exited with code 3"
    assert explain_end(-15) == "was ended by SIGTERM"
    assert explain_end(-11) == "crashed (SIGSEGV)"
    assert explain_end(-64) == "was ended by SIGRTMAX"

    class Watch:
        def explain_kill(self):
            return "by the system because memory ran out"

    assert explain_end(-9, Watch()) == "was killed by the system because memory ran out (SIGKILL)"
