"""What a run tells about itself, from inside."""

import datetime
import json
import math
from pathlib import Path

import pytest

import jupyterlab_convect
from jupyterlab_convect.json_text import loads
from jupyterlab_convect.runner.record import StepRecord


@pytest.fixture
def lines(tmp_path, monkeypatch):
    path = tmp_path / "values.ndjson"
    monkeypatch.setenv("CONVECT_VALUES", str(path))
    return lambda: [loads(line) for line in path.read_text().splitlines()]


class Tensor:
    def item(self):
        return 2.5

    def __float__(self):
        return 2.5


def test_outputs_and_metrics(lines):
    jupyterlab_convect.output("rows", 100)
    jupyterlab_convect.metric("loss", 0.5, step=3)
    jupyterlab_convect.metric("loss", Tensor())
    jupyterlab_convect.metric("loss", math.inf)
    found = [(line["kind"], line["name"], line["value"], line["step"]) for line in lines()]
    assert found == [
        ("output", "rows", 100, None),
        ("metric", "loss", 0.5, 3),
        ("metric", "loss", 2.5, None),
        ("metric", "loss", math.inf, None),
    ]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({"a": (1, {2: None})}, {"a": [1, {"2": None}]}),
        (Tensor(), 2.5),
        (Path("a/b"), "a/b"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (True, True),
        ([math.inf, {"x": -math.inf}], [math.inf, {"x": -math.inf}]),
    ],
)
def test_values_become_json(lines, value, plain):
    jupyterlab_convect.output("x", value)
    assert lines()[0]["value"] == plain


def test_the_last_value_of_a_metric_is_the_last_even_when_it_is_nan(tmp_path):
    record = StepRecord(tmp_path, patterns={"lr": r"lr=(\S+)"})
    record.report("metric", "loss", 0.2, 1)
    record.report("metric", "loss", math.nan, 2)
    record.values_path.write_text(
        '{"kind": "metric", "name": "by null", "value": null}\n'
        '{"kind": "metric", "name": "by word", "value": "-inf"}\n'
        '{"kind": "metric", "name": "by token", "value": NaN}\n'
    )
    record.log("lr=inf\n")
    record.close()
    assert math.isnan(record.metrics["loss"])
    assert math.isnan(record.metrics["by null"])
    assert record.metrics["by word"] == -math.inf
    assert math.isnan(record.metrics["by token"])
    assert record.metrics["lr"] == math.inf
    events = (tmp_path / "events.ndjson").read_text()
    json.loads(f"[{','.join(events.splitlines())}]", parse_constant=pytest.fail)
    assert '"name":"loss","value":{"$numberDouble":"NaN"},"step":2' in events


def test_a_number_that_no_float_can_hold_keeps_its_digits(tmp_path, lines):
    jupyterlab_convect.metric("huge", -(10**400))
    assert lines()[0]["value"] == -(10**400)
    record = StepRecord(tmp_path)
    record.values_path.write_text(
        '{"kind": "metric", "name": "huge", "value": 1' + "0" * 400 + "}\n"
        '{"kind": "output", "name": "digits", "value": 1' + "0" * 400 + "}\n"
        '{"kind": "metric", "name": "deep", "value": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
        '{"kind": "metric", "name": "after", "value": 1}\n'
    )
    record.close()
    assert record.metrics == {"huge": 10**400, "after": 1}
    assert record.values == {"digits": 10**400}


def test_bad_values(lines):
    with pytest.raises(TypeError, match="a value of type object cannot be written as JSON"):
        jupyterlab_convect.output("x", object())
    with pytest.raises(ValueError, match="write it to a file"):
        jupyterlab_convect.output("x", "y" * 300_000)
    with pytest.raises(TypeError, match="the name of an output"):
        jupyterlab_convect.output("", 1)
    with pytest.raises(ValueError, match="could not convert"):
        jupyterlab_convect.metric("x", "y")


def test_outside_a_run_arguments_are_checked_and_nothing_is_written(
    lines, tmp_path, monkeypatch, capfd
):
    jupyterlab_convect.output("inside", 1)
    monkeypatch.delenv("CONVECT_VALUES")
    monkeypatch.chdir(tmp_path)
    jupyterlab_convect.output("outside", 1)
    jupyterlab_convect.metric("outside", 1)
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        jupyterlab_convect.output("outside", object())
    with pytest.raises(ValueError, match="could not convert"):
        jupyterlab_convect.metric("outside", "y")
    assert [line["name"] for line in lines()] == ["inside"]
    assert [path.name for path in tmp_path.iterdir()] == ["values.ndjson"]
    assert capfd.readouterr() == ("", "")


def test_a_metric_has_the_time_at_which_it_was_reported(tmp_path):
    record = StepRecord(tmp_path)
    record.values_path.write_text(
        '{"kind": "metric", "name": "loss", "value": 1, "time": 5.5}\n'
        '{"kind": "metric", "name": "loss", "value": 2, "time": "soon"}\n'
    )
    record.close()
    lines = (tmp_path / "events.ndjson").read_text().splitlines()
    first, second = (json.loads(line) for line in lines)
    assert (first["time"], first["value"]) == (5.5, 1.0)
    assert (second["time"] > 1e9, second["value"]) == (True, 2.0)


def test_only_what_exists_can_be_imported():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jupyterlab_convect.nothing
    assert jupyterlab_convect._jupyter_labextension_paths()[0]["dest"] == "jupyterlab-convect"
    assert jupyterlab_convect._jupyter_server_extension_points()[0]["app"].__name__ == "Convect"


def test_damaged_lines_are_told_and_passed_over(tmp_path):
    record = StepRecord(tmp_path)
    with record.values_path.open("w") as file:
        file.write('{"kind": "output", "name": "a", "value": 1}\nnonsense\n[]\n')
        file.write('{"kind": "dance", "name": "a", "value": 1}\n')
        file.write(json.dumps({"kind": "output", "name": "big", "value": "x" * 300_000}) + "\n")
        file.write('{"kind": "output", "name": "b", "val')
    record.read_values()
    with record.values_path.open("a") as file:
        file.write('ue": 2}\n')
    record.close()
    assert record.values == {"a": 1, "b": 2}
    log = (tmp_path / "log.txt").read_text()
    assert log.count("was not understood") == 3
    assert "The value of big is larger than" in log


def test_a_pattern_that_takes_for_ever_is_given_up_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr("jupyterlab_convect.runner.record.BUDGET", 0.1)
    record = StepRecord(tmp_path, patterns={"slow": r"((?:a+)+)$", "loss": r"loss=(\S+)"})
    record.log("loss=1\nlo")
    record.log("ss=2\n" + "a" * 60 + "!\nloss=3\nlo")
    record.log("ss=4\n" + "a" * 60 + "!\nloss=5")
    record.close()
    log = (tmp_path / "log.txt").read_text()
    assert log.count("The pattern of metric slow took longer than 0.1 s for one line") == 1
    told = map(loads, (tmp_path / "events.ndjson").read_text().splitlines())
    values = [event["value"] for event in told if event["type"] == "metric"]
    assert values == [1, 2, 3, 4, 5]


def test_a_line_without_end_is_looked_at_in_part(tmp_path):
    record = StepRecord(tmp_path, patterns={"n": r"n=(\d+)"})
    record.log("n=1 " + "x" * 10_000_000 + " n=2\n")
    record.close()
    assert record.metrics == {"n": 2}
