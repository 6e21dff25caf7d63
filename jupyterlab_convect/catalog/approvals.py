"""Which components may run on this machine without a container."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from ..errors import Refused
from ..pipeline.plan import Json, Plan
from .definition import component_from_json
from .engines import container_engine
from .files import read_json, write_json
from .model import Component, executable_digest
from .shipped import digests


def store_folder(runs: Path) -> Path:
    """Where the components of a runs folder are kept: beside it."""
    return runs.absolute().parent / "catalog"


class Approvals:
    """An approval is given for commands, not for names: nobody can slip in others."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "approvals.json"

    def has(self, component: Component) -> bool:
        """Whether somebody approved it, or it ships with the product."""
        digest = executable_digest(component)
        return digest in self._read() or digest in digests()

    def give(self, component: Component, user: str | None = None) -> None:
        given = {"name": component.name, "time": time.time(), "user": user}
        write_json(self.path, self._read() | {executable_digest(component): given})

    def withdraw(self, component: Component) -> None:
        approvals = self._read()
        if approvals.pop(executable_digest(component), None) is not None:
            write_json(self.path, approvals)

    def require(self, plan: Plan) -> None:
        """Refuse a plan whose components would run without a container and may not."""
        missing = [
            component
            for definition in plan.components.values()
            for component in [component_from_json(definition)]
            if not self.has(component)
        ]
        if missing and container_engine(os.environ) is None:
            raise refuse_unapproved(missing[0])

    def _read(self) -> dict[str, Json]:
        value = read_json(self.path)
        return value if isinstance(value, dict) else {}


def refuse_unapproved(component: Component) -> Refused:
    """Shows the command, and says what to do."""
    container = component.container
    command = [*container.command, *container.args] if container else []
    shown = " ".join(item if isinstance(item, str) else json.dumps(item) for item in command)
    shown = " ".join(shown.split())
    return Refused(
        f"“{component.name}” has not been approved to run without a container; "
        f"its command is: {shown[:160]}{'…' if len(shown) > 160 else ''}",
        code="component-not-approved",
        hint="There is no podman or docker here. Approve the component in its preview, or with "
        f"`convect component approve {component.digest.removeprefix('sha256:')[:12]}`.",
    )
