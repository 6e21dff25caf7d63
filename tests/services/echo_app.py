"""A small app: echoes what it is asked, redirects, sets a cookie, and talks over a websocket."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler


class Echo(RequestHandler):
    def check_xsrf_cookie(self) -> None:
        pass

    def get(self) -> None:
        self.set_cookie("seen", "yes")
        answer = {
            "method": self.request.method,
            "uri": self.request.uri,
            "body": self.request.body.decode(),
            "headers": dict(self.request.headers),
            "environment": dict(os.environ),
        }
        self.finish(json.dumps(answer))

    post = put = delete = get


class Elsewhere(RequestHandler):
    def get(self) -> None:
        self.redirect("/here?x=1")


class Large(RequestHandler):
    async def get(self) -> None:
        for _ in range(64):
            self.write(b"x" * 65536)
            await self.flush()


class Talk(WebSocketHandler):
    def check_origin(self, _: str) -> bool:
        return True

    def select_subprotocol(self, offered: list[str]) -> str | None:
        return offered[-1] if offered else None

    async def on_message(self, message: str | bytes) -> None:
        if message == "end":
            self.close(4001, "as asked")
        else:
            await self.write_message(message, binary=isinstance(message, bytes))


async def main() -> None:
    port, *how = sys.argv[1:]
    print("listening", flush=True)
    if "fail" in how:
        print("no such model", flush=True)
        sys.exit(3)
    if "mute" in how:
        time.sleep(600)
    Application(
        [("/elsewhere", Elsewhere), ("/large", Large), ("/talk", Talk), ("/.*", Echo)]
    ).listen(int(port), "127.0.0.1")
    await asyncio.Event().wait()


asyncio.run(main())
