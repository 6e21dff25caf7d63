"""Which components may run on this machine without a container."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from ..errors import ConvectError, Refused
from ..pipeline.plan import Plan
from .launch import container_engine
from .model import Component, component_from_json, executable_digests
from .store_files import included_digests, write_json


def store_folder(runs: Path) -> Path:
    """Where the components of a runs folder are kept: beside it."""
    return runs.absolute().parent / "catalog"


class Approvals:
    """An approval is given for commands, not for names: nobody can slip in others.

    Of a graph it is given for each part. Each is a file of its own, so that two who
    approve at the same time do not lose each other's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "approvals"

    def has(self, component: Component) -> bool:
        """Whether somebody approved it, or it ships with the product."""
        shipped = included_digests()
        return all(
            digest in shipped or self._path(digest).exists()
            for digest in executable_digests(component)
        )

    def give(self, component: Component, user: str | None = None) -> None:
        given = {"name": component.name, "time": time.time(), "user": user}
        for digest in executable_digests(component):
            write_json(self._path(digest), given)

    def withdraw(self, component: Component) -> None:
        for digest in executable_digests(component):
            try:
                self._path(digest).unlink(missing_ok=True)
            except OSError as error:
                raise ConvectError(
                    f"The approval of “{component.name}” cannot be withdrawn: {error.strerror}."
                ) from None

    def missing(self, plan: Plan) -> list[tuple[str | None, Component]]:
        """Components that would run without a container and must not, each with a step of it."""
        found = {
            digest: component
            for digest, definition in plan.components.items()
            for component in [component_from_json(definition)]
            if not self.has(component)
        }
        if not found or container_engine(os.environ) is not None:
            return []
        steps = {step.component: step.id for step in reversed(plan.steps)}
        return [(steps.get(digest), component) for digest, component in found.items()]

    def require(self, plan: Plan) -> None:
        """Refuse a plan whose components would run without a container and must not."""
        for _, component in self.missing(plan):
            raise refuse_unapproved(component)

    def _path(self, digest: str) -> Path:
        return self.folder / digest.removeprefix("sha256:")


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
