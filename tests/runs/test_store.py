from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from types import SimpleNamespace

import pytest

from jupyterlab_convect.errors import Conflict, ConvectError, Missing
from jupyterlab_convect.pipeline.plan import Step
from jupyterlab_convect.runs import events as e
from jupyterlab_convect.runs import store as store_module
from jupyterlab_convect.runs.change_feed import OtherProcesses
from jupyterlab_convect.runs.content_store import UNUSED
from jupyterlab_convect.runs.index import Index, Query
from jupyterlab_convect.runs.json_files import Changes, Journal
from jupyterlab_convect.runs.model import new_id
from jupyterlab_convect.runs.retention import outlived
from jupyterlab_convect.runs.snapshots import Snapshots
from jupyterlab_convect.runs.store import Store


@pytest.fixture
def other(store, tmp_path):
    """The same folder as another process of this machine sees it."""
    other = Store(store.folder, Index(store.index.path))
    yield other
    other.close()


def end(store, run, state="succeeded"):
    store.append(run.id, e.RunStart(time.time()), e.RunEnd(time.time(), state))


def ids(page):
    return [run["id"] for run in page.runs]


def test_a_run_is_read_as_it_was_written(store, other, make_run, step):
    run = make_run(step("a", env={"A": "ü"}), step("b", after=["a"]), labels={"team": "x"})
    store.create(run)
    assert other.read(run.id).run == run
    assert other.read(run.id).state == store.read(run.id).state


def test_what_one_writes_the_other_reads(store, other, make_run):
    run = make_run()
    store.create(run)
    other.read(run.id)
    store.append(run.id, e.RunStart(5.0))
    assert other.read(run.id).state.started == 5.0
    other.change(run.id, name="better", note="ein Hinweis", labels={"a": "1"})
    state = store.read(run.id).state
    assert (state.name, state.note, state.labels, state.seq) == (
        "better",
        "ein Hinweis",
        {"a": "1"},
        2,
    )
    store.append(run.id, e.RunEnd(6.0, "succeeded"))
    assert other.read(run.id).state == store.read(run.id).state


def test_the_folder_is_the_truth(store, make_run, tmp_path):
    runs = [make_run(name=f"n{n}") for n in range(5)]
    for run in runs:
        store.create(run)
        end(store, run)
    store.change(runs[0].id, note="kept")
    fresh = Store(store.folder, Index(tmp_path / "elsewhere.sqlite"))
    page = fresh.find(Query(sort="created"))
    assert ids(page) == [run.id for run in runs]
    assert page.counts == {"succeeded": 5}
    assert page.runs[0]["note"] == "kept"
    fresh.close()


def test_half_a_line_is_waited_for(store, other, make_run):
    run = make_run()
    store.create(run)
    path = store.run_folder(run.id) / "events.ndjson"
    whole = e.encode(e.RunStart(5.0))
    path.write_bytes(whole[:10])
    assert other.read(run.id).state.started is None
    path.write_bytes(whole)
    assert other.read(run.id).state.started == 5.0


def test_a_line_that_was_never_finished_spoils_only_itself(store, make_run):
    run = make_run()
    store.create(run)
    path = store.run_folder(run.id) / "events.ndjson"
    path.write_bytes(e.encode(e.RunStart(5.0)) + b'{"time": 6, "ty')
    end(store, run, "failed")
    fresh = Store(store.folder, store.index)
    assert fresh.read(run.id).state.state == "failed"
    assert store.read(run.id).state == fresh.read(run.id).state


@pytest.mark.parametrize(
    "name",
    [
        "20261399-000000000-aaaaaa",
        "20260230-000000000-aaaaaa",
        "20260101-250000000-aaaaaa",
        "00000000-000000000-aaaaaa",
        "99991231-235959999-ffffff",
        "19691231-235959999-ffffff",
        "20391231-235959999-ffffff",
        "２０２６0101-000000000-aaaaaa",
    ],
)
def test_a_folder_of_an_impossible_time_spoils_no_list(store, make_run, name):
    good = make_run()
    store.create(good)
    (store.folder / name).mkdir()
    assert good.id in ids(store.find())
    store.refresh()
    assert good.id in store.live_runs()
    assert good.id not in store.prune(keep_days=1, dry_run=True)


