"""A step of several processes that work together: real processes, which really add up numbers."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runner.launchers import local_rank_option
from jupyterlab_convect.runner.outcome import StepFailed
from jupyterlab_convect.runner.processes import end_marked
from jupyterlab_convect.runner.rounds import Coordinator, Rules, joined
from jupyterlab_convect.runner.step import VALUES, mark_of, read_step
from jupyterlab_convect.runs.gather import make_node_folders

from .conftest import Ended

ALL_REDUCE = textwrap.dedent(
    """
    import os, socket, struct, time

    RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    ADDRESS = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])

    def connect():
        while True:
            try:
                return socket.create_connection(ADDRESS, 60)
            except ConnectionRefusedError:
                time.sleep(0.01)

    def all_reduce(value):
        if RANK:
            with connect() as peer:
                peer.sendall(struct.pack("d", value))
                return struct.unpack("d", peer.recv(8, socket.MSG_WAITALL))[0]
        with socket.create_server(ADDRESS) as server:
            peers = [server.accept()[0] for _ in range(SIZE - 1)]
            for peer in peers:
                value += struct.unpack("d", peer.recv(8, socket.MSG_WAITALL))[0]
            for peer in peers:
                peer.sendall(struct.pack("d", value))
            return value
    """
)
"""What torch.distributed does, over sockets, by the same variables."""

LAUNCHER = textwrap.dedent(
    """
    import os, subprocess, sys
    count = next(int(word.partition("=")[2]) for word in sys.argv if "nproc_per_node" in word)
    node = next((int(word.partition("=")[2]) for word in sys.argv if "node_rank" in word), 0)
    command = sys.argv[sys.argv.index("--no_python") + 1:]
    print("the launcher speaks", flush=True)
    ranks = [
        subprocess.Popen(
            command, env={**os.environ, "RANK": str(node * count + n), "LOCAL_RANK": str(n)}
        )
        for n in range(count)
    ]
    while ranks:
        pid, status = os.wait()
        ranks = [each for each in ranks if each.pid != pid]
        if status:
            for each in ranks:
                each.terminate()
            sys.exit(1)
    """
)
"""Does with processes what `torch.distributed.run` does, where torch is too large to install."""


def torch_like(bench):
    package = bench.work / "torch" / "distributed"
    package.mkdir(parents=True)
    (bench.work / "torch" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "run.py").write_text(LAUNCHER)
    return {"PYTHONPATH": os.pathsep.join([str(bench.work), os.environ.get("PYTHONPATH", "")])}


def mpirun_like(bench):
    program = bench.work / "mpirun"
    lines = LAUNCHER.replace("nproc_per_node", "-n=").replace('"RANK"', '"OMPI_COMM_WORLD_RANK"')
    lines = lines.replace('"LOCAL_RANK"', '"OMPI_COMM_WORLD_LOCAL_RANK"')
    lines = lines.replace(
        'next(int(word.partition("=")[2]) for word in sys.argv if "-n=" in word)',
        "int(sys.argv[2])",
    ).replace('sys.argv.index("--no_python") + 1', "3")
    program.write_text(f"#!{sys.executable}\n{lines}")
    program.chmod(0o755)
    return {"PATH": f"{bench.work}{os.pathsep}{os.environ['PATH']}"}


def environment(bench, launcher):
    if launcher == "plain":
        return {}
    return torch_like(bench) if launcher == "torchrun" else mpirun_like(bench)


def replicas(ended):
    return {each["rank"]: each for each in ended.outputs["replicas"]}


def log_of(ended, rank):
    return (ended.folder / "replicas" / f"{rank}.log").read_text()


@pytest.mark.parametrize("launcher", ["plain", "torchrun", "mpi"])
def test_all_ranks_add_up_their_numbers(bench, launcher):
    ended = bench.script(
        f"{ALL_REDUCE}\nprint('sum', all_reduce(RANK + 1), '总和')",
        name="训练.py",
        distributed={"processes": 4, "launcher": launcher},
        env=environment(bench, launcher),
    )
    assert ended.state == "succeeded", ended.log
    for rank in range(4):
        assert log_of(ended, rank) == "sum 10.0 总和\n"
        assert f"[{rank}] sum 10.0 总和\n" in ended.log
        assert replicas(ended)[rank]["state"] == "succeeded"
        assert replicas(ended)[rank]["exit_code"] == 0
    assert json.loads((ended.folder / "replicas.json").read_text()) == {
        "replicas": ended.outputs["replicas"]
    }


@pytest.mark.parametrize("launcher", ["plain", "torchrun", "mpi"])
def test_the_first_rank_that_failed_is_named_and_all_others_are_stopped(bench, launcher):
    script = f"""{ALL_REDUCE}
