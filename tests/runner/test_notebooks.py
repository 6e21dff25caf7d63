"""A notebook goes in; an executed one, its events and the truth about its end come out."""

import json
import subprocess
import sys

import nbformat
import pytest


def test_an_executed_notebook_with_its_events_and_log(bench):
    source = bench.notebook("print('one')", "6 * 7", "import sys\nprint('three', file=sys.stderr)")
    before = source.read_bytes(), source.stat().st_mtime_ns
    ended = bench.run(source, expected=3.5)

    assert ended.code == 0
    assert ended.outputs["state"] == "succeeded"
    assert "reason" not in ended.outputs
    assert ended.outputs["started"] < ended.outputs["ended"]
    assert (source.read_bytes(), source.stat().st_mtime_ns) == before
    assert ended.log == "one\nthree\n"

    nbformat.validate(ended.notebook)
    assert [cell.execution_count for cell in ended.notebook.cells] == [1, 2, 3]
    assert ended.printed(0) == "one\n"
    assert ended.notebook.cells[1].outputs[0].data["text/plain"] == "42"
    assert {c.metadata.papermill["status"] for c in ended.notebook.cells} == {"completed"}
    assert ended.notebook.metadata.papermill.duration > 0

    kinds = [event["type"] for event in ended.events]
    assert kinds[0] == "step.start"
    assert kinds[-1] == "step.end"
    assert ended.events[-1]["state"] == "succeeded"
    starts = ended.events_of("cell.start")
    assert [(e["cell"], e["index"], e["total"]) for e in starts] == [
        (1, 0, 3),
        (2, 1, 3),
        (3, 2, 3),
    ]
    said: dict[tuple[int, str], str] = {}
    for event in ended.events_of("cell.output"):  # one print may come in two pieces
        where = (event["index"], event["kind"])
        said[where] = said.get(where, "") + event["text"]
    assert said == {(0, "stdout"): "one\n", (1, "result"): "42\n", (2, "stderr"): "three\n"}
    progress = ended.events_of("progress")
    assert [(e["cell"], e["cells"], e["expected"]) for e in progress] == [
        (done, 3, 3.5) for done in range(4)
    ]


def test_nothing_but_the_declared_files_is_in_the_folder_afterwards(bench):
    ended = bench.cells("1")
    names = {path.name for path in ended.folder.iterdir()}
    assert names == {
        "step.json", "runner.json", "events.ndjson", "log.txt", "executed.ipynb", "outputs.json"
    }  # fmt: skip


def test_an_error_ends_the_step_there(bench):
    ended = bench.cells("print('before')", "raise ValueError('bad value')", "print('after')")
    assert ended.code == 1
    assert ended.state == "failed"
    assert ended.reason == "Cell 2 raised ValueError: bad value"
    error = ended.outputs["error"]
    assert (error["cell"], error["name"], error["value"]) == (2, "ValueError", "bad value")
    assert "raise ValueError('bad value')" in error["traceback"]
    assert "\x1b" not in error["traceback"]
    assert "ValueError: bad value" in ended.log
    assert "after" not in ended.log
    statuses = [cell.metadata.papermill["status"] for cell in ended.notebook.cells]
    assert statuses == ["completed", "failed", "pending"]
    assert ended.notebook.metadata.papermill.exception is True
    assert ended.notebook.cells[1].outputs[-1].ename == "ValueError"
    (told,) = ended.events_of("cell.error")
    assert (told["index"], told["name"]) == (1, "ValueError")
    assert [event["index"] for event in ended.events_of("cell.end")] == [0]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def (:", "Cell 1 raised SyntaxError: "),
        ("import no_such_package", "Cell 1 raised ModuleNotFoundError: No module named 'no_such_"),
        ("input()", "Cell 1 raised StdinNotImplementedError: "),
        ("import sys; sys.exit(2)", "Cell 1 raised SystemExit: 2"),
    ],
)
def test_other_errors(bench, source, reason):
    ended = bench.cells(source)
    assert ended.code == 1
    assert ended.reason.startswith(reason)


@pytest.mark.parametrize("source", ["import sys; sys.exit()", "import sys; sys.exit(0)", "exit()"])
def test_a_notebook_may_end_itself_early(bench, source):
    ended = bench.cells(source, "print('after')")
    assert ended.code == 0
    assert "after" not in ended.log


def test_an_expected_error_is_no_failure(bench):
    ended = bench.cells(("1 / 0", ["raises-exception"]), "print('on')")
    assert ended.code == 0
    assert ended.notebook.cells[0].outputs[0].ename == "ZeroDivisionError"
    assert ended.printed(1) == "on\n"


