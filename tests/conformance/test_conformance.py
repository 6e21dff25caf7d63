"""What every runtime does alike. A difference is a bug."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, eventually

from jupyterlab_convect.runs.model import Selection
from jupyterlab_convect.runtimes.base import Feature

pytestmark = pytest.mark.slow


def script(path: str, after=(), **settings):
    return {"kind": "script", "path": path, **({"after": list(after)} if after else {}), **settings}


def notebook(path: str, after=(), **settings):
    return {**script(path, after, **settings), "kind": "notebook"}


until = eventually


async def test_order(lab):
    lab.write("log.py", "import os; open('order.txt', 'a').write(os.environ['me'])")
    nodes = {
        name: script("log.py", after, parameters={"me": name})
        for name, after in {"a": "", "b": "a", "c": "b", "d": "c"}.items()
    }
    await lab.succeed(nodes)
    assert (lab.root / "order.txt").read_text() == "abcd"


async def test_parallelism(lab):
    """Each waits for a sign of the other: one after the other they would wait for ever."""
    lab.write(
        "meet.py",
        "import os, pathlib, time\n"
        "pathlib.Path(os.environ['me']).touch()\n"
        "while not pathlib.Path(os.environ['other']).exists(): time.sleep(0.02)\n",
    )
    await lab.succeed(
        {
            "a": script("meet.py", parameters={"me": "a", "other": "b"}, timeout="300s"),
            "b": script("meet.py", parameters={"me": "b", "other": "a"}, timeout="300s"),
        }
    )


VALUES = {
    "i": 3,
    "f": 0.1,
    "big": 2**60,
    "t": "naïve “数据” \\ ' \" ${x}",
    "yes": True,
    "none": None,
    "list": [1, "two", [3.5]],
    "dict": {"a": {"b": [None, False]}},
}


async def test_parameters_keep_their_types(lab):
    lab.notebook(
        "types.ipynb",
        ("parameters", "\n".join(f"{name} = None" for name in VALUES)),
        "from jupyterlab_convect import output\n"
        + "\n".join(f"output({name!r}, [type({name}).__name__, {name}])" for name in VALUES),
    )
    _, state = await lab.succeed("types.ipynb", VALUES)
    assert state.steps["types"].outputs == {
        name: [type(value).__name__, value] for name, value in VALUES.items()
    }


async def test_values_between_steps(lab):
    lab.notebook("make.ipynb", ("outputs", "rows = [1, 2, 3]\nname = '数'"))
    lab.notebook(
        "use.ipynb",
        ("parameters", "rows = []\ntext = ''"),
        ("outputs", "total = sum(rows)\nsaid = text"),
    )
    _, state = await lab.succeed(
        {
            "make": notebook("make.ipynb"),
            "use": notebook(
                "use.ipynb",
                ["make"],
                parameters={
                    "rows": "${{ nodes.make.outputs.rows }}",
                    "text": "${{ nodes.make.outputs.name }}: ${{ nodes.make.outputs.rows }}",
                },
            ),
        }
    )
    assert state.steps["use"].outputs == {"total": 6, "said": "数: [1, 2, 3]"}


async def test_metrics(lab):
    lab.write("m.py", "print('loss=0.5'); print('loss=0.25')")
    _, state = await lab.succeed({"m": script("m.py", metrics={"loss": "loss=([0-9.]+)"})})
    assert state.steps["m"].metrics == {"loss": 0.25}


async def test_files(lab):
    lab.write("make.py", "import os; os.makedirs('data'); open('data/x.csv', 'w').write('1,2')")
    lab.write(
        "use.py", "import os; print(sorted(os.listdir('.'))); print(open('data/x.csv').read())"
    )
    run, _ = await lab.succeed(
        {
            "make": script("make.py", outputs=["data/*.csv"]),
            "use": script("use.py", ["make"], working_folder="isolated"),
        }
    )
    assert (lab.result(run, "make") / "files" / "data" / "x.csv").read_text() == "1,2"
    assert (lab.result(run, "use") / "log.txt").read_text().splitlines() == ["['data']", "1,2"]


async def test_a_file_that_was_promised_and_not_made(lab):
    lab.write("make.py", "pass")
    _, state = await lab.finish({"make": script("make.py", outputs=["model.bin"])})
    assert state.state == "failed"
    assert "model.bin" in state.steps["make"].reason


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hello.py", "import os; print('hello', os.environ['who'])"),
        ("hello.sh", 'echo "hello $who"'),
        ("hello.R", "cat('hello', Sys.getenv('who'))"),
    ],
)
async def test_scripts(lab, name, text):
    if name.endswith(".R") and not shutil.which("Rscript"):
        pytest.skip("R is not installed.")
    lab.write(name, text)
    run, _ = await lab.succeed(name, {"who": "wörld"})
    assert (lab.result(run, "hello") / "log.txt").read_text().strip() == "hello wörld"


async def test_commands_and_environment(lab):
    nodes = {
        "a": {
            "kind": "command",
            "command": ["sh", "-c", 'printf "%s|%s" "$1" "$A"', "x", "${{ run.name }} $HOME"],
            "env": {"A": "ä b"},
        }
    }
    run, _ = await lab.succeed(nodes)
    assert (lab.result(run, "a") / "log.txt").read_text() == "pipeline $HOME|ä b"


async def test_retries(lab):
    lab.write(
        "flaky.py",
        "import sys\nopen('tries', 'a').write('x')\nsys.exit(len(open('tries').read()) < 3)",
    )
    run, state = await lab.succeed(
        {"flaky": script("flaky.py", retries={"count": 3, "delay": 0.1})}
    )
    assert [attempt.state for attempt in state.steps["flaky"].attempts] == [
        "failed",
        "failed",
        "succeeded",
    ]
    for number in (1, 2, 3):
        assert (lab.store.attempt_folder(run.id, "flaky", number) / "outputs.json").exists()


@pytest.mark.parametrize("kind", ["script", "notebook"])
async def test_timeout(lab, kind):
    forever = "import time\nwhile True: time.sleep(0.1)"
    if kind == "script":
        lab.write("slow.py", forever)
        node = script("slow.py", timeout="1s")
    else:
        lab.notebook("slow.ipynb", forever)
        node = notebook("slow.ipynb", timeout="5s")
    _, state = await lab.finish({"slow": node, "next": script_of(lab, "after.py", ["slow"])})
    assert state.steps["slow"].state == "failed"
    assert "imed out" in state.steps["slow"].reason
    assert state.steps["next"].state == "skipped"


def script_of(lab, path, after=()):
    lab.write(path, "pass")
    return script(path, after)


@pytest.mark.parametrize("kind", ["script", "notebook"])
async def test_cancel(lab, kind):
    begin = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\n"
    source = begin + "while True: time.sleep(0.1)"
    path = "slow.py" if kind == "script" else "slow.ipynb"
    lab.write(path, source) if kind == "script" else lab.notebook(path, source)
    run = await lab.start(
        {"slow": {"kind": kind, "path": path}, "next": script_of(lab, "n.py", ["slow"])}
    )
    pid = lab.root / "pid"
    await until(lambda: pid.exists() and pid.read_text())
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "cancelled"
    assert state.steps["slow"].state == "cancelled"
    assert state.steps["next"].state == "cancelled"
    await until(lambda: not Path(f"/proc/{pid.read_text()}/cmdline").exists())


async def test_failure_isolation(lab):
    lab.notebook("bad.ipynb", "x = 1", "raise ValueError('bad value')", "x = 2")
    lab.write("ok.py", "pass")
    run, state = await lab.finish(
        {
            "bad": notebook("bad.ipynb"),
            "after_bad": script("ok.py", ["bad"]),
            "good": script("ok.py"),
            "after_good": script("ok.py", ["good"]),
        }
    )
    assert state.state == "failed"
    assert {name: step.state for name, step in state.steps.items()} == {
        "bad": "failed",
        "after_bad": "skipped",
        "good": "succeeded",
        "after_good": "succeeded",
    }
    reason = state.steps["bad"].reason
    assert "ValueError" in reason
    assert "bad value" in reason
    executed = json.loads((lab.result(run, "bad") / "executed.ipynb").read_text())
    assert any(
        item["output_type"] == "error" for cell in executed["cells"] for item in cell["outputs"]
    )


async def test_a_kernel_that_dies(lab):
    lab.notebook("dies.ipynb", "import os; os._exit(3)")
    _, state = await lab.finish("dies.ipynb")
    assert state.state == "failed"
    assert state.steps["dies"].reason


async def test_the_source_is_never_written(lab):
    path = lab.notebook("a.ipynb", ("parameters", "x = 1"), "print(x)")
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    run, _ = await lab.succeed("a.ipynb", {"x": 5})
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(item.name for item in lab.root.iterdir()) == ["a.ipynb"]
    executed = json.loads((lab.result(run, "a") / "executed.ipynb").read_text())
    assert executed["cells"][-1]["outputs"][0]["text"] in ("5\n", ["5\n"])


async def test_partial_runs(lab):
    lab.write("log.py", "import os; open('order.txt', 'a').write(os.environ['me'])")
    lab.write("bad.py", "import os, sys; sys.exit(not os.path.exists('mended'))")
    nodes = {
        "a": script("log.py", parameters={"me": "a"}),
        "b": script("bad.py", ["a"]),
        "c": script("log.py", ["b"], parameters={"me": "c"}),
    }
    first, state = await lab.finish(nodes)
    assert state.state == "failed"
    lab.write("mended", "")
    second, state = await lab.succeed(nodes, select=Selection("failed"), of=first.id)
    assert (lab.root / "order.txt").read_text() == "ac"
    assert state.steps["a"].source == f"{first.id}/1"
    _, state = await lab.succeed(nodes, select=Selection("only", "c"), of=second.id)
    assert (lab.root / "order.txt").read_text() == "acc"
    assert state.steps["a"].state == state.steps["b"].state == "cached"
    _, state = await lab.succeed(nodes, select=Selection("upto", "a"))
    assert (lab.root / "order.txt").read_text() == "acca"
    assert state.steps["c"].state == "skipped"
    await lab.succeed(nodes, select=Selection("from", "b"), of=second.id)
    assert (lab.root / "order.txt").read_text() == "accac"


async def test_cache(lab):
    lab.write("make.py", "open('log', 'a').write('x'); open('out.txt', 'w').write('result')")
    nodes = {"make": script("make.py", cache=True, outputs=["out.txt"])}
    await lab.succeed(nodes)
    (lab.root / "out.txt").unlink()
    _, state = await lab.succeed(nodes)
    assert state.steps["make"].state == "cached"
    assert (lab.root / "log").read_text() == "x"
    assert (lab.root / "out.txt").read_text() == "result"
    lab.write("make.py", "open('log', 'a').write('y'); open('out.txt', 'w').write('other')")
    _, state = await lab.succeed(nodes)
    assert state.steps["make"].state == "succeeded"
    assert "its code has changed" in state.steps["make"].cache
    assert (lab.root / "log").read_text() == "xy"


@pytest.mark.parametrize(
    "folder", ["with space", "{braces} $x %d", "数据 ünï", 'it\'s "quoted" & more']
)
async def test_any_path(lab, folder):
    lab.notebook(
        f"{folder}/my {{n}} 笔记.ipynb",
        "import os, pathlib\npathlib.Path('näme {x}.txt').write_text('1')",
        ("outputs", "here = os.path.basename(os.getcwd())"),
    )
    run, state = await lab.succeed(
        {"a": notebook(f"{folder}/my {{n}} 笔记.ipynb", outputs=["*.txt"])}
    )
    assert state.steps["a"].outputs == {"here": folder}
    assert (lab.result(run, "a") / "files" / "näme {x}.txt").read_text() == "1"


async def test_big_outputs(lab):
    lab.notebook(
        "big.ipynb",
        "print('x' * 2_000_000)",
        "for n in range(20_000): print(n)",
        "import os; os.write(1, bytes(range(256)) * 100)",
        ("outputs", "values = list(range(10_000))"),
    )
    run, state = await lab.succeed("big.ipynb")
    assert len(state.steps["big"].outputs["values"]) == 10_000
    executed = json.loads((lab.result(run, "big") / "executed.ipynb").read_text())
    assert len(executed["cells"]) == 4


async def test_two_runs_of_one_file_at_once(lab):
    lab.notebook(
        "a.ipynb", ("parameters", "n = 0"), "import time; time.sleep(0.2)", ("outputs", "got = n")
    )
    runs = [await lab.start("a.ipynb", {"n": n}) for n in (1, 2)]
    states = [await lab.engine.wait(run.id, PATIENCE) for run in runs]
    assert [state.steps["a"].outputs for state in states] == [{"got": 1}, {"got": 2}]


async def test_resume(lab):
    """The host goes away while a step runs; the next one finds it and goes on."""
    lab.write(
        "slow.py",
        "import os, pathlib, time\n"
        "open('order.txt', 'a').write('s')\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.02)\n",
    )
    lab.write("log.py", "open('order.txt', 'a').write('n')")
    nodes = {"slow": script("slow.py", timeout="300s"), "next": script("log.py", ["slow"])}
    run = await lab.start(nodes)
    await until((lab.root / "order.txt").exists)
    await lab.close()
    lab.open()
    assert await lab.engine.resume() == [run.id]
    assert lab.store.read(run.id).state.steps["slow"].state in ("starting", "running")
    lab.write("go", "")
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded"
    assert (lab.root / "order.txt").read_text() == "sn"
    assert [len(step.attempts) for step in state.steps.values()] == [1, 1]


async def test_what_ended_while_nobody_watched(lab):
    lab.write(
        "quick.py",
        "import pathlib, time\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.02)\n"
        "open('done', 'w').write('1')",
    )
    run = await lab.start({"quick": script("quick.py"), "next": script_of(lab, "n.py", ["quick"])})
    await until(lambda: lab.store.read(run.id).state.steps["quick"].attempts)
    await until(lambda: lab.store.read(run.id).state.steps["quick"].attempts[0].handle)
    await lab.close()
    lab.write("go", "")
    await until((lab.root / "done").exists)
    lab.open()
    await lab.engine.resume()
    assert (await lab.engine.wait(run.id, PATIENCE)).state == "succeeded"


async def test_the_log_can_be_read_while_it_grows(lab):
    lab.write(
        "talk.py",
        "import pathlib, time\nprint('first', flush=True)\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.02)\nprint('last')",
    )
    run = await lab.start({"talk": script("talk.py", timeout="300s")})
    log = lab.store.attempt_folder(run.id, "talk", 1) / "log.txt"
    await until(lambda: log.exists() and "first" in log.read_text())
    lab.write("go", "")
    await lab.engine.wait(run.id, PATIENCE)
    assert log.read_text().split() == ["first", "last"]


HANDS_OVER = {
    "make": {
        "kind": "script",
        "path": "nb/make.py",
        "parameters": {"x": "${{ parameters.x }}"},
    },
    "use": {"kind": "script", "path": "nb/use.py", "after": ["make"]},
}


def write_project(lab: Any) -> None:
    """Steps that hand files to each other, and use a module and data, without declaring any."""
    lab.write(".convect/marker", "")
    lab.write("nb/helper.py", "scale = 10")
    lab.write("data/x.csv", "7")
    lab.write(
        "nb/make.py",
        "import os, pathlib\nfrom helper import scale\n"
        "x = int(os.environ['x']) * scale + int(pathlib.Path('../data/x.csv').read_text())\n"
        "pathlib.Path('../data/model').write_text(str(x))\n"
        "pathlib.Path('log').open('a').write('.')\n",
    )
    lab.write(
        "nb/use.py",
        "import json, os, pathlib\n"
        "said = pathlib.Path('../data/model').read_text() + pathlib.Path('log').read_text()\n"
        "line = {'kind': 'output', 'name': 'said', 'value': said}\n"
        "open(os.environ['CONVECT_VALUES'], 'a').write(json.dumps(line) + '\\n')\n"
        "pathlib.Path('log').unlink()\n",
    )


async def start_project(lab: Any, x: int, **request: Any) -> Any:
    nodes = {**HANDS_OVER, "make": {**HANDS_OVER["make"], "parameters": {"x": x}}}
    return await lab.start(nodes, own_view=True, **request)


async def test_runs_at_the_same_time_give_what_each_gives_alone(lab: Any) -> None:
    write_project(lab)
    runs = [await start_project(lab, x) for x in range(20)]
    for x, run in enumerate(runs):
        state = await lab.engine.wait(run.id, 300)
        reasons = {step.id: step.reason for step in state.steps.values() if step.reason}
        assert state.state == "succeeded", reasons
        assert state.steps["use"].outputs == {"said": f"{x * 10 + 7}."}
    put = [run for run in runs if lab.store.read(run.id).state.files["put"]]
    assert len(put) == 1  # the first that ended; the others keep theirs
    x = runs.index(put[0])
    assert (lab.root / "data/model").read_text() == str(x * 10 + 7)


async def test_what_a_run_made_is_known_and_put_in_place(lab: Any) -> None:
    write_project(lab)
    run = await start_project(lab, 1)
    lab.write("nb/helper.py", "scale = 1000")
    lab.write("nb/use.py", "raise SystemExit('edited')")
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.steps["use"].outputs == {"said": "17."}
    assert json.loads((lab.result(run, "use") / "made.json").read_text())["files"] == [
        {"path": "nb/log", "change": "deleted"}
    ]
    assert state.files == {"put": ["data/model"], "kept": {}}
    assert (lab.root / "data/model").read_text() == "17"
    assert not (lab.root / "nb/log").exists()


async def test_a_condition_decides_and_first_takes_the_branch_that_ran(lab):
    lab.notebook("train.ipynb", ("outputs", "auc = 0.71"))
    lab.notebook("use.ipynb", ("parameters", "model = ''"), ("outputs", "used = model"))
    told = {"kind": "command", "command": ["true"], "when": "${{ nodes.train.outputs.auc >= 0.8 }}"}
    plain = notebook("use.ipynb", parameters={"model": "plain"})
    used = "${{ first(nodes.good.outputs.used, nodes.plain.outputs.used) }}"
    _, state = await lab.succeed(
        {
            "train": notebook("train.ipynb"),
            "good": told,
            "plain": plain | {"when": "${{ nodes.train.outputs.auc < 0.8 }}"},
            "end": notebook("use.ipynb", parameters={"model": used}),
        }
    )
    assert state.steps["good"].reason == "Skipped: auc >= 0.8 was false, auc was 0.71."
    assert state.steps["end"].outputs == {"used": "plain"}


async def test_a_loop_over_a_group_with_a_condition_collects_in_order(lab):
    lab.notebook("score.ipynb", ("parameters", "region = ''"), ("outputs", "n = len(region)"))
    lab.notebook("sum.ipynb", ("parameters", "ns = []"), ("outputs", "got = ns"))
    _, state = await lab.succeed(
        {
            "g": {
                "kind": "group",
                "members": ["score", "tell"],
                "for_each": {"name": "region", "in": ["eu", "华东", "north"], "parallel": 2},
            },
            "score": notebook("score.ipynb", parameters={"region": "${{ each.region }}"}),
            "tell": {
                "kind": "command",
                "command": ["true"],
                "when": "${{ nodes.score.outputs.n > 2 }}",
            },
            "end": notebook("sum.ipynb", parameters={"ns": "${{ nodes.score.outputs.n }}"}),
        }
    )
    assert state.steps["end"].outputs == {"got": [2, 2, 5]}
    assert [state.steps[f"g.{n}.tell"].state for n in range(3)] == [
        "skipped",
        "skipped",
        "succeeded",
    ]


async def test_a_branch_in_a_loop_in_a_branch_and_a_loop_of_nothing(lab):
    lab.notebook("size.ipynb", ("outputs", "n = 1\nnone = []"))
    lab.notebook("sum.ipynb", ("parameters", "ns = []"), ("outputs", "got = ns"))
    true = {"kind": "command", "command": ["true"]}
    loop = {"name": "n", "in": [1, 2]}
    _, state = await lab.succeed(
        {
            "size": notebook("size.ipynb"),
            "taken": {
                "kind": "group",
                "members": ["each"],
                "when": "${{ nodes.size.outputs.n == 1 }}",
            },
            "each": {"kind": "group", "members": ["large"], "for_each": loop},
            "large": true | {"when": "${{ each.n > nodes.size.outputs.n }}"},
            "other": true | {"when": "${{ nodes.size.outputs.n > 1 }}", "for_each": loop},
            "nothing": notebook(
                "sum.ipynb", for_each={"name": "m", "in": "${{ nodes.size.outputs.none }}"}
            ),
            "end": notebook("sum.ipynb", parameters={"ns": "${{ nodes.nothing.outputs.got }}"}),
        }
    )
    steps = state.steps
    assert (steps["each.0.large"].state, steps["each.1.large"].state) == ("skipped", "succeeded")
    assert (state.groups["other"].state, state.groups["nothing"].counts) == ("skipped", {})
    assert steps["end"].outputs == {"got": []}


async def test_no_more_items_run_than_the_limit_allows(lab):
    lab.write("work.py", "import time; time.sleep(0.3)")
    loop = {"name": "n", "in": [*range(4)], "parallel": 1}
    _, state = await lab.succeed({"work": script("work.py", for_each=loop)})
    attempts = [state.steps[f"work.{n}"].attempts[0] for n in range(4)]
    times = sorted((each.started, each.ended) for each in attempts)
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(times))


async def test_items_of_a_value_that_has_not_changed_are_reused(lab):
    lab.write("work.py", "pass")

    def nodes(items):
        loop = {"name": "n", "in": items}
        parameters = {"n": "${{ each.n }}"}
        return {"work": script("work.py", for_each=loop, parameters=parameters, cache=True)}

    await lab.succeed(nodes([1, 2]))
    _, state = await lab.succeed(nodes([2, 3]))
    assert [state.steps[f"work.{n}"].state for n in range(2)] == ["cached", "succeeded"]


async def test_a_loop_over_files(lab):
    lab.notebook(
        "make.ipynb",
        "import pathlib\npathlib.Path('data').mkdir()\n"
        "for name in ('a', '数'): pathlib.Path(f'data/{name}.csv').write_text(name * 3)",
        ("outputs", "files = sorted(map(str, pathlib.Path('data').glob('*.csv')))"),
    )
    lab.notebook(
        "read.ipynb",
        ("parameters", "file = ''"),
        ("outputs", "text = open(file).read()"),
    )
    lab.notebook("sum.ipynb", ("parameters", "texts = []"), ("outputs", "got = texts"))
    loop = {"name": "file", "in": "${{ nodes.make.outputs.files }}"}
    _, state = await lab.succeed(
        {
            "make": notebook("make.ipynb", outputs=["data/*.csv"]),
            "read": notebook("read.ipynb", for_each=loop, parameters={"file": "${{ each.file }}"}),
            "end": notebook("sum.ipynb", parameters={"texts": "${{ nodes.read.outputs.text }}"}),
        }
    )
    assert state.steps["end"].outputs == {"got": ["aaa", "数数数"]}


async def test_an_item_sees_its_own_files_alone(lab):
    make = "import os, pathlib; pathlib.Path('out.txt').write_text(os.environ['n'])"
    lab.write("make.py", make)
    lab.write("read.py", "print(open('out.txt').read())")
    run, state = await lab.succeed(
        {
            "g": {
                "kind": "group",
                "members": ["make", "read"],
                "for_each": {"name": "n", "in": [1, 2, 3]},
            },
            "make": script("make.py", parameters={"n": "${{ each.n }}"}),
            "read": script("read.py", ["make"]),
            "end": script("read.py", ["g"]),
        },
        own_view=True,
    )
    logs = [(lab.result(run, f"g.{n}.read") / "log.txt").read_text() for n in range(3)]
    assert logs == ["1\n", "2\n", "3\n"]
    assert any("out.txt was created by" in notice for notice in state.steps["end"].notices)
    assert not (lab.root / "out.txt").exists()


async def test_always_after_a_failed_item_and_its_retry(lab):
    lab.write("work.py", "import os, sys; sys.exit(os.environ['word'] == 'bad')")
    run, state = await lab.finish(
        {
            "work": script(
                "work.py",
                parameters={"word": "${{ each.word }}"},
                for_each={"name": "word", "in": ["good", "bad"]},
                retries={"count": 1, "delay": 0.1},
            ),
            "clean": {
                "kind": "command",
                "command": ["echo", "${{ nodes.work.state }}"],
                "after": ["work"],
                "run_if": "always",
            },
        }
    )
    assert state.state == "failed"
    assert [len(state.steps[f"work.{n}"].attempts) for n in range(2)] == [1, 2]
    assert (lab.result(run, "clean") / "log.txt").read_text() == "failed\n"


async def test_always_after_a_stop(lab):
    lab.write("slow.py", "import time\nprint('on', flush=True)\nwhile True: time.sleep(0.1)")
    clean = {"kind": "command", "command": ["true"], "after": ["slow"], "run_if": "always"}
    run = await lab.start({"slow": script("slow.py"), "clean": clean})
    steps = lab.store.read(run.id).state.steps
    await eventually(lambda: steps["slow"].state == "running")
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert (state.state, state.steps["clean"].state) == ("cancelled", "succeeded")


async def test_a_pipeline_twice_in_one(lab):
    lab.notebook("sub/fit.ipynb", ("parameters", "n = 0"), ("outputs", "double = 2 * n"))
    inner = {
        "convect": 1,
        "parameters": {"n": {"type": "integer", "default": 1}},
        "outputs": {"double": "${{ nodes.fit.outputs.double }}"},
        "nodes": {"fit": notebook("fit.ipynb", parameters={"n": "${{ parameters.n }}"})},
    }
    lab.write("sub/inner.pipeline", json.dumps(inner))
    lab.notebook("sum.ipynb", ("parameters", "a = 0\nb = 0"), ("outputs", "total = a + b"))
    two = "${{ nodes.one.outputs.double }}"
    _, state = await lab.succeed(
        {
            "one": {"kind": "pipeline", "path": "sub/inner.pipeline", "parameters": {"n": 3}},
            "two": {"kind": "pipeline", "path": "sub/inner.pipeline", "parameters": {"n": two}},
            "end": notebook(
                "sum.ipynb", parameters={"a": two, "b": "${{ nodes.two.outputs.double }}"}
            ),
        }
    )
    assert state.steps["end"].outputs == {"total": 18}
    assert "two.fit" in state.steps


async def killed_in_a_loop(lab):
    """The host is killed in the middle of a loop, and the next one brings the run to its end."""
    lab.write("work.py", "import os; print(os.environ['n'], file=open('ledger', 'a'))")
    loop = {"name": "n", "in": [*range(6)], "parallel": 2}
    nodes = {
        "g": {"kind": "group", "members": ["work", "big"], "for_each": loop},
        "work": script("work.py", parameters={"n": "${{ each.n }}"}),
        "big": {**script_of(lab, "end.py", ["work"]), "when": "${{ each.n > 2 }}"},
        "end": {"kind": "script", "path": "end.py", "after": ["g"], "run_if": "always"},
    }
    run = await lab.start(nodes)
    await lab.close()
    host = lab.start_host()
    lab.open()
    try:

        def has_begun() -> bool:
            assert host.poll() is None
            counts = lab.store.read(run.id).state.groups["g"].counts
            return 0 < counts.get("succeeded", 0) < 6

        await eventually(has_begun)
    finally:
        host.kill()
        host.wait()
    await lab.engine.resume()
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded"
    assert [len(state.steps[f"g.{n}.work"].attempts) for n in range(6)] == [1] * 6
    assert [state.steps[f"g.{n}.big"].state for n in (2, 3)] == ["skipped", "succeeded"]


async def test_a_loop_goes_on_after_the_host_is_gone(lab):
    await killed_in_a_loop(lab)
    assert sorted((lab.root / "ledger").read_text().split()) == [*"012345"]


async def test_a_loop_of_many_items(lab):
    many = [*range(lab.many)]
    run = await lab.start(
        {
            "work": {
                "kind": "command",
                "command": ["true", "${{ each.n }}"],
                "for_each": {"name": "n", "in": many, "parallel": 8},
            },
            "tell": {"kind": "command", "command": ["true"], "after": ["work"]},
        }
    )
    state = await lab.engine.wait(run.id, PATIENCE + 2 * lab.many)
    assert state.state == "succeeded", state.reason
    assert state.groups["work"].counts == {"succeeded": lab.many}
    assert state.steps["tell"].state == "succeeded"


TOGETHER = """
import os, pathlib, time, jupyterlab_convect as convect
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
pathlib.Path(f"up.{rank}").write_text(str(rank + 1))
others = [pathlib.Path(f"up.{n}") for n in range(size)]
while not all(each.exists() and each.read_text() for each in others): time.sleep(0.01)
convect.output("sum", sum(int(each.read_text()) for each in others))
"""


def needs_replicas(lab):
    if Feature.DISTRIBUTED not in lab.runtime.features:
        pytest.skip("this runtime refuses what is distributed")


async def test_replicas_work_together_in_the_same_view(lab):
    needs_replicas(lab)
    lab.write("训练.py", TOGETHER)
    train = script("训练.py", distributed={"processes": 3, "outputs_from": 2})
    run, state = await lab.succeed({"train": train}, own_view=True)
    assert state.steps["train"].outputs == {"sum": 6}
    told = json.loads((lab.result(run, "train") / "outputs.json").read_text())
    assert [(each["rank"], each["state"]) for each in told["replicas"]] == [
        (0, "succeeded"),
        (1, "succeeded"),
        (2, "succeeded"),
    ]


async def test_a_notebook_has_a_kernel_for_each_replica(lab):
    needs_replicas(lab)
    lab.notebook("训练.ipynb", TOGETHER, "print('rank', rank)")
    train = notebook("训练.ipynb", distributed={"processes": 2, "outputs_from": 1})
    run, state = await lab.succeed({"train": train}, own_view=True)
    assert state.steps["train"].outputs == {"sum": 3}
    folder = lab.result(run, "train")
    assert "rank 1" in (folder / "executed.ipynb").read_text()
    for rank in range(2):
        assert (folder / "replicas" / f"{rank}.log").read_text() == f"rank {rank}\n"


async def test_a_replica_that_fails_ends_all_and_is_tried_again(lab):
    needs_replicas(lab)
    lab.write(
        "train.py",
        "import os, time\nif os.environ['RANK'] == '1': raise SystemExit(3)\ntime.sleep(600)",
    )
    train = script("train.py", distributed={"processes": 3}, retries={"count": 1, "delay": 0})
    _, state = await lab.finish({"train": train})
    assert state.steps["train"].reason.endswith("Rank 1 of train.py exited with code 3.")
    assert len(state.steps["train"].attempts) == 2


async def test_replicas_go_on_after_the_host_is_gone(lab):
    needs_replicas(lab)
    lab.write(
        "train.py",
        "import os, pathlib, time\n"
        "pathlib.Path('up.' + os.environ['RANK']).touch()\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.02)\n",
    )
    run = await lab.start({"train": script("train.py", distributed={"processes": 2})})
    await until(lambda: all((lab.root / f"up.{rank}").exists() for rank in range(2)))
    await lab.close()
    lab.open()
    assert await lab.engine.resume() == [run.id]
    lab.write("go", "")
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "succeeded"
    assert len(state.steps["train"].attempts) == 1


def owner_of(lab, run):
    """The process that drives a run."""
    leases = sorted((lab.store.folder / run).glob("lease-*.json"), key=lambda path: path.name)
    return json.loads(leases[-1].read_text()).get("process") if leases else None


async def test_replicas_outlive_a_killed_host_and_stop_together(lab):
    """The first host is a process that gets SIGKILL; the second one stops what it finds."""
    needs_replicas(lab)
    lab.write(
        "训练.py",
        "import os, pathlib, time\n"
        "pathlib.Path('up.' + os.environ['RANK']).touch()\n"
        "time.sleep(600)\n",
    )
    run = await lab.start({"train": script("训练.py", distributed={"processes": 2})})
    await until(lambda: all((lab.root / f"up.{rank}").exists() for rank in range(2)))
    await lab.close()
    host = lab.start_host()
    await until(lambda: owner_of(lab, run.id) == host.pid)
    host.kill()
    host.wait()
    lab.open()
    assert await lab.engine.resume() == [run.id]
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert (state.state, len(state.steps["train"].attempts)) == ("cancelled", 1)
    assert [each["state"] for each in replicas_of(lab, run)] == ["cancelled"] * 2


MEET = """
import os, socket, struct, time
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FIRST = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])

