"""Drives the runs of a lab until somebody kills it.

    python host.py FOLDER MODULE:CLASS TRAITS

The traits of the runtime are given as JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path

from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.store import Store


async def main(folder: Path, runtime_class: str, traits: str) -> None:
    module, _, name = runtime_class.partition(":")
    runtime = getattr(importlib.import_module(module), name)(**json.loads(traits))
    store = Store(folder / "runs", Index(folder / "index.sqlite"))
    await Engine(store, {runtime.name: runtime}).resume()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