def test_cells_that_are_not_executed(bench):
    ended = bench.cells("", ("print('no')", ["skip-execution"]), "print('yes')")
    assert ended.code == 0
    assert ended.log == "yes\n"
    assert ended.events_of("cell.start")[0]["total"] == 1


def test_earlier_outputs_are_gone(bench):
    source = bench.notebook("print('new')", ("print('skipped')", ["skip-execution"]))
    notebook = nbformat.read(source, 4)
    for cell in notebook.cells:
        cell.outputs = [nbformat.v4.new_output("stream", text="old")]
        cell.execution_count = 9
    nbformat.write(notebook, source)
    ended = bench.run(source)
    assert "old" not in (ended.folder / "executed.ipynb").read_text()


def test_parameters_of_every_type(bench):
    parameters = {
        "whole": 3,
        "real": 0.5,
        "text": "a 'quoted' {brace} 值\n",
        "flag": True,
        "nothing": None,
        "many": [1, "two", [3.0, False]],
        "nested": {"a": {"b": [None]}},
        "huge": 2**70,
    }
    source = bench.notebook(
        ("whole = 1\nother = 'kept'", ["parameters"]),
        "from jupyterlab_convect import output\n"
        f"for name in {list(parameters)!r}: output(name, globals()[name])\noutput('other', other)",
    )
    ended = bench.run(source, parameters=parameters)
    assert ended.code == 0
    assert ended.outputs["values"] == {**parameters, "other": "kept"}
    injected = ended.notebook.cells[1]
    assert injected.metadata.tags == ["injected-parameters"]
    assert ended.notebook.metadata.papermill.parameters == parameters
    assert ended.notebook.metadata.papermill.version


def test_parameters_without_a_cell_for_them_come_first(bench):
    ended = bench.cells("print(lr)", parameters={"lr": 0.1})
    assert ended.log == "0.1\n"
    assert ended.notebook.cells[0].metadata.tags == ["injected-parameters"]


def test_values_and_metrics(bench):
    ended = bench.cells(
        "from jupyterlab_convect import metric, output\n"
        "output('rows', 10)\noutput('rows', 100)\nmetric('loss', 0.5, step=1)\n"
        "metric('loss', 0.25, step=2)\nmetric('worst', float('nan'))\nprint('acc=0.9')",
        (
            "class Array:\n    def tolist(self): return [1, 2]\n"
            "a, (b, *_) = 1, ('x', 'y')\nscores: dict = {'f1': 0.5}\narray = Array()\n"
            "bad = object()\nnan = float('nan')\n_private = 1\n"
            "import itertools\nendless = itertools.count()\nsingle = {3}\n",
            ["outputs"],
        ),
        metrics={"accuracy": "acc=([0-9.]+)"},
    )
    nan = {"$numberDouble": "NaN"}
    assert ended.outputs["values"] == {
        "rows": 100, "a": 1, "b": "x", "scores": {"f1": 0.5}, "array": [1, 2], "nan": nan,
        "single": [3],
    }  # fmt: skip
    assert ended.outputs["metrics"] == {"loss": 0.25, "worst": nan, "accuracy": 0.9}
    told = [(e["name"], e["value"], e["step"]) for e in ended.events_of("metric")]
    for metric in (("loss", 0.5, 1), ("loss", 0.25, 2), ("worst", nan, None)):
        assert metric in told
    assert "The value of bad cannot be written as JSON" in ended.log


def test_paths_with_spaces_braces_and_letters_of_the_world(bench):
    source = bench.notebook("print(x)", name="dir {a} é/模型 {0} %s.ipynb")
    ended = bench.run(source, folder=str(source.parent), parameters={"x": 1})
    assert ended.code == 0
    assert ended.log == "1\n"


def test_the_working_folder_and_environment(bench):
    ended = bench.cells(
        f"import os\nprint(os.getcwd() == {str(bench.work)!r})",
        "print(os.environ['A'], os.environ['CONVECT_STEP'], 'CONVECT_GRACE' in os.environ)",
        env={"A": "ä"},
    )
    assert ended.log == "True\nä s False\n"


@pytest.mark.parametrize("minor", [0, 2, 4])
def test_old_notebooks_are_upgraded_in_memory(bench, minor):
    source = bench.work / "old.ipynb"
    cell = {"cell_type": "code", "metadata": {}, "source": ["print(", "'old')"], "outputs": [],
            "execution_count": None}  # fmt: skip
    content = {"nbformat": 4, "nbformat_minor": minor, "metadata": {"kernelspec": {
        "name": "python3", "display_name": "p"}}, "cells": [cell]}  # fmt: skip
    source.write_text(json.dumps(content))
    ended = bench.run(source)
    assert ended.log == "old\n"
    nbformat.validate(ended.notebook)
    assert json.loads(source.read_text()) == content


