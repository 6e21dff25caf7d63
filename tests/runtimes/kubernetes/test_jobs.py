from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from jupyterlab_convect.runs.model import new_id
from jupyterlab_convect.runtimes.kubernetes.jobs import job_name, label_value, labels_of

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
TEXT = st.text(min_size=1, max_size=80)


@given(TEXT, st.integers(1, 10_000))
def test_a_job_name_is_safe_whatever_the_step_is_called(step: str, attempt: int) -> None:
    name = job_name(new_id(), step, attempt)
    assert DNS_LABEL.fullmatch(name)
    assert len(name) <= 63


@given(TEXT, TEXT)
def test_different_steps_have_different_jobs(one: str, other: str) -> None:
    run = new_id()
    assert (job_name(run, one, 1) == job_name(run, other, 1)) == (one == other)


def test_plain_names_stay_as_they_are() -> None:
    run = "20261116-074512123-a1b2c3"
    assert job_name(run, "train", 2) == f"train-{run}-2"
    assert label_value("train_model.v2") == "train_model.v2"


@given(TEXT)
def test_labels_hold_any_text(text: str) -> None:
    for value in labels_of(new_id(), text, 1).values():
        assert LABEL.fullmatch(value)
        assert len(value) <= 63
