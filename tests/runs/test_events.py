from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.runs import events as e
from jupyterlab_convect.runs.fold import Fold
from jupyterlab_convect.runs.model import Request, Run
from jupyterlab_convect.runs.views import summary, view

RUN = Run(
    "20261116-074512123-a1b2c3",
    "churn",
    1.0,
    "local",
    Plan("churn", (Step("a", "command", "a"), Step("b", "command", "b", after=("a",)))),
    Request(labels={"team": "x"}),
)

STORY = [
    e.RunStart(10.0),
    e.AttemptStart(11.0, "a", 1, {"code": "1"}, "Not reused.", 4.0),
    e.AttemptHandle(11.1, "a", 1, {"pid": 7}),
    e.AttemptChange(11.2, "a", 1, "running"),
    e.StepProgress(11.5, "a", 1, 4, 0.5, 4.0),
    e.AttemptEnd(12.0, "a", 1, "failed", "No.", "raw", 11.2, 12.0),
    e.StepWait(12.0, "a", "waiting", "Attempt 1 failed."),
    e.AttemptStart(13.0, "a", 2),
    e.AttemptEnd(14.0, "a", 2, "succeeded"),
    e.StepEnd(14.0, "a", "succeeded", outputs={"rows": 5, "名": "值"}, metrics={"m": 0.5}),
    e.RunChange(15.0, name="better", labels={}, note="n"),
    e.StopAsk(16.0, "b"),
    e.StepEnd(16.0, "b", "cancelled", "Stopped."),
    e.RunEnd(17.0, "cancelled", "Stopped."),
]


def fold(run, events):
    folding = Fold(run)
    for event in events:
        folding.apply(event)
    return folding.state


def test_the_state_tells_the_story():
    state = fold(RUN, STORY)
    assert (state.state, state.seq, state.started, state.ended) == ("cancelled", 14, 10.0, 17.0)
    assert (state.name, state.labels, state.note) == ("better", {}, "n")
    a = state.steps["a"]
    assert [attempt.state for attempt in a.attempts] == ["failed", "succeeded"]
    assert a.attempts[0].handle == {"pid": 7}
    assert (a.started, a.ended, a.outputs["rows"]) == (11.0, 14.0, 5)
    assert state.steps["b"].stopping


def test_every_event_survives_the_file():
    for event in STORY:
        assert e.decode(e.encode(event)) == event


@pytest.mark.parametrize("value", [10**400, -(2**70), 1e308, float("inf"), 3, True])
def test_a_metric_of_any_size_survives_the_file(value):
    event = e.StepEnd(1.0, "a", "succeeded", metrics={"m": value})
    assert e.decode(e.encode(event)) == event


def test_who_waits_knows_for_what():
    folding = Fold(RUN)
    assert folding.state.steps["b"].reason == "Waiting for “a” to finish."
    folding.apply(e.StepEnd(1.0, "a", "succeeded"))
    assert folding.state.steps["b"].reason == "Waiting for its turn."


@given(st.binary())
def test_a_damaged_line_is_no_event(line):
    assert e.decode(line) is None or line.startswith(b"{")


@given(st.lists(st.sampled_from(STORY)))
def test_any_order_of_events_folds(events):
    state = fold(RUN, events)
    assert state.seq == len(events)
    assert view(RUN, state)["id"] == RUN.id


def test_events_of_the_future_are_passed_over():
    assert e.decode(b'{"time": 1, "type": "run.teleport", "to": "moon"}') is None
    line = b'{"time": 1, "type": "run.end", "state": "failed", "mood": "bad"}'
    assert e.decode(line) == e.RunEnd(1, "failed")


@given(st.text())
def test_any_text_can_be_written(text):
    event = e.RunChange(1.0, note=text)
    assert e.encode(event).count(b"\n") == 1
    decoded = e.decode(e.encode(event))
    assert decoded == event


def test_a_summary_has_what_a_list_shows():
    state = fold(RUN, STORY)
    shown = summary(RUN, state)
    assert shown["metrics"] == {"rows": 5, "m": 0.5}
    assert (shown["steps_total"], shown["steps_done"], shown["progress"]) == (2, 2, 1.0)
    assert list(shown) == [
        *("id", "name", "path", "runtime", "state", "reason", "created", "started", "ended"),
        *("user", "parameters", "defaults", "computed", "metrics", "labels", "note", "sweep"),
        *("steps_total", "steps_done", "progress", "seq"),
    ]


def test_a_run_starts_with_its_first_step():
    folding = Fold(RUN)
    folding.apply(e.RunStart(10.0))
    assert summary(RUN, folding.state)["started"] is None
    folding.apply(e.AttemptStart(50.0, "a", 1))
    assert summary(RUN, folding.state)["started"] == 50.0
    without_steps = fold(RUN, [e.RunStart(10.0), e.RunEnd(11.0, "cancelled", "Stopped.")])
    assert summary(RUN, without_steps)["started"] == 10.0


def test_progress_goes_by_cells_then_by_time():
    folding = Fold(RUN)
    for event in STORY[:5]:
        folding.apply(event)
    assert summary(RUN, folding.state)["progress"] == 1 / 4 / 2