def test_what_the_index_did_not_hear_it_is_told_again(store, make_run, monkeypatch):
    run = make_run()
    store.create(run)

    def refuse(entries):
        raise ConvectError("The index of the runs is busy.", code="busy")

    with monkeypatch.context() as patch:
        patch.setattr(store.index, "put", refuse)
        with pytest.raises(ConvectError):
            store.flush()
    store.flush()
    assert store.index.seen().keys() == {run.id}


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"id": 3}', '{"plan": []}', "\x00"])
def test_one_damaged_run_spoils_no_list(store, make_run, tmp_path, content):
    good, bad = make_run(), make_run()
    for run in (good, bad):
        store.create(run)
    (store.run_folder(bad.id) / "run.json").write_text(content)
    fresh = Store(store.folder, Index(tmp_path / "elsewhere.sqlite"))
    page = fresh.find(Query(sort="created"))
    assert ids(page) == [good.id, bad.id]
    assert page.runs[1]["state"] == "lost"
    assert "cannot be read" in page.runs[1]["reason"]
    with pytest.raises(Conflict):
        fresh.read(bad.id)
    fresh.delete(bad.id)
    assert ids(fresh.find()) == [good.id]
    fresh.close()


@pytest.mark.parametrize(
    "line",
    [
        {"type": "run.start", "time": []},
        {"type": "run.start", "time": 10**400},
        {"type": "run.end", "time": 9, "state": ["succeeded"]},
        {"type": "run.end", "time": 9, "state": "failed", "reason": {}},
        {"type": "run.change", "time": 9, "name": 3, "labels": []},
        {"type": "step.end", "time": 9, "step": "a", "state": "succeeded", "metrics": "m"},
        {"type": "group.start", "time": 9, "group": "a", "items": 3},
        {"type": "attempt.start", "time": 9, "step": "a", "attempt": 2**70},
    ],
)
def test_events_that_make_no_sense_spoil_no_list(store, make_run, step, tmp_path, line):
    good, bad = make_run(step("a")), make_run(step("a"))
    for run in (good, bad):
        store.create(run)
    path = store.run_folder(bad.id) / "events.ndjson"
    path.write_text(json.dumps(line) + "\n")
    store.ask_stop(bad.id)
    fresh = Store(store.folder, Index(tmp_path / "elsewhere.sqlite"))
    for each in (store, fresh):
        assert ids(each.find(Query(sort="created"))) == [good.id, bad.id]
        assert each.read(bad.id).state.state == "queued"
    fresh.close()


def test_results_that_no_digest_can_be_made_of_spoil_no_list(store, make_run, step):
    run = make_run(step("a"))
    store.create(run)
    parts = {"code": "\ud800"}
    store.append(
        run.id,
        e.AttemptStart(1.0, "a", 1, parts),
        e.AttemptEnd(2.0, "a", 1, "succeeded", started=1.0, ended=2.0),
        e.StepEnd(2.0, "a", "succeeded"),
    )
    assert ids(store.find()) == [run.id]


def test_strange_things_in_the_folder_are_no_runs(store, make_run):
    store.create(make_run())
    (store.folder / "notes.txt").write_text("x")
    (store.folder / "sweeps").mkdir()
    (store.folder / new_id()).mkdir()
    store.refresh()
    assert store.find(Query(states=("queued",))).total == 1


@pytest.mark.parametrize("run_id", ["", "..", "a/b", "../../etc", "20261116", "x" * 300])
def test_an_id_leads_nowhere_else(store, run_id):
    with pytest.raises(Missing):
        store.read(run_id)
    with pytest.raises(Missing):
        store.delete(run_id)


def test_an_id_is_taken_once(store, make_run):
    run = make_run()
    store.create(run)
    with pytest.raises(Conflict):
        store.create(replace(run, name="other"))
    assert store.read(run.id).run.name == "churn"


def test_runs_of_another_machine_appear(store, make_run, tmp_path, monkeypatch, until):
    monkeypatch.setattr("jupyterlab_convect.runs.store._Look.EVERY", 0.0)
    store.find()
    elsewhere = Store(store.folder, Index(tmp_path / "their.sqlite"))
    run = make_run()
    elsewhere.create(run)

    until(lambda: store.find().total == 1)
    end(elsewhere, run)
    until(lambda: store.find().counts == {"succeeded": 1})
    elsewhere.delete(run.id)
    until(lambda: store.find().total == 0)
    elsewhere.close()


