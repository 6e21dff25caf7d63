"""What a step uses of the machine, and when and by what its log was written."""

import asyncio
import os
import sys

import pytest
from waiting import PATIENCE

from jupyterlab_convect.runner import record as records
from jupyterlab_convect.runner import usage
from jupyterlab_convect.runner.attempt import run

from .conftest import Ended

BUSY = """
import json, pathlib, subprocess, sys, time
held = b"x" * 64_000_000
spin = "while True: pass"
child = subprocess.Popen([sys.executable, "-c", spin])
events = pathlib.Path({events!r})

def is_seen():
    lines = events.read_text().splitlines(keepends=True)
    told = [json.loads(line) for line in lines if '"usage"' in line and line.endswith("\\n")]
    return any(each["memory"] > 64_000_000 and each["cpu"] > 0.01 for each in told)

# The child spins; what waits for it does not.
until = time.monotonic() + {patience}
while not is_seen() and time.monotonic() < until:
    time.sleep(0.1)
child.kill()
sys.exit(not is_seen())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="It reads /proc.")
def test_a_step_is_sampled_with_all_its_processes(bench, monkeypatch):
    monkeypatch.setattr(usage, "INTERVAL", 0.1)
    script = bench.work / "busy.py"
    folder = bench.attempt(script)
    script.write_text(BUSY.format(events=str(folder / "events.ndjson"), patience=PATIENCE))
    ended = Ended(folder, run(folder))
    assert ended.state == "succeeded", ended.log


RANKS = """
import json, os, pathlib, time
rank = int(os.environ["RANK"])
held = b"x" * (64_000_000 if rank else 1)
told = pathlib.Path({told!r})

def used():
    return [each.get("memory", 0) for each in json.loads(told.read_text())["replicas"]]

until = time.monotonic() + {patience}
while not (told.exists() and used()[1] > 64_000_000 > used()[0] > 0):
    assert time.monotonic() < until
    time.sleep(0.05)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="It reads /proc.")
def test_each_rank_is_sampled(bench, monkeypatch):
    """With the load of the GPU that its local rank counts."""
    monkeypatch.setattr(usage, "INTERVAL", 0.1)
    program = bench.work / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 0, GPU-a, 50, 1000\necho 1, GPU-b, 90, 500\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bench.work}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    script = bench.work / "ranks.py"
    folder = bench.attempt(script, distributed={"processes": 2})
    script.write_text(RANKS.format(told=str(folder / "replicas.json"), patience=PATIENCE))
    ended = Ended(folder, run(folder))
    assert ended.state == "succeeded", ended.log
    first, second = ended.outputs["replicas"]
    assert first["memory"] < 64_000_000 < second["memory"]
    assert first["cpu"] >= 0
    assert (first["gpu_load"], second["gpu_load"]) == (50.0, 90.0)
    assert second["gpu_memory"] == 500 * 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="It reads /proc.")
def test_samples_become_seldom(monkeypatch):
    monkeypatch.setattr(usage, "INTERVAL", 0.0)
    monkeypatch.setattr(usage, "SAMPLES", 2)
    sampling = usage.Usage()

    async def sample(count: int) -> list[object]:
        return [await sampling.sample([os.getpid()]) for _ in range(count)]

    first, *others = asyncio.run(sample(3))
    assert first is None
    assert all(others)
    sampling._interval = 3600.0
    assert not sampling.is_due()


@pytest.mark.skipif(sys.platform != "linux", reason="It reads /proc.")
@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (
            "0, GPU-a, 50, 1000\\n1, GPU-b, 100, 500\\n",
            {"gpu": 75.0, "gpu_memory": 1500 * 2**20},
        ),
        ("no device", {}),
    ],
)
def test_gpus_are_asked_for_where_a_step_has_some(tmp_path, monkeypatch, answer, found):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")

    async def sample() -> dict[str, float]:
        sampling = usage.Usage()
        await sampling.sample([os.getpid()])
        used = await sampling.sample([os.getpid()])
        assert used is not None
        if found:
            assert sampling.gpus["1"] == sampling.gpus["GPU-b"] == (100.0, 500 * 2**20)
        return {name: value for name, value in used.items() if name.startswith("gpu")}

    assert asyncio.run(sample()) == found


def test_the_log_is_marked_where_another_stream_writes(bench):
    ended = bench.cells("import sys\nprint('out')\nprint('bad', file=sys.stderr)\nprint('out')")
    marks = [(mark["offset"], mark["stream"]) for mark in ended.events_of("log")]
    log = ended.log.encode()
    pieces = [
        (stream, log[start:end])
        for (start, stream), (end, _) in zip(marks, [*marks[1:], (None, None)], strict=True)
    ]
    assert (None, b"") not in pieces
    assert b"".join(piece for stream, piece in pieces if stream == "stderr") == b"bad\n"
    assert all(mark["time"] > 1e9 for mark in ended.events_of("log"))


def test_the_log_is_marked_seldom(tmp_path, monkeypatch):
    record = records.StepRecord(tmp_path)
    for _ in range(100):
        record.log("a\n", "stdout")
    monkeypatch.setattr(records, "MARK_INTERVAL", 0.0)
    record._marks_left = 2
    for _ in range(100):
        record.log("b\n", "stdout")
    record.close()
    assert (tmp_path / "events.ndjson").read_text().count('"log"') in (3, 4)