@pytest.mark.parametrize("version", [2, 3])
def test_a_notebook_of_an_old_version(bench, version):
    source = bench.work / "older.ipynb"
    cell = {"cell_type": "code", "input": ["x = 0\n", "print('older', x)"], "language": "python"}
    cell |= {"metadata": {"tags": ["parameters"]}, "outputs": [], "collapsed": False}
    more = {"cell_type": "code", "input": "print(x)", "language": "python", "outputs": []}
    sheets = [{"cells": [cell, more], "metadata": {}}]
    content = {"nbformat": version, "nbformat_minor": 0, "metadata": {"name": ""}}
    source.write_text(json.dumps({**content, "worksheets": sheets}))
    ended = bench.run(source, parameters={"x": 1})
    assert ended.log == "older 0\n1\n"
    nbformat.validate(ended.notebook)


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": {"name": "python", "display_name": "Python (Pyodide)"}},
        {},
        {"kernelspec": {}, "language_info": {"name": "python"}},
        {"language_info": {"name": "ipython"}},
    ],
    ids=["python", "nothing", "language", "old language"],
)
def test_a_notebook_without_a_kernel_of_its_own_gets_the_native_one(bench, metadata):
    source = _with_metadata(bench.notebook("import sys; print(sys.executable)"), metadata)
    ended = bench.run(source, parameters={"x": 1})
    assert (ended.state, ended.log) == ("succeeded", f"{sys.executable}\n")


def test_one_in_a_language_without_a_kernel_is_refused(bench):
    source = _with_metadata(bench.notebook("1"), {"language_info": {"name": "klingon"}})
    reason = "n.ipynb does not say which kernel it needs; installed are "
    assert bench.run(source).reason.startswith(reason)


def _with_metadata(path, metadata):
    path.write_text(json.dumps({**json.loads(path.read_text()), "metadata": metadata}))
    return path


HIDDEN_ERRORS = {
    "a script that raises": "%run raises.py",
    "a script that exits with 3": "%run exits.py",
    "captured": "%%capture\n1/0",
    "run_cell": "get_ipython().run_cell('1/0')",
    "showtraceback": "try:\n    1/0\nexcept Exception:\n    get_ipython().showtraceback()",
    "after much output": "print('x' * 1000)\nget_ipython().run_cell('1/0')",
}


@pytest.mark.parametrize("source", HIDDEN_ERRORS.values(), ids=HIDDEN_ERRORS)
def test_an_error_that_the_kernel_does_not_reply_with_fails_the_step(bench, source, monkeypatch):
    monkeypatch.setenv("CONVECT_OUTPUT_LIMIT", "100")
    (bench.work / "raises.py").write_text("1/0")
    (bench.work / "exits.py").write_text("import sys; sys.exit(3)")
    ended = bench.cells("print('before')", source, "print('after')", ("y = 1", ["outputs"]))
    name = "SystemExit: 3" if "exits" in source else "ZeroDivisionError: division by zero"
    assert (ended.code, ended.state) == (1, "failed")
    assert ended.reason == f"Cell 2 raised {name}"
    assert (ended.outputs["error"]["cell"], ended.outputs["values"]) == (2, {})
    assert ended.printed(2) == "after\n", "the kernel called it a success, and so it goes on"
    (error,) = ended.events_of("cell.error")
    assert error["index"] == 1
    assert [event["index"] for event in ended.events_of("cell.end")] == [0, 2, 3]
    statuses = [cell.metadata.papermill.status for cell in ended.notebook.cells]
    assert statuses == ["completed", "failed", "completed", "completed"]


def test_cells_are_counted_as_in_the_source(bench):
    source = bench.notebook(("x = 1", ["parameters"]), "print(x)", "1/0", "2")
    for parameters in ({}, {"x": 2}):
        ended = bench.run(source, parameters=parameters)
        assert ended.reason == "Cell 3 raised ZeroDivisionError: division by zero"
        assert ended.outputs["error"]["cell"] == 3
        starts = ended.events_of("cell.start")
        assert [event["cell"] for event in starts if event["cell"]] == [1, 2, 3]
        assert {event["total"] for event in starts} == {4}
        last = ended.events_of("progress")[-1]
        assert (last["cell"], last["cells"]) == (2, 4)
    assert [event["cell"] for event in starts] == [1, 0, 2, 3]
    again = bench.run(ended.folder / "executed.ipynb", parameters={"x": 3})
    assert again.reason == "Cell 4 raised ZeroDivisionError: division by zero", "it has it now"


