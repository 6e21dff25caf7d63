"""The validator and the resolver on a thousand nodes, and the corpus of components."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.document import dumps, parse
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.pipeline.validate import validate

from . import workloads
from .measure import Result, absent, median, seconds

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "components"


def rows() -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
        folder = Path(scratch)
        document = parse(dumps(_thousand_notebooks(folder)))
        (folder / "big.pipeline").write_text(dumps(document), encoding="utf-8")
        yield _timed("validate, 1000 nodes", lambda: validate(document, root=folder), budget=200)
        yield _timed("`convect pipeline validate`, 1000 nodes, cold", lambda: _command(folder))
        yield _timed(
            "resolve, 1000 nodes",
            lambda: resolve(document, root=folder, path="big.pipeline", parameters={}),
        )
        yield _timed("parse and write, 1000 nodes", lambda: dumps(parse(dumps(document))))
    yield _corpus()


def _thousand_notebooks(folder: Path) -> dict[str, object]:  # type: ignore[return]
    names = [workloads.trivial(folder, f"n{number}").name for number in range(50)]
    nodes = {
        f"node{number}": {
            "kind": "notebook",
            "path": names[number % len(names)],
            "after": [f"node{number - 1}"] if number % 20 else [],
            "parameters": {"x": number},
        }
        for number in range(1000)
    }
    return {"convect": 1, "name": "big", "nodes": nodes}


def _command(folder: Path) -> None:
    convect = Path(sys.executable).with_name("convect")
    command = [convect, "pipeline", "validate", "big.pipeline"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _timed(name: str, action: object, budget: float | None = None) -> Result:
    assert callable(action)
    action()
    times = [seconds(action) for _ in range(7)]
    return Result(name, median(times) * 1000, "ms", budget=budget, ours=times)


def _corpus() -> Result:
    name = "read every component of the corpus"
    if not CORPUS.exists():
        return absent(name, "the corpus is not beside this clone")
    from jupyterlab_convect.catalog.read import read

    texts = [(path.name, path.read_bytes()) for path in sorted(CORPUS.glob("*.yaml"))]

    def all_of_them() -> None:
        for place, text in texts:
            try:
                read(text, place)
            except ConvectError:
                continue

    return _timed(f"{name} ({len(texts)} files)", all_of_them)
