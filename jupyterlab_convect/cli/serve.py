"""`convect serve`: make a notebook, script or pipeline callable, as long as this goes on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConvectError
from ..pipeline.quantities import duration
from . import output
from .arguments import (
    add_parameters,
    add_resources,
    add_root,
    known_types,
    locate,
    resource_settings,
    typed_parameters,
)

if TYPE_CHECKING:
    from ..services.endpoints import Endpoint
    from ..workspace import Workspace

RESUME_PAUSE = 5.0
MOST_PORTS = 65535


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "serve",
        help="make a notebook, script or pipeline callable",
        epilog="Each call is a run. Ctrl-C ends it; runs that go on are driven to their end.",
    )
    parser.add_argument("path", type=Path, help="a notebook, script or pipeline")
    add_parameters(parser, "a parameter that callers cannot choose")
    parser.add_argument("--id", help="its part of the address (the name of the file)")
    parser.add_argument("--name", help="what to call it (the name of the file)")
    parser.add_argument("--runtime", help="where calls run, and the function stays loaded (local)")
    add_resources(parser)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=8890, help="the port; 0 takes a free one (8890)"
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="where to write the token, instead of here"
    )
    parser.add_argument("--concurrency", type=int, metavar="N", help="calls at once (processors)")
    parser.add_argument("--queue", type=int, metavar="N", help="calls that may wait (100)")
    parser.add_argument("--rate", type=int, metavar="N", help="calls per minute (no limit)")
    parser.add_argument(
        "--idle",
        type=duration,
        metavar="DURATION",
        help="how long the function of the cell tagged serve stays loaded without calls (30 min)",
    )
    add_root(parser)
    parser.set_defaults(handler=_serve)


def _serve(options: argparse.Namespace) -> int:
    import asyncio

    from ..settings import load_settings
    from ..workspace import Workspace

    workspace = Workspace(load_settings())
    endpoint = _endpoint(options, workspace)
    return asyncio.run(_answer(options, workspace, endpoint))


def _endpoint(options: argparse.Namespace, workspace: Workspace) -> Endpoint:
    from ..runs.model import Request
    from ..services.endpoints import endpoint_of, this_process

    root, path = locate(options.path, options.root)
    runtime = options.runtime or workspace.settings.default_runtime
    request = Request(
        path=path,
        root=str(root),
        runtime=runtime,
        parameters=typed_parameters(options.parameter, known_types(root, path)),
        settings=workspace.profile_settings(options.profile, runtime, resource_settings(options)),
    )
    return endpoint_of(
        request,
        endpoint_id=options.id,
        name=options.name,
        process=this_process(),
        **{name: getattr(options, name) for name in ("concurrency", "queue", "rate", "idle")},
    )


async def _answer(options: argparse.Namespace, workspace: Workspace, endpoint: Endpoint) -> int:
    import asyncio
    import signal
    from types import SimpleNamespace

    from tornado.httpserver import HTTPServer
    from tornado.netutil import bind_sockets
    from tornado.web import Application

    from ..background import forever
    from ..pools import LoopThread
    from ..routes import calls, predict
    from ..services.calls import refuse_uncallable, what_it_takes
    from ..services.endpoints import CallRate, EndpointStore
    from ..services.store import ServiceStore
    from ..services.workers import stop_worker

    if not 0 <= options.port <= MOST_PORTS:
        raise ConvectError(f"--port must be a number from 0 to {MOST_PORTS}.")
    what_it_takes(endpoint)
    thread = LoopThread("convect-engine")
    refuse_uncallable((await thread.run(workspace.check(endpoint.request))).problems)
    try:
        sockets = bind_sockets(options.port, options.host)
    except OSError as error:
        raise ConvectError(
            f"{options.host} port {options.port} cannot be listened on: {error.strerror}.",
            code="no-address",
            hint="Choose another with --host and --port.",
        ) from None
    await thread.run(workspace.open())
    endpoints = EndpointStore(workspace.store)
    endpoints.create(endpoint)
    try:
        token = endpoints.add_token(endpoint.id, "first")

        async def look() -> None:
            await workspace.resume()
            await asyncio.sleep(RESUME_PAUSE)

        lasting = thread.begin(forever("Looking for abandoned runs", look, workspace.health))
        host = SimpleNamespace(workspace=workspace, engine_thread=thread, call_rate=CallRate())
        application = Application(
            [(f"/{pattern}", handler) for pattern, handler in (*calls.routes, *predict.routes)],
            jupyterlab_convect=host,
            log_function=lambda _: None,
        )
        server = HTTPServer(application, max_body_size=predict.LARGEST_BODY)
        server.add_sockets(sockets)
        port = sockets[0].getsockname()[1]
        _tell(options, f"http://{options.host}:{port}/call/{endpoint.id}", token)
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await ended.wait()
        server.stop()
        lasting.cancel()
        return 0
    finally:
        endpoints.delete(endpoint.id)
        await asyncio.to_thread(stop_worker, ServiceStore(workspace.store), endpoint.id)
        live = bool(workspace.store.live_runs())
        await thread.run(workspace.close())
        thread.close()
        if live:
            from ..detached import hand_over

            hand_over(workspace.settings)


def _tell(options: argparse.Namespace, address: str, token: str) -> None:
    output.say(address)
    shown = token
    if options.token_file is not None:
        from ..safe_files import write_whole

        write_whole(options.token_file, f"{token}\n".encode())
        shown = f"$(cat {options.token_file})"
    else:
        output.say(f"token: {token}")
    signed = f'-H "Authorization: Bearer {shown}"'
    output.note(f"Call it with: curl -X POST '{address}?wait=30' {signed} -d '{{}}'")
    output.note("Try it in a browser at the same address. Ctrl-C ends it.")
