"""Runs below a launcher, once for each rank: starts the replica and says how it ended.

A launcher mixes what its processes print and keeps their exit codes to itself. So each of them
is this program: what its replica prints goes to a pipe of its own, and its beginning and its end
to one that all share. It is alone there: nothing of this package can be imported.

Where nobody asks for another launcher, this is that as well: all replicas have to see the same view
of the project, so one process enters it and starts them.

Usage: python3 replica.py FOLDER OPTION COMMAND...
       python3 replica.py --all COUNT GRACE FOLDER OPTION COMMAND...
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

CONTROL = "control"
RANK = "@rank"
"""Stands for the rank in paths below the folder."""
PARENT = "JPY_PARENT_PID"
"""Names the process without which a kernel ends."""
NAMES = {
    "RANK": ("OMPI_COMM_WORLD_RANK", "PMI_RANK"),
    "LOCAL_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
    "WORLD_SIZE": ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    "LOCAL_WORLD_SIZE": ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"),
}
"""What the implementations of MPI call what everybody else calls by the first name."""


def main(folder: str, option: str, command: list[str]) -> int:
    env = environment(os.environ)
    rank = env["RANK"]
    if PARENT in env:
        env[PARENT] = str(os.getpid())
    process: subprocess.Popen[bytes] | None = None
    signals: list[int] = []

    def pass_on(number: int, _: object) -> None:
        signals.append(number)
        if process is not None:
            process.send_signal(number)

    def kill(*_: object) -> None:
        if process is not None:
            process.kill()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    signal.signal(signal.SIGUSR1, kill)

    def tell(**what: Any) -> None:
        control = os.open(f"{folder}/{CONTROL}", os.O_WRONLY)
        os.write(control, (json.dumps({"rank": int(rank), **what}) + "\n").encode())
        os.close(control)

    output = os.open(f"{folder}/{rank}", os.O_WRONLY)
    words = [word.replace(f"{folder}/{RANK}", f"{folder}/{rank}") for word in command]
    words += [f"{option}={env['LOCAL_RANK']}"] if option else []
    try:
        process = subprocess.Popen(words, stdout=output, stderr=output, env=env)
    except OSError as error:
        os.write(output, f"{words[0]} could not be started: {error.strerror}.\n".encode())
        tell(code=127)
        return 127
    tell(pid=process.pid)
    if signals:
        process.send_signal(signals[0])
    code = process.wait()
    tell(code=code)
    if PARENT in env:
        return 0  # how the end of a kernel is meant, the runner knows
    return code if code >= 0 else 128 - code


def launch(count: int, grace: float, words: list[str]) -> int:
    """Start all ranks; when one fails, stop the others, and kill them after a while."""
    running: set[int] = set()

    def send(number: int) -> None:
        for pid in running:
            os.kill(pid, number)

    # Whoever stops us stops them as well: what is left to do is to wait for them.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGALRM, lambda *_: send(signal.SIGUSR1))
    first = int(os.environ["NODE_RANK"]) * count
    for local in range(count):
        env = {**os.environ, "RANK": str(first + local), "LOCAL_RANK": str(local)}
        command = [sys.executable, "-I", "-S", __file__, *words]
        running.add(subprocess.Popen(command, env=env).pid)
    has_failed = False
    while running:
        pid, status = os.wait()
        running.discard(pid)
        if status and not has_failed:
            has_failed = True
            send(signal.SIGTERM)
            signal.setitimer(signal.ITIMER_REAL, max(grace, 0.01))
    return int(has_failed)


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """With the names that scripts know, whatever the launcher calls them."""
    found = {
        name: ours[other] for name, others in NAMES.items() for other in others if other in ours
    }
    return {**ours, **found}


if __name__ == "__main__":
    if sys.argv[1] == "--all":
        sys.exit(launch(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]))
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
