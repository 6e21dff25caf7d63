"""A process of its own that drives runs to their end, with nobody watching.

`detach` starts one. It is told what to do by JSON on its standard input and answers
with one line on its standard output: `{"run": id, "warnings": […]}`, the same for a sweep, or
`{"error": {code, message, hint}}`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .errors import ConvectError
from .pipeline.plan import Json, from_json, to_json
from .pipeline.problems import Problem
from .runs.lease import is_abandoned, process_birth
from .runs.model import Request
from .safe_files import append_to, make_folder
from .settings import Settings, load_settings
from .workspace import Workspace


def detach(settings: Settings, request: Request, sweep: Json = None) -> Json:
    """Have a run or a sweep driven by a process of its own; the answer names it.

    `sweep` is what `Sweeps.create` takes beside the request.
    """
    return _start(settings, {"request": to_json(request), "sweep": sweep})


def detach_schedule(settings: Settings, verb: str, arguments: dict[str, Json]) -> Json:
    """Have a schedule run now, or for earlier due times, by a process of its own.

    `verb` is the method of `Scheduling`, and `arguments` what it takes.
    """
    return _start(settings, {"schedule": verb, "arguments": arguments})


def hand_over(settings: Settings) -> None:
    """Have another process take over what this one drives, once this one has ended."""
    _start(settings, {"after": os.getpid()})


def take_up(workspace: Workspace) -> int:
    """Have a process of its own take over runs whose driver was killed; how many there are."""
    store = workspace.store
    abandoned = [
        each
        for each in store.live_runs()
        if store.is_own_folder(store.run_folder(each)) and is_abandoned(store.run_folder(each))
    ]
    if abandoned:
        _start(workspace.settings, {"after": None})
    return len(abandoned)


def _start(settings: Settings, order: dict[str, Json]) -> Json:
    order = {
        "runs_dir": settings.runs_dir,
        "index_dir": settings.index_dir,
        "share_runs": settings.share_runs,
        **order,
    }
    folder = Path(settings.index_dir).expanduser()
    make_folder(folder)
    path = folder / "host.log"
    with os.fdopen(append_to(path), "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(json.dumps(order).encode())
        process.stdin.close()
        line = process.stdout.readline()
    if not line:
        raise ConvectError(
            "The process that should drive the run did not start.",
            code="no-host",
            hint=f"{path} says why.",
        )
    answer = json.loads(line)
    if "error" in answer:
        error = answer["error"]
        raise ConvectError(error["message"], code=error["code"], hint=error["hint"])
    return answer


def main() -> None:
    order = json.load(sys.stdin)

    def answer(value: Json) -> None:
        print(json.dumps(value), flush=True)  # noqa: T201
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)

    settings = load_settings()
    for name in ("runs_dir", "index_dir", "share_runs"):
        setattr(settings, name, order[name])
    asyncio.run(_drive(Workspace(settings), order, answer))


async def _drive(
    workspace: Workspace, order: dict[str, Json], answer: Callable[[Json], None]
) -> None:
    try:
        if "after" in order:
            answer({})
            await _go_on_after(workspace, order["after"])
            return
        if "schedule" in order:
            await _drive_schedule(workspace, order, answer)
            return
        request = from_json(Request, order["request"])
        warnings: list[str] = []

        def tell(problem: Problem) -> None:
            if problem.severity == "warning":
                warnings.append(problem.message)

        if order["sweep"] is None:
            run = await asyncio.to_thread(workspace.make, request, tell=tell)
            await workspace.submit(run)
            answer({"run": run.id, "warnings": warnings})
            await workspace.engine.wait(run.id)
        else:
            sweep_id = await workspace.create_sweep(request, tell=tell, **order["sweep"])
            answer({"sweep": sweep_id, "warnings": warnings})
            await workspace.sweeps.wait(sweep_id)
    except ConvectError as error:
        answer({"error": error.to_json()})
    finally:
        await workspace.close()


async def _drive_schedule(
    workspace: Workspace, order: dict[str, Json], answer: Callable[[Json], None]
) -> None:
    scheduling, arguments = workspace.scheduling, order["arguments"]
    act = scheduling.backfill if order["schedule"] == "backfill" else scheduling.run_now
    found = await act(**arguments)
    is_run = workspace.store.run_folder(found).is_dir()
    answer({"run" if is_run else "sweep": found, "warnings": []})
    if is_run:
        await workspace.engine.wait(found)
    else:
        await workspace.sweeps.wait(found)


async def _go_on_after(workspace: Workspace, process: int | None) -> None:
    deadline = time.monotonic() + 30
    # One that has ended counts as gone, also when nobody collects it.
    while process and process_birth(process) is not None and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    run_ids = await workspace.engine.resume()
    await workspace.sweeps.resume()
    requests = [workspace.store.read(run_id).run.request for run_id in run_ids]
    for run_id in run_ids:
        await workspace.engine.wait(run_id)
    # Some runs of a sweep had to wait for their turn.
    for sweep_id in {request.sweep for request in requests if request.sweep is not None}:
        await workspace.sweeps.wait(sweep_id)


if __name__ == "__main__":
    main()
