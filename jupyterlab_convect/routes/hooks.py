"""Calls from outside that make schedules due: webhooks of git hosts, and whoever has the token."""

from __future__ import annotations

from jupyter_server.auth.decorator import allow_unauthenticated

from ..errors import ConvectError
from ..json_text import loads
from ..pipeline.plan import Json
from .base import encode
from .calls import LARGEST_CALL, CallHandler


class HookHandler(CallHandler):
    """Only the token of the schedule counts, or a signature that was made with it."""

    @allow_unauthenticated
    async def post(self, schedule_id: str) -> None:
        body = self.request.body
        if len(body) > LARGEST_CALL:
            raise ConvectError(
                f"The body of a call is larger than {LARGEST_CALL >> 20} MiB.", code="too-large"
            )
        scheduling = self.host.workspace.scheduling
        headers, due = self.request.headers, None
        if headers.get("X-GitHub-Event") == "ping":
            await self.aside(scheduling.require_allowed, schedule_id, headers, body)
        else:
            due = await self.aside(scheduling.call, schedule_id, headers, body, _parsed(body))
        self.set_status(202)
        self.finish(encode({"schedule": schedule_id, "due": due}))


def _parsed(body: bytes) -> Json:
    """JSON; None where it is something else, which matters only if somebody refers to it."""
    try:
        return loads(body or b"{}")
    except (ValueError, RecursionError):
        return None


routes = [(r"hooks/([^/]+)", HookHandler)]