def test_parameters_that_raise(bench):
    source = bench.notebook("float = None", ("x = 1", ["parameters"]), "1")
    ended = bench.run(source, parameters={"x": float("nan")})
    assert ended.reason == "The parameters raised TypeError: 'NoneType' object is not callable"
    assert ended.outputs["error"]["cell"] == 0


def test_of_several_such_errors_the_last_is_named(bench):
    hidden = "get_ipython().run_cell('{}')"
    ended = bench.cells(hidden.format("1/0"), hidden.format("[][0]"), "1")
    assert ended.reason == "Cell 2 raised IndexError: list index out of range"
    assert len(ended.events_of("cell.error")) == 2
    ended = bench.cells(hidden.format("1/0"), "raise KeyError(1)", hidden.format("[][0]"))
    assert ended.reason == "Cell 2 raised KeyError: 1"


@pytest.mark.parametrize("source", ["1/0", "get_ipython().run_cell('1/0')"])
def test_a_cell_that_may_raise_does_not_fail_the_step(bench, source):
    ended = bench.cells((source, ["raises-exception"]), "print('after')")
    assert (ended.state, ended.printed(1)) == ("succeeded", "after\n")
    assert ended.notebook.cells[0].outputs[0].ename == "ZeroDivisionError"


def test_an_error_that_was_cleared_away_is_none(bench):
    source = "from IPython.display import clear_output\nget_ipython().run_cell('1/0')"
    ended = bench.cells(f"{source}\nclear_output()\nprint('again')")
    assert (ended.state, ended.printed(0)) == ("succeeded", "again\n")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "n.ipynb is not a notebook: "),
        (b"\xff\xfe{", "n.ipynb is not a notebook: "),
        (b"[]", "n.ipynb is not a notebook: it has no nbformat number."),
        (b'{"nbformat": 5}', "n.ipynb has notebook format 5, but the newest supported format is 4"),
        (b'{"nbformat": 4}', "n.ipynb is not a valid notebook: "),
        (
            b'{"nbformat": 4, "metadata": {"kernelspec": {"name": "klingon"}}, "cells": []}',
            "The kernel klingon is not installed; installed are ",
        ),
        (
            b'{"nbformat": 4, "metadata": {"kernelspec": {"name": "../x"}}, "cells": []}',
            "The kernel ../x is not installed; installed are ",
        ),
        (
            b'{"nbformat": 4, "metadata": {"kernelspec": {"name": "python3"}}, "cells": [1]}',
            "n.ipynb is not a valid notebook: ",
        ),
        (
            b'{"nbformat": 4, "metadata": {"kernelspec": {"name": "python3"}}}',
            "n.ipynb is not a valid notebook: ",
        ),
    ],
)
def test_what_is_no_notebook_gives_a_sentence(bench, content, reason):
    source = bench.work / "n.ipynb"
    source.write_bytes(content)
    ended = bench.run(source)
    assert ended.code == 1
    assert ended.state == "failed"
    assert ended.reason.startswith(reason)
    assert "Traceback" not in ended.log
    assert source.read_bytes() == content


def test_a_missing_notebook(bench):
    ended = bench.run(bench.work / "gone.ipynb")
    assert ended.reason == "gone.ipynb cannot be read: No such file or directory."


def test_a_runner_loads_no_jsonschema_and_says_the_same_of_an_invalid_notebook():
    program = """if 1:
        import sys
        if sys.argv[1] == "quick":
            from jupyterlab_convect.runner.notebooks import quick_nbformat
            nbformat = quick_nbformat()
        else:
            import nbformat
        cell = {"cell_type": "code", "source": "", "metadata": {}, "outputs": []}
        cells = [{**cell, "id": "x", "execution_count": None}]
        content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
        notebook = nbformat.from_dict(content)
        nbformat.validate(notebook)
        loaded = "jsonschema" in sys.modules
        notebook.cells[0].execution_count = "many"
        try:
            nbformat.validate(notebook)
        except nbformat.ValidationError as error:
            print(loaded, error)
    """
    quick, plain = (
        subprocess.check_output([sys.executable, "-c", program, how], text=True)
        for how in ("quick", "plain")
    )
    assert quick.startswith("False 'many' is not of type")
    assert quick.removeprefix("False") == plain.removeprefix("True")