if RANK == 2:
    print("before")
    raise ValueError("no more data")
import time
time.sleep(600)
"""
    ended = bench.script(
        script,
        distributed={"processes": 4, "launcher": launcher},
        env=environment(bench, launcher),
    )
    assert ended.state == "failed"
    assert ended.reason == "Rank 2 of s.py exited with code 1: ValueError: no more data"
    assert "Traceback" in ended.outputs["error"]["traceback"]
    found = replicas(ended)
    assert found[2]["state"] == "failed"
    assert found[2]["exit_code"] == 1
    assert found[2]["reason"] == "The process exited with code 1."
    for rank in (0, 1, 3):
        assert found[rank]["state"] == "cancelled"
        assert found[rank]["reason"] == "Stopped because rank 2 failed."


def test_what_is_set_for_each_rank(bench):
    script = """
import os
print(*(os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
    "NODE_RANK", "MASTER_ADDR", "CONVECT_RESTART", "rate")))
print(int(os.environ["MASTER_PORT"]) > 1023, int(os.environ["OMP_NUM_THREADS"]) > 0)
"""
    ended = bench.script(script, distributed={"processes": 2}, parameters={"rate": 0.5})
    for rank in range(2):
        assert log_of(ended, rank) == f"{rank} {rank} 2 2 0 127.0.0.1 0 0.5\nTrue True\n"


def test_values_and_metrics_are_those_of_one_rank(bench):
    script = """
import os, jupyterlab_convect as convect
convect.output("rank", int(os.environ["RANK"]))
convect.metric("loss", int(os.environ["RANK"]))
print("accuracy=0.%s" % os.environ["RANK"])
"""
    ended = bench.script(
        script,
        distributed={"processes": 3, "outputs_from": 1},
        metrics={"accuracy": "accuracy=(.*)"},
    )
    assert ended.outputs["values"] == {"rank": 1}
    assert ended.outputs["metrics"] == {"loss": 1, "accuracy": 0.1}


def test_all_start_again_after_one_failed(bench):
    script = f"""{ALL_REDUCE}
from pathlib import Path
total = all_reduce(1)
if RANK == 1 and not Path("checkpoint").exists():
    Path("checkpoint").touch()
    os._exit(3)
print("try", os.environ["CONVECT_RESTART"], total)
"""
    ended = bench.script(script, distributed={"processes": 3, "restarts": 2})
    assert ended.state == "succeeded", ended.log
    assert "[Restart 1 of 2: Rank 1 of s.py exited with code 3.]\n" in ended.log
    assert "[Restart 2" not in ended.log
    for rank in range(3):
        assert "try 1 3.0\n" in log_of(ended, rank)
        assert replicas(ended)[rank]["state"] == "succeeded"


def test_restarts_come_to_an_end(bench):
    ended = bench.script("raise SystemExit(4)", distributed={"processes": 2, "restarts": 1})
    assert ended.state == "failed"
    assert ended.reason.endswith("exited with code 4.")
    assert ended.log.count("[Restart") == 1


def test_stopping_the_step_stops_all_ranks(bench, until):
    script = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    source = bench.work / "s.py"
    source.write_text(script)
    folder = bench.attempt(source, distributed={"processes": 3, "restarts": 5})
    process = bench.start(folder)
    logs = [folder / "replicas" / f"{rank}.log" for rank in range(3)]
    until(lambda: all(log.exists() and log.read_text().endswith("\n") for log in logs))
    pids = [int(log.read_text()) for log in logs]
    process.send_signal(signal.SIGTERM)
    ended = Ended(folder, process.wait())
    assert ended.state == "cancelled"
    assert {each["state"] for each in ended.outputs["replicas"]} == {"cancelled"}
    assert "Restart" not in ended.log
    for pid in pids:
        assert not Path(f"/proc/{pid}").exists()


def test_one_that_does_not_heed_the_request_is_killed(bench):
    script = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(f"ready{os.environ['RANK']}", "w").close()
while os.environ["RANK"] == "1" and not os.path.exists("ready0"):
    time.sleep(0.01)
if os.environ["RANK"] == "1":
    raise SystemExit(9)
time.sleep(600)
"""
    source = bench.work / "s.py"
    source.write_text(script)
    folder = bench.attempt(source, distributed={"processes": 2})
    process = bench.start(folder, CONVECT_GRACE="0.2")
    ended = Ended(folder, process.wait())
    assert ended.reason == "Rank 1 of s.py exited with code 9."
    assert replicas(ended)[0]["exit_code"] == -signal.SIGKILL


