"""Odd notebooks end here as they do in papermill: same outcome, same failing cell, same outputs."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest

from .conftest import Bench

pytestmark = pytest.mark.slow

PAPERMILL = """
import json, sys
import papermill
from jupyter_client.manager import KernelManager
from papermill.exceptions import PapermillExecutionError

# Ports that are free when they are chosen may be taken when the kernel listens.
KernelManager.transport.default_value = "ipc"
results = open(sys.argv[1], "w", buffering=1)
for name, source, target, parameters, folder in json.load(sys.stdin):
    found = {"name": name, "outcome": "succeeded", "cell": None}
    try:
        papermill.execute_notebook(source, target, parameters, cwd=folder, progress_bar=False)
    except PapermillExecutionError as error:
        found |= {"outcome": "failed", "cell": error.cell_index}
    except Exception as error:
        found |= {"outcome": "failed", "why": repr(error)}
    print(json.dumps(found), file=results)
"""
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
WIDGET = """
from comm import create_comm
state = {"_model_module": "@jupyter-widgets/controls", "_model_name": "IntSliderModel", "value": 3}
slider = create_comm(target_name="jupyter.widget", comm_id="s", data={"state": state},
                     metadata={"version": "2.1.0"})
slider.send({"method": "update", "state": {"value": 7}})
"""
DISPLAY = [
    "from IPython.display import *\nhandle = display(HTML('<b>one</b>'), display_id='d')",
    "handle.update(HTML('<i>two</i>'))\nprint('between')\nupdate_display({'a': 1}, display_id='d')",
    "for n in range(3):\n    clear_output(wait=True)\n    print('round', n)",
    "print('gone'); clear_output(); print('kept')",
    "display(JSON({'a': [1]}), Markdown('# é'), metadata={'x': 1})\n'the result'",
    "display({'application/x-odd+json': {'a': 1}, 'text/plain': 'odd'}, raw=True)",
    "class R:\n    def _repr_mimebundle_(self, **_): return {'text/plain': 'r', 'x/y': '1'}\nR()",
    "None", "_, __, Out.keys()", "1;", "display()", "handle.update('three')",
]  # fmt: skip
MAGICS = [
    "%%bash\necho from bash; echo to stderr >&2", "!echo $((6 * 7))", "x = !printf 'a\\nb'\nx",
    "%env ODD=1", "%%writefile made.py\nprint('made')\ny = 5", "%run made.py", "y",
    "%%capture kept\nprint('hidden')", "kept.stdout", "%%html\n<b>x</b>", "%cd -q ..\n%pwd",
    "%%python\nprint('elsewhere')", "%load_ext autoreload\n%autoreload 2", "?len", "%who_ls",
    "%%script false --no-raise-error\nnothing", "%alias_magic t time", "%matplotlib inline",
]  # fmt: skip
ASYNC = [
    "import asyncio\nawait asyncio.sleep(0.01)\nprint('awaited')",
    "async def later():\n    await asyncio.sleep(0)\n    return 'later'\nawait later()",
    "async with asyncio.timeout(1) if hasattr(asyncio, 'timeout') else asyncio.Lock(): print(1)",
    "import threading\nt = threading.Thread(target=lambda: print('thread')); t.start(); t.join()",
    "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(1)'], stdout=-1)",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as p:"
    "\n    r = list(p.map(str, range(3)))\nr",
    "import logging, warnings; logging.getLogger('x').warning('logged')",
    "warnings.warn('warned')", "def f():\n    yield 1\nlist(f())",
    "import os; os.write(1, b'raw\\n');",
]  # fmt: skip
TEXT = [
    "print('日本語 🎉 \\u202e')", "名 = 'é'\n名", "'\\x00\\x1b[31mred\\x1b[0m'",
    "print('a', end='')\nprint('b')", "for n in range(5): print(f'\\r{n}', end='')", "", "   \n\t",
    "# only a comment", "print('x' * 200_000)", "import sys; print('e', file=sys.stderr)",
    "float('nan'), float('inf')",
]  # fmt: skip
HISTORY = [
    "x = 1", "%history -n 1", "In[1]", "get_ipython().history_manager.hist_file",
    "get_ipython().history_manager.enabled", "%rerun 1", "_ih[-1]",
]  # fmt: skip
ODD = {
    "displays": DISPLAY,
    "magics": MAGICS,
    "asynchronous": ASYNC,
    "text": TEXT,
    "history": HISTORY,
    "a widget": [WIDGET, "slider.comm_id"],
    "raises": ["1", "def f(): 1/0\nf()", "print('never')"],
    "raises in a group": ["raise ExceptionGroup('g', [KeyError(1)])"],
    "syntax": ["print('before')", "print('half'", "1"],
    "indentation": ["  x = 1\n y = 2"],
    "a script that raises": ["%run raises.py", "print('after')"],
    "a script that exits with 3": ["%run exits.py", "print('after')"],
    "captured": ["%%capture\n1/0", "print('after')"],
    "run_cell": ["get_ipython().run_cell('1/0');", "get_ipython().run_cell('[][0]');", "2"],
    "showtraceback": [
        "try:\n    {}['a']\nexcept Exception:\n    get_ipython().showtraceback()", "1", "{}['b']",
    ],
    "cleared error": [
        "from IPython.display import *\nget_ipython().run_cell('1/0');\nclear_output()", "2",
    ],
    "a failing script of bash": ["%%bash\nexit 3", "1"],
    "sys.exit": ["import sys; sys.exit()", "print('never')"],
    "sys.exit 0": ["import sys; sys.exit(0)", "print('never')"],
    "sys.exit 3": ["import sys; sys.exit(3)", "print('never')"],
    "sys.exit with words": ["import sys; sys.exit('words')", "print('never')"],
    "input": ["input('name? ')", "1"],
    "an interrupt of its own": ["raise KeyboardInterrupt", "1"],
    "a task that raises": ["import asyncio\nawait asyncio.gather(asyncio.sleep('x'))"],
    "a dead kernel": ["print('alive', flush=True)", "import os; os._exit(3)", "1"],
    "an error of an error": ["class E(Exception):\n    def __str__(self): 1/0\nraise E()", "1"],
}  # fmt: skip


def _notebook(cells, **metadata):
    """A notebook whose cells are code, given as source or as (source, type or tags)."""
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNEL, **metadata})
    for cell in cells:
        source, more = cell if isinstance(cell, tuple) else (cell, [])
        if more in ("markdown", "raw"):
            notebook.cells.append(getattr(nbformat.v4, f"new_{more}_cell")(source))
        else:
            notebook.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": list(more)}))
    return json.loads(nbformat.writes(notebook))


def _old(*sources, version):
    cells = [
        {"cell_type": "code", "input": source, "language": "python", "metadata": {}, "outputs": []}
        for source in sources
    ]
    cells.insert(1, {"cell_type": "markdown", "source": "# Old", "metadata": {}})
    sheets = [{"cells": cells, "metadata": {}}]
    metadata = {"name": "", "kernelspec": KERNEL}
    return {"nbformat": version, "nbformat_minor": 0, "metadata": metadata, "worksheets": sheets}


TAGGED = [
    ("# Title", "markdown"), ("raw", "raw"), ("lr = 1", ["parameters"]), "print(lr)",
    ("print('skipped')", ["skip-execution"]), ("", "markdown"), ("lr * 2", ["outputs", "x"]), "1/0",
]  # fmt: skip
DOCUMENTS = {
    **{name: (_notebook(cells), {}) for name, cells in ODD.items()},
    "tags": (_notebook(TAGGED), {}),
    "tags and parameters": (_notebook(TAGGED), {"lr": 3, "more": "é", "none": None, "nan": 0.5}),
    "parameters without a cell": (_notebook(["print(a)"]), {"a": [1, {"b": "c"}]}),
    "the kernel python": (
        _notebook(["import sys; sys.version_info[0]"], kernelspec={**KERNEL, "name": "python"}),
        {},
    ),
    "format 3": (_old("x = 1\nprint(x)", ["x =\\\n", " 2\n", "x"], version=3), {}),
    "format 3 that raises": (_old("1", "1/0", version=3), {}),
    "format 4.0": ({**_notebook(["print(1)"]), "nbformat_minor": 0}, {}),
    "an old error": (_notebook(["1"]), {}),
    "empty": (_notebook([]), {}),
}
for cell in DOCUMENTS["format 4.0"][0]["cells"]:
    del cell["id"]
DOCUMENTS["an old error"][0]["cells"][0]["outputs"] = [
    {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
]


@pytest.fixture(scope="module")
def both(request, tmp_path_factory):
    """What papermill and the runner made of each that is asked for, by name."""
    place = tmp_path_factory.mktemp("odd")
    bench = Bench(place)
    (place / "theirs").mkdir()
    for folder in (bench.work, place / "theirs"):
        (folder / "raises.py").write_text("def f():\n    raise ValueError('bad')\nf()")
        (folder / "exits.py").write_text("import sys; sys.exit(3)")
    asked = {getattr(each, "callspec", None) and each.callspec.id for each in request.session.items}
    orders = []
    for number, (name, (content, parameters)) in enumerate(DOCUMENTS.items()):
        if name in asked:
            source = bench.work / f"odd{number}.ipynb"
            source.write_text(json.dumps(content))
            target = place / f"papermill{number}.ipynb"
            orders.append([name, str(source), str(target), parameters, str(place / "theirs")])
    results = place / "results"
    papermill = _start_papermill(orders, results)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ours = {
            name: bench.run(Path(source), parameters=parameters).folder
            for name, source, _, parameters, _ in orders
        }
        assert papermill.wait() == 0
    finally:
        papermill.kill()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    theirs = [json.loads(line) for line in results.read_text().splitlines()]
    return {
        found["name"]: (found, order[2], ours[found["name"]])
        for found, order in zip(theirs, orders, strict=True)
    }


def _start_papermill(orders, results):
    """Its kernels listen below a folder whose name is short enough for a socket."""
    process = subprocess.Popen(
        [sys.executable, "-c", PAPERMILL, str(results)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "JUPYTER_RUNTIME_DIR": tempfile.mkdtemp()},
    )  # fmt: skip
    process.stdin.write(json.dumps(orders).encode())
    process.stdin.close()
    return process


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_ends_as_in_papermill(both, name):
    theirs, target, folder = both[name]
    outputs = json.loads((folder / "outputs.json").read_text())
    assert outputs["state"] == theirs["outcome"], (outputs, theirs)
    if theirs["cell"] is not None:
        events = map(json.loads, (folder / "events.ndjson").read_text().splitlines())
        errors = [event["index"] for event in events if event["type"] == "cell.error"]
        assert errors[-1] == theirs["cell"]
    ours = nbformat.read(folder / "executed.ipynb", 4)
    nbformat.validate(ours)
    # A kernel that dies may take with it that it began with the cell.
    counted = "why" not in theirs
    assert _sketch(ours, counted) == _sketch(nbformat.read(target, 4), counted)


def test_cells_that_may_raise_are_the_one_difference(bench):
    """As in nbclient, a cell tagged `raises-exception` does not fail the notebook."""
    source = bench.notebook(("1/0", ["raises-exception"]), "print('after')")
    order = [["n", str(source), str(bench.place / "out.ipynb"), {}, str(bench.work)]]
    results = bench.place / "results"
    assert _start_papermill(order, results).wait() == 0
    assert json.loads(results.read_text())["outcome"] == "failed"
    ended = bench.run(source)
    assert ended.state == "succeeded"
    assert _sketch(ended.notebook) == _sketch(nbformat.read(bench.place / "out.ipynb", 4))


def _sketch(notebook, counted=True):
    """What counts of an executed notebook: its cells and their outputs, and the widgets."""
    cells = []
    for cell in notebook.cells:
        if "papermill-error-cell-tag" in cell.metadata.get("tags", []):
            continue
        cells.append([cell.cell_type, cell.source])
        if cell.cell_type == "code":
            cells[-1] += [counted and cell.execution_count, *_joined(cell.outputs)]
    return json.loads(_without_chance(json.dumps([cells, notebook.metadata.get("widgets")])))


def _joined(outputs):
    """Outputs, with what was printed in pieces joined, and what was overwritten left out."""
    joined = []
    for output in map(dict, outputs):
        last = joined[-1] if joined else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            last["text"] += output["text"]
        else:
            joined.append(output)
    for output in joined:
        if output["output_type"] == "stream":
            output["text"] = re.sub(r"(?m)^[^\n]*\r(?=[^\n])", "", output["text"])
    return joined


def _without_chance(text):
    """Without addresses, process ids, times and the folders, of which each has its own."""
    text = re.sub("/(work|theirs)/", "/folder/", text)
    text = re.sub(r"0x[0-9a-f]+|object at [0-9a-f]+", "@", text)
    text = re.sub(r"ipykernel_\d+", "ipykernel", text)
    return re.sub(r"odd\d+|[\d.]+ [µnm]?s\b", "t", text)