def meet(value):
    if RANK == 0:
        server = socket.create_server(FIRST)
        peers = [server.accept()[0] for _ in range(SIZE - 1)]
        value += sum(struct.unpack("i", each.recv(4, socket.MSG_WAITALL))[0] for each in peers)
        for each in peers: each.sendall(struct.pack("i", value))
        return value
    while True:
        try:
            peer = socket.create_connection(FIRST, 600)
            break
        except OSError:
            time.sleep(0.05)
    peer.sendall(struct.pack("i", value))
    return struct.unpack("i", peer.recv(4, socket.MSG_WAITALL))[0]
"""
"""Nodes share no files: their processes meet at rank 0, and learn the sum of what they brought."""


def needs_nodes(lab):
    needs_replicas(lab)
    if lab.runtime.name == "local":
        pytest.skip("this machine is one node")


def replicas_of(lab, run):
    return json.loads((lab.result(run, "train") / "outputs.json").read_text())["replicas"]


async def test_replicas_on_several_nodes_work_together(lab):
    needs_nodes(lab)
    lab.write(
        "训练.py",
        f"import jupyterlab_convect as convect\n{MEET}\nconvect.output('sum', meet(RANK + 1))\n"
        "open(f'model.{RANK}', 'w').write('模型')\nprint('rank', RANK)",
    )
    how = {"nodes": 2, "processes": 2, "outputs_from": 3}
    train = script("训练.py", distributed=how, outputs=["model.*"])
    run, state = await lab.succeed({"train": train}, own_view=True)
    assert state.steps["train"].outputs == {"sum": 10}
    folder = lab.result(run, "train")
    assert sorted(each.name for each in (folder / "files").iterdir()) == ["model.2", "model.3"]
    told = replicas_of(lab, run)
    assert [(each["rank"], each["node_rank"], each["state"]) for each in told] == [
        (rank, rank // 2, "succeeded") for rank in range(4)
    ]
    assert all(each["node"] and each["exit_code"] == 0 for each in told)
    for rank in range(4):
        assert (folder / "replicas" / f"{rank}.log").read_text() == f"rank {rank}\n"
        assert f"[{rank}] rank {rank}\n" in (folder / "log.txt").read_text()
    assert not (folder / "nodes").exists()


async def test_the_rank_that_fails_first_ends_those_of_other_nodes(lab):
    needs_nodes(lab)
    lab.write("train.py", f"{MEET}\nmeet(0)\nif RANK == 1: raise SystemExit(3)\ntime.sleep(600)")
    run, state = await lab.finish({"train": script("train.py", distributed={"nodes": 2})})
    assert state.steps["train"].state == "failed"
    assert state.steps["train"].reason == "Rank 1 of train.py exited with code 3."
    first, second = replicas_of(lab, run)
    assert (first["state"], second["state"]) == ("cancelled", "failed")
    assert first["reason"] == "Stopped because rank 1 failed."
    assert second["exit_code"] == 3


async def test_all_nodes_start_again_after_a_rank_failed(lab):
    """In the pods that they have: what they wrote is still there."""
    needs_nodes(lab)
    lab.write(
        "train.py",
        f"{MEET}\ntotal = meet(RANK)\nopen(f'checkpoint.{{RANK}}', 'a').write('x')\n"
        "if RANK == 1 and os.environ['CONVECT_RESTART'] == '0': raise SystemExit(3)\n"
        "if os.environ['CONVECT_RESTART'] == '0': time.sleep(600)\n"
        "print(total, open(f'checkpoint.{RANK}').read())",
    )
    how = {"nodes": 2, "restarts": 1}
    run, state = await lab.succeed({"train": script("train.py", distributed=how)})
    assert len(state.steps["train"].attempts) == 1
    folder = lab.result(run, "train")
    for rank in range(2):
        assert (folder / "replicas" / f"{rank}.log").read_text() == "1 xx\n"
    why = "[Restart 1 of 1: Rank 1 of train.py exited with code 3.]"
    assert (folder / "log.txt").read_text().count(why) == 2
    assert [each["state"] for each in replicas_of(lab, run)] == ["succeeded"] * 2


async def test_nodes_go_on_after_the_host_is_gone_and_stop_together(lab):
    needs_nodes(lab)
    lab.write("train.py", f"{MEET}\nmeet(0)\nprint('up', flush=True)\ntime.sleep(600)")
    run = await lab.start({"train": script("train.py", distributed={"nodes": 2})})

    def said():
        logs = [path.read_text() for path in lab.store.folder.glob(f"{run.id}/**/log.txt")]
        return sorted("".join(log for log in logs).splitlines())

    await until(lambda: {"[0] up", "[1] up"} <= set(said()))
    await lab.close()
    lab.open()
    assert await lab.engine.resume() == [run.id]
    await lab.engine.stop(run.id)
    state = await lab.engine.wait(run.id, PATIENCE)
    assert state.state == "cancelled"
    assert said() == ["[0] up", "[1] up"]
    assert [each["state"] for each in replicas_of(lab, run)] == ["cancelled", "cancelled"]