def test_a_command_and_its_arguments(bench):
    command = ["sh", "-c", "echo rank $RANK of $WORLD_SIZE"]
    ended = bench.run(kind="command", command=command, distributed={"processes": 2})
    assert [log_of(ended, rank) for rank in range(2)] == ["rank 0 of 2\n", "rank 1 of 2\n"]


def test_a_program_that_is_not_there(bench):
    ended = bench.run(kind="command", command=["no-such-program"], distributed={"processes": 2})
    assert "no-such-program could not be started: No such file or directory." in ended.reason


@pytest.mark.parametrize("option", ["--local_rank", "--local-rank"])
@pytest.mark.parametrize("launcher", ["plain", "torchrun"])
def test_a_script_is_told_its_local_rank_as_it_wants_to_be(bench, option, launcher):
    script = f"""
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("{option}", type=int, default=-1)
print("local rank", parser.parse_args().local_rank)
"""
    ended = bench.script(
        script,
        distributed={"processes": 2, "launcher": launcher},
        env=environment(bench, launcher),
    )
    assert [log_of(ended, rank) for rank in (0, 1)] == ["local rank 0\n", "local rank 1\n"]


def test_the_option_is_read_and_not_run():
    assert local_rank_option(b"raise SystemExit") is None
    assert local_rank_option(b"p.add_argument('-r', '--local-rank')") == "--local-rank"
    assert local_rank_option(b"# add_argument('--local_rank')") is None
    assert local_rank_option(b"def broken(") is None


def test_secrets_are_masked_in_every_log(bench, monkeypatch):
    monkeypatch.setenv("TOKEN", "hunter2hunter2")
    monkeypatch.setenv("CONVECT_SECRETS", "TOKEN")
    ended = bench.script("import os\nprint(os.environ['TOKEN'])", distributed={"processes": 2})
    assert "hunter2" not in ended.log + log_of(ended, 0) + log_of(ended, 1)


@pytest.mark.parametrize(
    ("launcher", "needed"), [("torchrun", "torch, which"), ("mpi", "mpirun, which is not")]
)
def test_a_launcher_that_is_not_there(bench, launcher, needed):
    if launcher == "torchrun" and has_torch():
        pytest.skip("torch is installed")
    how = {"processes": 2, "launcher": launcher}
    ended = bench.script("1", distributed=how, env={"PATH": str(bench.work)})
    assert ended.reason.startswith(f"s.py needs {needed}")