def test_what_runs_is_not_deleted(store, make_run):
    run = make_run()
    store.create(run)
    with pytest.raises(Conflict):
        store.delete(run.id)
    end(store, run)
    store.delete(run.id)
    assert store.find().total == 0
    assert list(store.folder.iterdir()) == []


def test_pruning_never_touches_what_runs(store, make_run):
    runs = [make_run() for _ in range(6)]
    for run in runs:
        store.create(run)
    for run in runs[1:]:
        end(store, run)
    assert store.prune(keep_runs=2, dry_run=True) == [run.id for run in runs[1:4]]
    assert store.find().total == 6
    assert store.prune(keep_runs=2) == [run.id for run in runs[1:4]]
    assert ids(store.find(Query(sort="created"))) == [runs[0].id, runs[4].id, runs[5].id]


def test_pruning_by_size(store, make_run):
    runs = [make_run() for _ in range(4)]
    for run in runs:
        store.create(run)
        (store.run_folder(run.id) / "big").write_bytes(bytes(100_000))
        end(store, run)
    assert store.prune(keep_bytes=250_000) == [run.id for run in runs[:2]]


def test_what_has_outlived():
    day = 86400
    now = 1_800_000_000.0
    sizes = {new_id(now - age * day): 10 for age in (9, 7, 5, 3, 1)}
    oldest = list(sizes)
    assert outlived(sizes, now, 0, 0, 0) == []
    assert outlived(sizes, now, 6, 0, 0) == oldest[:2]
    assert outlived(sizes, now, 0, 3, 0) == oldest[:2]
    assert outlived(sizes, now, 0, 0, 25) == oldest[:3]
    assert outlived(sizes, now, 6, 4, 15) == oldest[:4]


def test_what_a_killed_process_left_is_cleared_away(store, make_run):
    import os

    for name in (".new-x", ".old-x"):
        (store.folder / name).mkdir()
        os.utime(store.folder / name, (0, 0))
    (store.folder / ".new-y").mkdir()
    store.prune(keep_runs=1)
    assert [path.name for path in store.folder.iterdir()] == [".new-y"]


def test_asking_to_stop(store, make_run, step):
    run = make_run(step("a"), step("b"))
    store.create(run)
    assert store.ask_stop(run.id, "b").steps["b"].stopping
    assert not store.read(run.id).state.stopping
    with pytest.raises(Missing):
        store.ask_stop(run.id, "c")
    end(store, run)
    assert not store.ask_stop(run.id).stopping


def test_a_change_that_cannot_be_written_is_said_so(store, make_run):
    run = make_run()
    store.create(run)
    (store.run_folder(run.id) / "changes").write_text("in the way")
    with pytest.raises(ConvectError, match=r"cannot be (changed|read)"):
        store.change(run.id, note="x")


