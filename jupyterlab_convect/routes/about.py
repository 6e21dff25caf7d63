"""What this server is: version, runtimes, what is installed; and the API's own description."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from .. import __version__
from . import schema
from .base import Handler
from .runtimes import describe_runtimes

RESOURCE = "jupyterlab-convect:about"

PACKAGES = (
    "dask-gateway",
    "ipykernel",
    "jupyter-collaboration",
    "jupyter-server",
    "jupyterlab",
    "kfp",
    "kubernetes",
    "papermill",
)


class About(Handler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        runtimes = await self.aside(describe_runtimes, self.workspace)
        self.answer(
            {
                "version": __version__,
                "runtimes": [
                    {key: runtime[key] for key in ("name", "display_name", "features", "problem")}
                    for runtime in runtimes
                ],
                "default_runtime": self.workspace.settings.default_runtime,
                "command": await self.aside(_command),
                "health": [asdict(trouble) for trouble in self.workspace.health.troubles()],
                "installed": {name: _installed(name) for name in PACKAGES},
            }
        )


class OpenApi(Handler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        self.answer(await self.aside(schema.document))


def _command() -> str:
    """Where the command line is: a terminal may not have it on its path."""
    beside = Path(sys.executable).with_name("convect")
    return str(beside) if beside.exists() else shutil.which("convect") or "convect"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


routes = [("about", About), ("openapi", OpenApi)]