def has_torch():
    return subprocess.call([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL) == 0


def start_nodes(bench, script, nodes=2, step=None, started=None, env=None, **distributed):
    """A runner for each node, in a folder of its own, as on machines that share a volume."""
    source = bench.work / "s.py"
    source.write_text(script)
    how = {"nodes": nodes, **distributed}
    folder = bench.attempt(source, distributed=how, **(step or {}))
    make_node_folders(folder, nodes)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (bench.place / "master").write_text(f"127.0.0.1 {port}\n")
    given = {"CONVECT_MASTER": str(bench.place / "master"), **(env or {})}

    def start(node):
        return bench.start(folder, CONVECT_NODE=str(node), **given)

    runners = [start(node) for node in range(nodes if started is None else started)]
    for runner in runners:
        runner.another = start
    return folder, runners


@pytest.mark.parametrize("launcher", ["plain", "torchrun"])
def test_the_ranks_of_two_nodes_add_up_their_numbers(bench, launcher, monkeypatch):
    for name, value in environment(bench, launcher).items():
        monkeypatch.setenv(name, value)
    script = f"""{ALL_REDUCE}
print(RANK, os.environ["LOCAL_RANK"], os.environ["NODE_RANK"], SIZE, all_reduce(RANK + 1))
"""
    folder, runners = start_nodes(bench, script, processes=2, launcher=launcher)
    assert [runner.wait() for runner in runners] == [0, 0]
    ended = [Ended(folder / "nodes" / str(node), 0) for node in range(2)]
    said = [log_of(ended[rank // 2], rank) for rank in range(4)]
    assert said == [f"{rank} {rank % 2} {rank // 2} 4 10.0\n" for rank in range(4)]
    assert sorted(replicas(ended[1])) == [2, 3]


def test_only_the_node_whose_outputs_count_keeps_files(bench):
    script = """
import os, pathlib, jupyterlab_convect as convect
rank = os.environ["RANK"]
convect.output("rank", rank)
if rank == "1": pathlib.Path("model.bin").write_text(rank)
"""
    source = bench.work / "s.py"
    source.write_text(script)
    how = {"nodes": 2, "outputs_from": 1}
    folder = bench.attempt(source, distributed=how, outputs=["model.bin"])
    make_node_folders(folder, 2)
    (bench.place / "master").write_text("127.0.0.1 1")
    env = {"CONVECT_MASTER": str(bench.place / "master")}
    for node in (1, 0):
        assert bench.start(folder, CONVECT_NODE=str(node), **env).wait() == 0
    first, second = (Ended(folder / "nodes" / str(node), 0).outputs for node in range(2))
    assert (first["files"], first["values"]) == ([], {})
    assert [each["path"] for each in second["files"]] == ["model.bin"]
    assert second["values"] == {"rank": "1"}


def test_a_node_that_does_not_know_the_first_one(bench):
    ended = bench.script("1", distributed={"nodes": 2})
    assert ended.reason == "The address of the first node is not known."


RESTARTED = f"""{ALL_REDUCE}
from pathlib import Path
total = all_reduce(1)
if RANK == 3 and not Path("checkpoint").exists():
    Path("checkpoint").touch()
    os._exit(3)
print("try", os.environ["CONVECT_RESTART"], total, flush=True)
"""


@pytest.mark.parametrize("launcher", ["plain", "torchrun"])
def test_all_nodes_start_again_after_one_rank_failed(bench, launcher, monkeypatch):
    for name, value in environment(bench, launcher).items():
        monkeypatch.setenv(name, value)
    how = {"processes": 2, "restarts": 1, "launcher": launcher}
    folder, runners = start_nodes(bench, RESTARTED, **how)
    assert [runner.wait() for runner in runners] == [0, 0]
    ended = [Ended(folder / "nodes" / str(node), 0) for node in range(2)]
    for node in range(2):
        assert "[Restart 1 of 1: Rank 3 of s.py exited with code 3.]\n" in ended[node].log
    for rank in range(4):
        assert log_of(ended[rank // 2], rank).endswith("try 1 4.0\n")
        assert replicas(ended[rank // 2])[rank]["state"] == "succeeded"


def test_restarts_of_several_nodes_come_to_an_end(bench):
    script = "import os, time\nif os.environ['RANK'] == '1': raise SystemExit(4)\ntime.sleep(600)"
    folder, runners = start_nodes(bench, script, restarts=1)
    assert [runner.wait() for runner in runners] == [1, 1]
    first, second = (Ended(folder / "nodes" / str(node), 1) for node in range(2))
    assert second.reason == "Rank 1 of s.py exited with code 4."
    assert second.log.count("[Restart") == 1
    assert replicas(first)[0]["state"] == "cancelled"


TOGETHER = {"CONVECT_JOIN_WAIT": "3600"}
"""The first round is of all nodes, however late one of them comes."""
ELASTIC = f"""{ALL_REDUCE}
from pathlib import Path
print("round", os.environ["CONVECT_RESTART"], "of", SIZE, "ranks:", all_reduce(1), flush=True)
while not Path("enough").exists():
    time.sleep(0.05)
print("rank", RANK, "done", flush=True)
"""


def end_rest_of(folder, node):
    """What a runner that was killed has left."""
    end_marked(mark_of(folder / "nodes" / str(node) / VALUES))


def said_by(folder, node, rank):
    log = folder / "nodes" / str(node) / "replicas" / f"{rank}.log"
    return log.read_text() if log.exists() else ""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_those_that_are_left_go_on_without_a_node_that_is_gone(bench, until, end):
    """The second of three nodes is evicted, or dies: the third one has its rank then."""
    folder, runners = start_nodes(bench, ELASTIC, nodes=3, min_nodes=2, env=TOGETHER)
    until(lambda: all("round 0 of 3 ranks: 3.0" in said_by(folder, n, n) for n in range(3)))
    runners[1].send_signal(end)
    runners[1].wait()
    until(lambda: all("round 1 of 2 ranks: 2.0" in said_by(folder, n, n) for n in (0, 2)))
    (bench.work / "enough").touch()
    assert [runners[node].wait() for node in (0, 2)] == [0, 0]
    first = Ended(folder / "nodes" / "0", 0)
    assert "[Restart, on 2 of 3 nodes: Node 1 was lost.]\n" in first.log
    assert "rank 1 done" in said_by(folder, 2, 2)
    end_rest_of(folder, 1)


def test_a_node_that_comes_late_is_taken_in(bench, until):
    folder, runners = start_nodes(
        bench, ELASTIC, nodes=2, started=1, min_nodes=1, env={"CONVECT_JOIN_WAIT": "0"}
    )
    until(lambda: "round 0 of 1 ranks: 1" in said_by(folder, 0, 0))
    runners.append(runners[0].another(1))
    until(lambda: all("round 1 of 2 ranks: 2.0" in said_by(folder, n, n) for n in range(2)))
    (bench.work / "enough").touch()
    assert [runner.wait() for runner in runners] == [0, 0]


def test_too_few_nodes_are_left(bench, until):
    folder, runners = start_nodes(bench, ELASTIC, nodes=3, min_nodes=3, restarts=5)
    until(lambda: all("round 0" in said_by(folder, n, n) for n in range(3)))
    runners[2].kill()
    assert [runners[node].wait() for node in (0, 1)] == [1, 1]
    assert Ended(folder / "nodes" / "0", 1).reason == "Node 2 was lost."
    end_rest_of(folder, 2)


def test_all_end_with_the_first_node(bench, until):
    folder, runners = start_nodes(bench, ELASTIC, nodes=2, min_nodes=1, env=TOGETHER)
    until(lambda: all("round 0" in said_by(folder, n, n) for n in range(2)))
    runners[0].kill()
    assert runners[1].wait() == 1
    assert {each["state"] for each in replicas(Ended(folder / "nodes" / "1", 1)).values()} == {
        "cancelled"
    }
    end_rest_of(folder, 0)


def test_nodes_execute_nothing_for_somebody_without_their_key():
    async def ask(key: str, port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(json.dumps({"key": key, "on": 0, "words": "true"}).encode() + b"\n")
        answer = await reader.readline()
        writer.close()
        return answer

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        rules = Rules(nodes=1, least=1, restarts=0, wait=0, key="right")
        async with joined(0, rules, ("127.0.0.1", port), 60) as member:
            executed: list[str] = []

            async def execute(words: str) -> int:
                executed.append(words)
                return 7

            member.execute = execute
            assert await member.next() is not None
            assert await ask("wrong", port) == b""
            assert json.loads(await ask("right", port)) == {"code": 7}
            assert executed == ["true"]

    asyncio.run(main())


def test_all_nodes_hear_of_a_fault_of_the_one_that_coordinates(monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("no memory")

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        rules = Rules(nodes=1, least=1, restarts=0, wait=0, key="right")
        async with joined(0, rules, ("127.0.0.1", port), 60) as member:
            with pytest.raises(
                StepFailed, match=r"cannot be coordinated \(RuntimeError: no memory"
            ):
                await asyncio.wait_for(member.next(), 300)

    monkeypatch.setattr(Coordinator, "_begin", fail)
    asyncio.run(main())


def test_several_nodes_need_a_key(bench):
    folder = bench.attempt(
        kind="command", command=["true"], distributed={"nodes": 2, "processes": 1, "key": ""}
    )
    with pytest.raises(ConvectError, match="several nodes need a key"):
        read_step(folder / "step.json")
