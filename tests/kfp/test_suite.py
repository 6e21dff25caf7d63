"""The suite of every runtime on Kubeflow Pipelines, and what is refused there before a run."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import test_conformance as suite  # type: ignore[import-not-found]

from jupyterlab_convect.errors import ConvectError

SAME = (
    "test_order",
    "test_parameters_keep_their_types",
    "test_values_between_steps",
    "test_metrics",
    "test_files",
    "test_a_file_that_was_promised_and_not_made",
    "test_scripts",
    "test_commands_and_environment",
    "test_timeout",
    "test_failure_isolation",
    "test_a_kernel_that_dies",
    "test_the_source_is_never_written",
    "test_any_path",
    "test_big_outputs",
    "test_two_runs_of_one_file_at_once",
    "test_what_a_run_made_is_known_and_put_in_place",
    "test_a_loop_over_a_group_with_a_condition_collects_in_order",
    "test_a_pipeline_twice_in_one",
    "test_always_after_a_stop",
    "test_a_condition_decides_and_first_takes_the_branch_that_ran",
    "test_a_branch_in_a_loop_in_a_branch_and_a_loop_of_nothing",
    "test_a_loop_over_files",
)
REFUSED = {
    "test_always_after_a_failed_item_and_its_retry": "the state of another",
}
ELSEWHERE = {
    "test_retries": "tests/kfp/test_runs.py; a try sees nothing of what the one before wrote",
    "test_cache": "results are not reused",
    "test_partial_runs": "tests/kfp/test_runs.py",
    "test_cancel": "tests/kfp/test_runs.py",
    "test_resume": "tests/kfp/test_runs.py",
    "test_what_ended_while_nobody_watched": "tests/kfp/test_runs.py",
    "test_a_loop_goes_on_after_the_host_is_gone": "tests/kfp/test_runs.py",
    "test_an_item_sees_its_own_files_alone": "files made in a loop stay in it",
    "test_parallelism": "steps share no folder while they run",
    "test_the_log_can_be_read_while_it_grows": "the log comes when a task has ended",
    "test_runs_at_the_same_time_give_what_each_gives_alone": "these runs are at the same time",
    "test_items_of_a_value_that_has_not_changed_are_reused": "results are not reused",
    "test_no_more_items_run_than_the_limit_allows": "tests/runtimes/kfp/test_compile.py",
    "test_a_loop_of_many_items": "a task takes seconds there",
    "test_replicas_work_together_in_the_same_view": "tests/runtimes/kfp/test_compile.py: refused",
    "test_a_replica_that_fails_ends_all_and_is_tried_again": "the same",
    "test_replicas_go_on_after_the_host_is_gone": "the same",
    "test_replicas_on_several_nodes_work_together": "the same",
    "test_a_notebook_has_a_kernel_for_each_replica": "the same",
    "test_the_rank_that_fails_first_ends_those_of_other_nodes": "the same",
    "test_nodes_go_on_after_the_host_is_gone_and_stop_together": "the same",
    "test_all_nodes_start_again_after_a_rank_failed": "the same",
}


def test_the_lists_name_tests_of_the_suite() -> None:
    tests = {name for name in vars(suite) if name.startswith("test_")}
    assert {*SAME, *REFUSED, *ELSEWHERE} == tests


async def test_what_every_runtime_does(at_once: Any) -> None:
    cases = {
        f"{name} {given}": functools.partial(getattr(suite, name), **given)
        for name in SAME
        for given in _given(getattr(suite, name))
    }
    await at_once(cases)


def _given(test: Any) -> Iterator[dict[str, Any]]:
    """What a test is parametrised with."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for chosen in itertools.product(*(mark.args[1] for mark in marks)):
        given: dict[str, Any] = {}
        for mark, value in zip(marks, chosen, strict=True):
            names = [mark.args[0]] if isinstance(mark.args[0], str) else mark.args[0]
            given |= dict(zip(names, [value] if len(names) == 1 else value, strict=True))
        yield given


@pytest.mark.parametrize(("name", "words"), REFUSED.items())
async def test_what_cannot_be_done_is_refused_before_the_run(
    lab: Any, name: str, words: str
) -> None:
    with pytest.raises(ConvectError, match=words):
        await getattr(suite, name)(lab)
    assert lab.store.live_runs() == []
