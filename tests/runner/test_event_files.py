"""Scalars of event files: written by TensorBoard's own writer, read by ours."""

import math
import os
import struct
import time

import pytest

from jupyterlab_convect.runner import event_files
from jupyterlab_convect.runner.event_files import EventFiles, masked_checksum, scalars_in

SCRIPT = """
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

def write(folder, tag, values):
    writer = EventFileWriter(folder)
    for step, value in enumerate(values):
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(Event(step=step, wall_time=1000.5 + step, summary=summary))
    writer.close()
"""


def record(data):
    size = struct.pack("<Q", len(data))
    return size + struct.pack("<I", masked_checksum(size)) + data + b"\0\0\0\0"


def message(number, kind, content):
    return bytes([number << 3 | kind]) + content


def text(number, content):
    return message(number, 2, bytes([len(content)]) + content)


def event(step, value, wall=1.5):
    wall_time = message(1, 1, struct.pack("<d", wall))
    return record(wall_time + message(2, 0, bytes([step])) + text(5, text(1, value)))


def simple(tag, value):
    return text(1, tag.encode()) + message(2, 5, struct.pack("<f", value))


def tensor(tag, kind, content, shape=b""):
    inner = message(1, 0, bytes([kind])) + text(2, shape) + text(4, content)
    return text(1, tag.encode()) + text(8, inner)


@pytest.fixture
def told():
    return []


@pytest.fixture
def files(told):
    return EventFiles(0, lambda *point: told.append(point))


def test_what_tensorboard_writes(tmp_path, files, told):
    pytest.importorskip("tensorboard")
    exec(f"{SCRIPT}\nwrite({str(tmp_path / '日志')!r}, 'loss', [1.0, 0.5, float('nan')])", {})
    files.finish(tmp_path)
    assert told[:2] == [("loss", 1.0, 0, 1000.5), ("loss", 0.5, 1, 1001.5)]
    assert math.isnan(told[2][1])


def test_a_step_that_logs_to_tensorboard_has_metrics(bench):
    pytest.importorskip("tensorboard")
    script = f"""{SCRIPT}
write("runs/train", "loss", [2.0, 1.0])
write("runs/validation", "loss", [3.0])
write("runs/train", "accuracy", [0.1])
import jupyterlab_convect as convect
convect.metric("accuracy", 0.9)
"""
    ended = bench.script(script)
    assert ended.outputs["metrics"] == {"loss": 1.0, "validation/loss": 3.0, "accuracy": 0.9}
    first, second = (each for each in ended.events_of("metric") if each["name"] == "loss")
    assert (first["value"], first["step"], second["step"], second["time"]) == (2.0, 0, 1, 1001.5)


def test_old_files_are_not_those_of_the_step(bench):
    (bench.work / "events.out.tfevents.1").write_bytes(event(1, simple("old", 1)))
    os.utime(bench.work / "events.out.tfevents.1", (1, 1))
    assert bench.script("pass").outputs["metrics"] == {}


def test_points_are_reported_while_the_step_runs(bench, until):
    content = event(7, simple("loss", 0.25))
    source = bench.work / "s.py"
    source.write_text(
        "import pathlib, time\n"
        f"pathlib.Path('events.out.tfevents.2').write_bytes({content!r})\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.02)\n"
    )
    folder = bench.attempt(source)
    process = bench.start(folder)
    events = folder / "events.ndjson"
    until(lambda: events.exists() and '"name":"loss"' in events.read_text().replace(" ", ""))
    (bench.work / "go").touch()
    assert process.wait() == 0


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (simple("a", 0.5), 0.5),
        (tensor("a", 1, struct.pack("<f", 0.5)), 0.5),
        (tensor("a", 2, struct.pack("<d", 0.1)), 0.1),
        (tensor("a", 9, struct.pack("<q", 7)), 7.0),
        (tensor("a", 7, b"text"), None),
        (tensor("a", 1, struct.pack("<f", 0.5), text(2, message(1, 0, b"\x01"))), None),
        (text(1, b"a"), None),
    ],
)
def test_what_is_a_scalar(value, found):
    scalars, used = scalars_in(event(3, value))
    assert used > 0
    assert [(each.tag, each.value, each.step, each.time) for each in scalars] == (
        [] if found is None else [("a", found, 3, 1.5)]
    )


def test_a_record_that_is_not_whole_yet_is_read_later(tmp_path, files, told):
    path = tmp_path / "events.out.tfevents.3"
    whole = event(1, simple("a", 1)) + event(2, simple("a", 2))
    path.write_bytes(whole[:-10])
    files.finish(tmp_path)
    assert [point[2] for point in told] == [1]
    path.write_bytes(whole)
    files.finish(tmp_path)
    assert [point[2] for point in told] == [1, 2]


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40, os.urandom(200), b"\0" * 64])
def test_damage_ends_a_file_and_nothing_else(tmp_path, files, told, damage):
    (tmp_path / "events.out.tfevents.4").write_bytes(event(1, simple("a", 1)) + damage)
    (tmp_path / "events.out.tfevents.5").write_bytes(record(b"\x0f\xff\xff"))
    files.finish(tmp_path)
    assert [point[0] for point in told] == ["a"]


def test_long_curves_are_thinned_and_end_with_their_last_point(tmp_path, files, told, monkeypatch):
    monkeypatch.setattr(event_files, "STRIDE", 10)
    content = b"".join(event(step, simple("a", step)) for step in range(100))
    (tmp_path / "events.out.tfevents.6").write_bytes(content)
    files.finish(tmp_path)
    steps = [point[2] for point in told]
    assert steps[:9] == list(range(9))
    assert len(steps) < 40
    assert steps[-1] == 99


def test_a_search_that_takes_long_is_seldom(tmp_path, files, monkeypatch):
    times = iter([0.0, 10.0, 20.0, 210.1, 210.2])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    searched = []
    monkeypatch.setattr(EventFiles, "_look", lambda self, folder: searched.append(folder))
    for _ in range(3):
        files.look(tmp_path)
    assert len(searched) == 2
