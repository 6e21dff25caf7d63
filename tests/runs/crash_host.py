"""Drives a run, and is killed again and again while doing so.

    python crash_host.py SPARE_KERNELS FOLDER RUN SEED

Each life of the host is a fork of this process, which ends it with SIGKILL after a
random while. Prints how often that happened, once a life was long enough.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from pathlib import Path

from jupyterlab_convect.runs.engine import Engine
from jupyterlab_convect.runs.index import Index
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runtimes.local.runtime import LocalRuntime

LIVES = 200


async def live(spare_kernels: int, folder: Path, run_id: str) -> None:
    runtime = LocalRuntime(spare_kernels=spare_kernels)
    engine = Engine(Store(folder / "runs", Index(folder / "index.sqlite")), {"local": runtime})
    await engine.resume()
    await engine.wait(run_id)
    await runtime.close()


def main(spare_kernels: str, folder: str, run_id: str, seed: str) -> None:
    chance = random.Random(seed)
    expected = 0.5 if int(spare_kernels) else 0.1
    for life in range(LIVES):
        host = os.fork()
        if host == 0:
            asyncio.run(live(int(spare_kernels), Path(folder), run_id))
            os._exit(0)
        if ended_within(host, chance.expovariate(1 / expected)):
            print(life)
            return
        os.kill(host, signal.SIGKILL)
        os.waitpid(host, 0)
        expected *= 1.1  # However slow the machine is, some life is long enough.
    sys.exit("It never came to an end.")


def ended_within(process: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(process, os.WNOHANG)[0]:
            return True
        time.sleep(0.002)
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