def test_many_threads_write_and_read(store, make_run):
    runs = [make_run() for _ in range(20)]
    errors = []

    def work(part):
        try:
            for run in part:
                store.create(run)
                store.append(run.id, e.RunStart(1.0))
                store.change(run.id, note="n")
                store.find(Query(text="churn"))
                store.append(run.id, e.RunEnd(2.0, "succeeded"))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(runs[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.find().counts == {"succeeded": 20}


def test_run_json_can_be_read_by_people(store, make_run):
    run = make_run(name="名字")
    store.create(run)
    text = (store.run_folder(run.id) / "run.json").read_text()
    assert "名字" in text
    assert json.loads(text)["id"] == run.id


def test_of_many_who_ask_at_once_everybody_is_heard(store, make_run, tmp_path):
    """Also when each has a store of its own, as processes have."""
    run = make_run(*(Step(f"s{n}", "command", f"s{n}") for n in range(40)))
    store.create(run)
    stores = [Store(store.folder, Index(tmp_path / f"index-{n}.sqlite")) for n in range(4)]

    def ask(number):
        stores[number % 4].ask_stop(run.id, f"s{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(40)))
    for each in (store, *stores):
        assert all(step.stopping for step in each.read(run.id).state.steps.values())
    for each in stores:
        each.close()


def test_what_another_writes_in_between_is_read(tmp_path, monkeypatch):
    path = tmp_path / "events.ndjson"
    journal, real = Journal(path), os.write
    journal.append(b"1\n")

    def write(file, data):
        monkeypatch.undo()
        with path.open("ab") as other:
            other.write(b"other\n")
        return real(file, data)

    monkeypatch.setattr(os, "write", write)
    assert not journal.append(b"a longer line\n")
    assert journal.read() == [b"other", b"a longer line"]


def test_changes_of_earlier_versions_are_read(store, make_run):
    run = make_run()
    store.create(run)
    line = e.encode(e.RunChange(1.0, note="before"))
    (store.run_folder(run.id) / "changes.ndjson").write_bytes(line)
    assert store.read(run.id).state.note == "before"
    assert store.change(run.id, name="after").name == "after"
    assert store.read(run.id).state.note == "before"


def test_a_change_that_is_just_being_written_is_waited_for(tmp_path):
    """On a disk without links a reader may come too early."""
    changes = Changes(tmp_path / "changes")
    changes.add(b"one\n")
    (tmp_path / "changes" / "2.ndjson").write_bytes(b"tw")
    assert changes.read() == [b"one"]
    (tmp_path / "changes" / "2.ndjson").write_bytes(b"two\n")
    changes.add(b"three\n")
    assert changes.read() == [b"two", b"three"]


def test_sources_go_with_the_last_run_that_names_them(store, make_run, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("1")
    snapshot = store.snapshots.take(project, ["train.py"]).digest
    first, second = (replace(make_run(), snapshot=snapshot) for _ in range(2))
    for run in (first, second):
        store.create(run)
        end(store, run)
    then = time.time() - 2 * UNUSED
    for path in store.snapshots.objects.glob("??/*"):
        os.utime(path, (then, then))
    store.delete(first.id)
    store.clean()
    assert Snapshots(store.folder).read(snapshot).files.keys() == {"train.py"}
    assert store.prune(keep_days=1e-9) == [second.id]
    assert not list(store.snapshots.objects.glob("??/*"))


def test_named_runs_come_with_the_counts_of_all(store, make_run):
    first, second, third = (make_run() for _ in range(3))
    for run in (first, second, third):
        store.create(run)
    page = store.find(Query(ids=(first.id, third.id, "20261116-074512123-ffffff")))
    assert [each["id"] for each in page.runs] == [third.id, first.id]
    assert (page.total, page.counts) == (2, {"queued": 3})
    with pytest.raises(ConvectError, match="At most 200 runs"):
        store.find(Query(ids=("x",) * 201))


def test_runs_of_another_process_are_noticed_however_short_they_are(store, other, make_run):
    old, short = make_run(), make_run()
    other.create(old)
    other.flush()
    others = OtherProcesses(store)
    assert others.look() == []
    other.create(short)
    end(other, short, "failed")
    other.flush()
    assert others.look() == [short.id]
    assert others.look() == []
    other.append(old.id, e.RunStart(time.time()))
    other.flush()
    assert others.look() == [old.id]


def test_the_end_of_a_long_run_of_another_process_is_noticed_once(store, other, make_run):
    long_ago = time.time() - 7200
    run = replace(make_run(), id=new_id(long_ago), created=long_ago)
    other.create(run)
    other.flush()
    others = OtherProcesses(store)
    others.look()
    end(other, run)
    other.flush()
    assert others.look() == [run.id]
    assert others.look() == []


def test_a_store_is_closed_while_somebody_begins_to_read_behind(store, make_run, monkeypatch):
    begun, release = threading.Event(), threading.Event()

    class Slow(threading.Thread):
        def start(self) -> None:
            begun.set()
            release.wait()
            super().start()

    store.create(make_run())
    monkeypatch.setattr(store_module, "threading", SimpleNamespace(Thread=Slow))
    with ThreadPoolExecutor() as others:
        asking = others.submit(store._read_behind, None)
        begun.wait()
        closing = others.submit(store.close)
        wait([closing], timeout=0.2)
        release.set()
        asking.result()
        closing.result()
