from __future__ import annotations

import random
import sqlite3
import time

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.runs import index as index_module
from jupyterlab_convect.runs import index_tables
from jupyterlab_convect.runs.index import Entry, Index, Query
from jupyterlab_convect.runs.model import new_id

BEGAN = 1_800_000_000.0


def summary(number: int, **fields):
    made = BEGAN + number
    return {
        "id": new_id(made),
        "name": f"n{number}",
        "path": f"project/n{number}.ipynb",
        "runtime": "local",
        "state": "succeeded",
        "reason": None,
        "created": made,
        "started": made,
        "ended": made + 1,
        "user": None,
        "parameters": {},
        "metrics": {},
        "labels": {},
        "note": "",
        "sweep": None,
        "steps_total": 1,
        "steps_done": 1,
        "progress": 1.0,
        "seq": 1,
    } | fields


@pytest.fixture(params=["full text", "no full text"])
def index(tmp_path, request, monkeypatch):
    if request.param == "no full text":
        monkeypatch.setattr(index_tables, "_searchable", lambda _: False)
    index = Index(tmp_path / "index.sqlite")
    yield index
    index.close()


def put(index, *summaries):
    index.put([Entry(summary, 10) for summary in summaries])
    return list(summaries)


def names(page):
    return [run["name"] for run in page.runs]


def test_the_newest_come_first_page_by_page(index):
    put(index, *(summary(n) for n in random.Random(1).sample(range(25), 25)))
    assert names(index.find(Query(limit=3))) == ["n24", "n23", "n22"]
    assert names(index.find(Query(limit=3, offset=23))) == ["n1", "n0"]
    assert names(index.find(Query(sort="created", limit=2))) == ["n0", "n1"]
    assert index.find(Query(limit=3)).total == 25
    assert names(index.find(Query(limit=0))) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query(states=("failed",)), {1}),
        (Query(states=("failed", "running")), {1, 2}),
        (Query(name="n3"), {3}),
        (Query(name="n*"), {0, 1, 2, 3, 4}),
        (Query(name="x*"), set()),
        (Query(runtime="kubernetes"), {2, 3}),
        (Query(runtime="kubernetes", states=("running",)), {2}),
        (Query(labels={"team": "a"}), {0, 1}),
        (Query(labels={"team": "a", "kind": "big"}), {1}),
        (Query(labels={"team": "none"}), set()),
        (Query(path="project/n4.ipynb"), {4}),
        (Query(sweep="s"), {3, 4}),
        (Query(sweep="s", name="n4"), {4}),
        (Query(since=BEGAN + 3), {3, 4}),
        (Query(until=BEGAN + 1), {0, 1}),
        (Query(since=BEGAN + 1, until=BEGAN + 2), {1, 2}),
        (Query(since=-1e30, until=1e30), {0, 1, 2, 3, 4}),
        (Query(text="PROJECT"), {0, 1, 2, 3, 4}),
        (Query(text="lr=0.5"), {2}),
        (Query(text="team=a big"), {1}),
        (Query(text="merk"), {4}),
        (Query(text="zerodivision"), {1}),
        (Query(text="GPU"), set()),
        (Query(text="数据"), {4}),
        (Query(text="数"), {4}),
        (Query(text="ünn"), {4}),
        (Query(text="n3"), {3}),
        (Query(text='"'), set()),
        (Query(text='a" OR "b'), set()),
        (Query(text="100%"), set()),
        (Query(text="NEAR("), set()),
        (Query(text="merkwürdig", states=("succeeded",)), {4}),
        (Query(text="merkwürdig", states=("failed",)), set()),
    ],
)
def test_filters(index, query, expected):
    put(
        index,
        summary(0, labels={"team": "a"}),
        summary(
            1,
            labels={"team": "a", "kind": "big"},
            state="failed",
            reason="Cell 3 raised ZeroDivisionError: division by zero",
        ),
        summary(
            2,
            runtime="kubernetes",
            state="running",
            parameters={"lr": 0.5},
            reason="No node has a GPU free.",
        ),
        summary(3, runtime="kubernetes", sweep="s"),
        summary(4, sweep="s", note="merkwürdig dünn, 数据"),
    )
    page = index.find(query)
    assert {int(name[1:]) for name in names(page)} == expected
    assert page.total == len(expected)


