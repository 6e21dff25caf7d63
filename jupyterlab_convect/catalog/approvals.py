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
from .model import Component, executable_digests
from .shipped import digests


def store_folder(runs: Path) -> Path:
    """Where the components of a runs folder are kept: beside it."""
    return runs.absolute().parent / "catalog"


class Approvals:
    """An approval is given for commands, not for names: nobody can slip in others.

    Of a graph it is given for each part.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "approvals.json"

    def has(self, component: Component) -> bool:
        """Whether somebody approved it, or it ships with the product."""
        return executable_digests(component) <= {*self._read(), *digests()}

    def give(self, component: Component, user: str | None = None) -> None:
        given = {"name": component.name, "time": time.time(), "user": user}
        approvals = dict.fromkeys(executable_digests(component), given)
        write_json(self.path, self._read() | approvals)

    def withdraw(self, component: Component) -> None:
        withdrawn = executable_digests(component)
        left = {key: given for key, given in self._read().items() if key not in withdrawn}
        write_json(self.path, left)

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
