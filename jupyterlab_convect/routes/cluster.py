"""What a runtime has, what of it is free, and who holds the rest."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..errors import Missing
from .base import Polled


class Top(Polled):
    @authenticated
    @authorized("read", resource="jupyterlab-convect:runtimes")
    async def get(self, name: str) -> None:
        runtime = await self.aside(self.workspace.runtimes.__getitem__, name)
        found = await self.drive(runtime.top())
        if found is None:
            raise Missing(f"The runtime {name} does not know what there is and is free.")
        self.answer(found)


routes = [("runtimes/([^/]+)/top", Top)]