@pytest.mark.parametrize("sort", index_tables.SORTS)
def test_sorting_both_ways(index, sort):
    values = [
        summary(0, name="b", state="running", started=None, ended=None, path=None),
        summary(1, name="a", state="failed", runtime="z"),
        summary(2, name="c", runtime="k", ended=BEGAN),
    ]
    put(index, *values)
    up, down = (index.find(Query(sort=sign + sort)).runs for sign in ("", "-"))
    assert [run["id"] for run in up] == [run["id"] for run in reversed(down)]

    def key(run):
        return (run[sort] is not None, run[sort] or 0, run["id"])

    assert up == sorted(up, key=key)


@pytest.mark.parametrize(
    "query",
    [
        Query(text="a " * 1000),
        Query(text="abc " * 1000),
        Query(text="a" * 60_000),
        Query(name="*" * 60_000),
        Query(name="n" * 60_000),
        Query(labels={f"l{n}": "v" for n in range(2000)}),
        Query(labels={"l": "v" * 60_000}),
    ],
)
def test_a_search_out_of_proportion_is_refused_and_does_no_harm(index, query):
    put(index, summary(0))
    file = index.path.stat().st_ino
    with pytest.raises(ConvectError, match="at most"):
        index.find(query)
    assert (index.generation, index.path.stat().st_ino) == (0, file)
    assert index.find(Query()).total == 1


def test_the_largest_search_that_is_taken_is_answered(index):
    most = index_tables.MOST_TERMS
    labels = {f"l{n}": "v" for n in range(most)}
    put(index, summary(0, labels=labels, note=" ".join(f"w{n}" for n in range(most))))
    short = " ".join(f"w{n}" for n in range(most))
    assert index.find(Query(text=short, labels=labels, name="n*0*" + "*" * 4000)).total == 1
    assert index.find(Query(text=short + "x", labels=labels)).total == 0
    states = ("succeeded", "failed") * 40_000
    assert index.find(Query(states=states)).total == 1


def test_an_unknown_order_is_refused(index):
    with pytest.raises(ConvectError):
        index.find(Query(sort="id; DROP TABLE runs"))


def test_counts_say_how_many_of_each_state(index):
    made = put(
        index,
        *(summary(n, labels={"team": "a"}) for n in range(3)),
        summary(3, state="failed", labels={"team": "a"}),
        summary(4, state="running"),
    )
    everything = {"succeeded": 3, "failed": 1, "running": 1}
    assert index.find(Query()).counts == everything
    page = index.find(Query(states=("failed",)))
    assert (page.counts, page.total) == (everything, 1)
    assert index.find(Query(labels={"team": "a"})).counts == {"succeeded": 3, "failed": 1}
    put(index, made[4] | {"state": "failed", "labels": {"team": "a"}, "name": "new"})
    assert index.find(Query()).counts == {"succeeded": 3, "failed": 2}
    assert index.find(Query(labels={"team": "a"})).counts == {"succeeded": 3, "failed": 2}
    assert index.find(Query(name="n4")).total == 0
    assert index.find(Query(name="new")).counts == {"failed": 1}
    assert names(index.find(Query(text="new"))) == ["new"]
    index.drop([run["id"] for run in made])
    page = index.find(Query())
    assert (page.runs, page.total, page.counts) == ([], 0, {})
    assert index.find(Query(text="new")).total == 0


def test_counting_stops_somewhere_and_says_so(index, monkeypatch):
    monkeypatch.setattr(index_tables, "CAP", 10)
    put(index, *(summary(n, state="failed" if n % 5 == 0 else "succeeded") for n in range(30)))
    page = index.find(Query(text="project", limit=5))
    assert (page.exact, sum(page.counts.values())) == (False, 10)
    assert 10 <= page.total <= 30
    assert names(page) == ["n29", "n28", "n27", "n26", "n25"]
    page = index.find(Query(text="project", limit=5, offset=20))
    assert names(page) == ["n9", "n8", "n7", "n6", "n5"]
    page = index.find(Query(text="project", states=("failed",)))
    assert names(page) == ["n25", "n20", "n15", "n10", "n5", "n0"]
    assert page.total == 6
    page = index.find(Query())
    assert (page.exact, page.total) == (True, 30)


def test_two_processes_share_one_file(index):
    other = Index(index.path)
    made = put(index, summary(0))
    put(other, summary(1))
    assert index.find(Query()).total == other.find(Query()).total == 2
    other.drop([made[0]["id"]])
    assert index.find(Query()).counts == {"succeeded": 1}
    other.close()


