"""How the replicas of a step are launched: by torchrun, by mpirun, or by the runner itself."""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from .kernels import create_process
from .outcome import StepFailed
from .rounds import Round, master_of
from .step import DistributedSpec, StepSpec

ADDRESS = "127.0.0.1"
START = "CONVECT_START"
"""Names the file that starts a replica: its path is another on each node."""
MPI_AGENTS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
MPI_REMOTE = {
    # Who else is asked to start something there would have to have our agent as well.
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    # A daemon that has gone to the background would be ended with the process that started it.
    "OMPI_MCA_orte_leave_session_attached": "1",
    "PRTE_MCA_prte_leave_session_attached": "1",
    # An operator names hosts of its own, and options of ssh.
    "OMPI_MCA_orte_default_hostfile": "",
    "OMPI_MCA_plm_rsh_args": "",
    "PRTE_MCA_prte_default_hostfile": "",
    "SHELL": "/bin/sh",
}
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
"""A container's only user is often root, and there may be more processes than processors."""


async def launcher_of(
    step: StepSpec, turn: Round, node: int, command: list[str], env: Mapping[str, str]
) -> list[str]:
    """The words before those that start a replica; none where the runner launches them."""
    how = step.distributed
    assert how is not None
    count = env["LOCAL_WORLD_SIZE"]
    if how.launcher == "plain":
        return []
    if how.launcher == "mpi":
        if shutil.which("mpirun", path=env.get("PATH")) is None:
            raise StepFailed(f"{step.title} needs mpirun, which is not installed here.")
        return ["mpirun", "-n", count]
    interpreter = command[0] if "python" in Path(command[0]).name else sys.executable
    if not await has_torch(interpreter, env):
        raise StepFailed(f"{step.title} needs torch, which {interpreter} does not have.")
    nodes = [f"--nnodes={len(turn.nodes)}", f"--node_rank={turn.nodes.index(node)}"]
    options = [*nodes, f"--nproc_per_node={count}", "--max_restarts=0"]
    # Names with underscores, which old and new versions know.
    address = [f"--master_addr={env['MASTER_ADDR']}", f"--master_port={env['MASTER_PORT']}"]
    return [interpreter, "-m", "torch.distributed.run", *options, *address, "--no_python"]


def shared_environment(how: DistributedSpec, turn: Round, node: int, count: int) -> dict[str, str]:
    """What all replicas of a node find in their environment, whatever their rank."""
    threads = str(max(1, processors() // count))
    place = str(turn.nodes.index(node))
    address, port = (ADDRESS, free_port()) if how.nodes == 1 else master_of(node)
    return {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads),
        "WORLD_SIZE": str(len(turn.nodes) * count),
        "LOCAL_WORLD_SIZE": str(count),
        "NODE_RANK": place,
        "GROUP_RANK": place,
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "CONVECT_RESTART": str(turn.number),
        "CONVECT_OUTPUTS_FROM": str(how.outputs_from),
    }


def gpus_of(env: Mapping[str, str]) -> list[str]:
    """Those that the step sees; in a pod, what the device plugin gave it."""
    given = env.get("CUDA_VISIBLE_DEVICES") or env.get("NVIDIA_VISIBLE_DEVICES") or ""
    return (
        []
        if given in ("all", "none", "void", "-1")
        else [each.strip() for each in given.split(",") if each.strip()]
    )


def processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))
        return int(taken.getsockname()[1])


async def has_torch(interpreter: str, env: Mapping[str, str]) -> bool:
    code = "import sys, importlib.util as u; sys.exit(u.find_spec('torch') is None)"
    process = await create_process(
        interpreter, "-c", code, env=env, stderr=asyncio.subprocess.DEVNULL
    )
    return await process.wait() == 0


def option_of(step: StepSpec, command: list[str]) -> str | None:
    """The option by which a script wants to be told its local rank."""
    scripts = [word for word in command if word.endswith(".py")]
    source = step.copy or step.source or (step.folder / scripts[0] if scripts else None)
    if source is None or (step.source or source).suffix != ".py":
        return None
    try:
        return local_rank_option(source.read_bytes())
    except OSError:
        return None


def local_rank_option(source: bytes) -> str | None:
    """`--local_rank` or `--local-rank`, as the script's own argparse has it; None for neither.

    The script is read, not run. Where it has both, the first is taken.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = [
        word.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"
        for word in node.args
        if isinstance(word, ast.Constant) and word.value in ("--local_rank", "--local-rank")
    ]
    return str(found[0]) if found else None
