"""The worker of an endpoint: a function in a cell tagged `serve`, which stays loaded."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..errors import Conflict, ConvectError, Missing, Refused
from ..pipeline.discovery import MAX_BYTES, code_cells, read_notebook, too_large
from ..pipeline.document import read_file
from ..pipeline.plan import Json, to_json
from ..pipeline.python_code import parse
from ..runner import notebook_worker, notebooks
from ..runner.kernels import find
from ..runner.outcome import StepFailed
from ..runs.store import Store
from ..secret_values import without_secrets
from .base import Service, ServiceCommand, ServiceKind
from .endpoints import Endpoint
from .store import ServiceRecord, ServiceStore

TAG = "serve"
STOP_PATIENCE = 30.0
CLUSTER_PATIENCE = 86400.0
CLUSTER_PROCESS = (sys.executable, "-m", "jupyterlab_convect.worker_process")


class EndpointWorker(ServiceKind):
    """Its options: `path` of the notebook, the `name` of the model, and `parameters`; and, where
    it runs in a cluster, the `runtime` and the `request` that says with which image."""

    idle = 1800.0
    patience = 600.0
    politely = 20.0
    ready_path = "/v2/health/ready"

    def prepare(
        self, options: Mapping[str, Json], root: Path, store: Store
    ) -> tuple[str, dict[str, Json]]:
        path = root / str(options.get("path"))
        work = work_of(path)
        digest = hashlib.sha256(json.dumps(work.cells).encode()).hexdigest()
        name = str(options.get("name") or path.stem)
        parameters = options.get("parameters") or {}
        kept = {"path": str(path), "name": name, "parameters": parameters, "code": digest}
        if options.get("runtime"):
            kept |= {each: options[each] for each in ("runtime", "request")}
        return f"{work.function} of {path.name}", kept

    def patience_for(self, service: Service) -> float:
        """A cluster may have to find room for it first."""
        return CLUSTER_PATIENCE if "runtime" in service.options else self.patience

    def removal(self, service: Service) -> tuple[str, ...]:
        return (*CLUSTER_PROCESS, "forget") if "runtime" in service.options else ()

    def command(self, service: Service, port: int) -> ServiceCommand:
        path = Path(service.options["path"])
        work = work_of(path)
        given = {name: service.options[name] for name in ("name", "parameters")}
        order = {"cells": work.cells, "function": work.function, **given}
        if "runtime" in service.options:
            order |= {name: service.options[name] for name in ("runtime", "request")}
            # It reads credentials of the cluster, and executes nothing of anybody.
            return ServiceCommand((*CLUSTER_PROCESS, str(port)), path.parent, os.environ, order)
        try:
            kernel = find(notebooks.kernel_name(notebooks.read(path), path.name))
        except StepFailed as error:
            raise ConvectError(str(error)) from None
        if kernel.ipykernel is None or kernel.provisioner is not None:
            raise Refused(f"The kernel of {path.name} is not a Python kernel of this machine.")
        words = (kernel.interpreter, *kernel.ipykernel[0], notebook_worker.__file__, str(port))
        environment = kernel.environment(without_secrets(os.environ))
        return ServiceCommand(words, path.parent, environment, order)


def worker_of(services: ServiceStore, endpoint: Endpoint, place: Json = None) -> ServiceRecord:
    """The worker of an endpoint, started if need be. One with other code is stopped first.

    `place` is the runtime whose cluster keeps it, with its settings; None is this machine.
    """
    request = endpoint.request
    options = {
        "path": request.path,
        "name": endpoint.id,
        "parameters": dict(request.parameters),
        **({"runtime": place, "request": to_json(request)} if place else {}),
    }

    def start() -> ServiceRecord:
        return services.start(
            "endpoint",
            options,
            Path(request.root),
            service_id=worker_id(endpoint.id),
            idle=endpoint.idle,
        )

    try:
        return start()
    except Conflict:
        stop_worker(services, endpoint.id)
        return start()


def served_function(endpoint: Endpoint) -> str | None:
    """The name of the function that its worker calls, if it has one. Reads the file."""
    request = endpoint.request
    try:
        return work_of(Path(request.root, request.path or "")).function
    except ConvectError:
        return None


def stop_worker(services: ServiceStore, endpoint_id: str) -> None:
    """Stop the worker of an endpoint, if there is one, and forget it."""
    service_id = worker_id(endpoint_id)
    with contextlib.suppress(Missing):
        services.stop(service_id)
        asyncio.run(services.until(service_id, up=False, timeout=STOP_PATIENCE))
        services.remove(service_id)


def worker_id(endpoint_id: str) -> str:
    return f"endpoint-{hashlib.sha256(endpoint_id.encode()).hexdigest()[:12]}"


class ServedFunction(NamedTuple):
    cells: list[Json]
    """Source and tags of each code cell up to the one tagged `serve`."""
    function: str


def work_of(path: Path) -> ServedFunction:
    """What the cell tagged `serve` defines, and what it needs. Refused when there is none."""
    data = read_file(path, limit=MAX_BYTES)
    if len(data) > MAX_BYTES:
        raise too_large(path.name)
    cells: list[Json] = []
    for source, tags in code_cells(read_notebook(path.name, data)):
        cells.append([source, tags])
        if TAG in tags:
            function = _function(source)
            if function is None:
                raise Refused(
                    f"The cell tagged `{TAG}` of {path.name} defines no function.",
                    code="no-function",
                )
            return ServedFunction(cells, function)
    raise Refused(
        f"{path.name} has no cell tagged `{TAG}`.",
        code="no-function",
        hint="Tag the cell that defines the function to call.",
    )


def _function(source: str) -> str | None:
    """`predict`, or the last function of the cell."""
    tree = parse(source)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] if tree else []
    return "predict" if "predict" in names else names[-1] if names else None