@pytest.mark.parametrize("content", [b"", b"nonsense" * 500, b"SQLite format 3\x00" + bytes(5000)])
def test_a_damaged_file_is_made_anew(tmp_path, content):
    path = tmp_path / "index.sqlite"
    path.write_bytes(content)
    index = Index(path)
    put(index, summary(0))
    assert index.find(Query()).total == 1
    index.close()


def test_a_file_that_gets_damaged_is_made_anew(tmp_path):
    index = Index(tmp_path / "index.sqlite")
    put(index, *(summary(n) for n in range(50)))
    index._database.execute("DROP TABLE summaries")
    assert index.find(Query()).total == 0
    assert index.generation == 1
    put(index, summary(0))
    assert index.find(Query()).total == 1
    index.close()


def test_of_two_that_find_the_damage_one_makes_the_file_anew(tmp_path):
    first = Index(tmp_path / "index.sqlite")
    put(first, *(summary(n) for n in range(50)))
    first.close()
    one, two = Index(first.path), Index(first.path)
    with first.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"nonsense" * 5000)
    assert one.find(Query()).total == 0
    made = one.path.stat().st_ino
    put(one, summary(0))
    assert two.find(Query()).total == 1
    put(two, summary(1))
    assert one.find(Query()).total == 2
    assert one.path.stat().st_ino == made
    assert (one.generation, two.generation) == (1, 1)
    one.close()
    two.close()


def test_a_file_that_another_process_replaced_is_followed(tmp_path):
    index = Index(tmp_path / "index.sqlite")
    put(index, summary(0))
    for file in tmp_path.glob("index.sqlite*"):
        file.unlink()
    other = Index(index.path)
    put(other, summary(1), summary(2))
    assert index.find(Query()).total == 2
    assert index.generation == 1
    put(index, summary(3))
    assert other.find(Query()).total == 3
    index.close()
    other.close()


def test_a_full_disk_costs_nobody_the_index(tmp_path, caplog, monkeypatch):
    index, other = Index(tmp_path / "index.sqlite"), Index(tmp_path / "index.sqlite")
    put(other, summary(0))
    pages = index._database.execute("PRAGMA page_count").fetchone()[0]
    index._database.execute(f"PRAGMA max_page_count = {pages}")
    made = index.path.stat().st_ino
    put(index, *(summary(n, note="x" * 3000) for n in range(1, 101)))
    assert index.find(Query()).total == 100
    assert "cannot be used (database or disk is full)" in caplog.text
    assert index.path.stat().st_ino == made
    assert other.find(Query()).total == 1
    # There is room again.
    later = time.monotonic() + 2 * index_module.RETRY_FIRST
    monkeypatch.setattr(index_module.time, "monotonic", lambda: later)
    put(index, summary(1))
    assert other.find(Query()).total == 2
    assert index.generation == 2
    index.close()
    other.close()


def test_another_version_that_comes_later_is_no_damage(tmp_path):
    index = Index(tmp_path / "index.sqlite")
    put(index, summary(0))
    made = index.path.stat().st_ino
    other = sqlite3.connect(index.path)
    other.executescript("DROP TABLE runs; CREATE TABLE runs (a); PRAGMA user_version = 99;")
    other.close()
    put(index, summary(1))
    assert index.find(Query()).total == 1
    assert (index.generation, index.path.stat().st_ino) == (1, made)
    index.close()


def test_another_version_is_made_anew(tmp_path):
    path = tmp_path / "index.sqlite"
    old = sqlite3.connect(path)
    old.executescript("CREATE TABLE runs (a); PRAGMA user_version = 99;")
    old.close()
    index = Index(path)
    put(index, summary(0))
    assert index.find(Query()).total == 1
    index.close()


def test_without_a_place_to_write_memory_does(tmp_path):
    (tmp_path / "file").write_text("in the way")
    index = Index(tmp_path / "file" / "index.sqlite")
    put(index, summary(0))
    assert index.find(Query()).total == 1
    index.close()


def test_names_that_are_not_unicode_do_no_harm(index):
    odd = summary(1, name="a\udcff", path="a\udcff.ipynb", labels={"x": "\ud800"})
    index.put([Entry(odd, 1)])
    assert index.find(Query()).runs == [odd]
