from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE

from jupyterlab_convect.errors import ConvectError

HEAVY = ("dask_gateway", "kfp", "kubernetes", "nbclient", "papermill", "rich")


def modules_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_the_server_extension_loads_nothing_heavy() -> None:
    without = modules_after("import jupyter_server.serverapp")
    loaded = modules_after(
        "import jupyter_server.serverapp, jupyterlab_convect\n"
        "jupyterlab_convect._jupyter_server_extension_points()\n"
        "from jupyterlab_convect.routes import all_routes; all_routes()\n"
        "from jupyterlab_convect.settings import Settings\n"
        "from jupyterlab_convect.workspace import Workspace\n"
        "Workspace(Settings()).runtimes['local']"
    )
    assert "jupyterlab_convect.app" in loaded
    assert not loaded.intersection(HEAVY) - without


def test_a_run_from_the_command_line_loads_nothing_heavy_before_it_starts() -> None:
    loaded = modules_after(
        "import jupyterlab_convect.cli.run, jupyterlab_convect.cli.following\n"
        "from jupyterlab_convect.settings import load_settings\n"
        "from jupyterlab_convect.workspace import Workspace\n"
        "Workspace(load_settings()).runtimes['local']"
    )
    assert not loaded.intersection((*HEAVY, "jupyter_server", "jsonschema", "tornado", "yaml"))


async def test_the_server_keeps_itself_alive_while_runs_run_here(
    api: Any,
    server: Any,
    jp_root_dir: Path,
    write_notebook: Callable[..., Path],
    eventually: Callable[..., Any],
) -> None:
    write_notebook(jp_root_dir / "long.ipynb", "import time; time.sleep(600)")
    assert not server.extension_manager.any_activity()
    _, run = await api("POST", "runs", {"path": "long.ipynb"})
    await eventually(server.extension_manager.any_activity)
    await api("POST", f"runs/{run['id']}/stop")
    await eventually(lambda: not server.extension_manager.any_activity())
    assert (await api("GET", f"runs/{run['id']}"))[1]["state"] == "cancelled"


async def test_a_server_without_a_place_for_runs_says_so(
    jp_server_config: Any, jp_configurable_serverapp: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    jp_server_config.Convect.runs_dir = str(tmp_path / "file" / "runs")
    server = jp_configurable_serverapp(config=jp_server_config)
    await server.extension_manager.start_all_extensions()
    with pytest.raises(ConvectError, match="runs folder"):
        _ = server.web_app.settings["jupyterlab_convect"].workspace.store
    await server._cleanup()
    server.clear_instance()


async def test_polling_is_no_activity_but_starting_is(
    api: Any, server: Any, jp_root_dir: Path, write_notebook: Callable[..., Path]
) -> None:
    write_notebook(jp_root_dir / "a.ipynb", "1")
    server.web_app.settings.pop("api_last_activity", None)
    await api("GET", "runs")
    await api("GET", "sweeps")
    assert "api_last_activity" not in server.web_app.settings
    _, run = await api("POST", "runs", {"path": "a.ipynb"})
    assert "api_last_activity" in server.web_app.settings
    await api.ended(run["id"])


async def test_a_run_goes_on_with_the_next_server(
    api: Any,
    server: Any,
    jp_root_dir: Path,
    write_notebook: Callable[..., Path],
    eventually: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whoever comes after a server that ended finds its runs, here without a server at all."""
    from jupyterlab_convect.settings import Settings
    from jupyterlab_convect.workspace import Workspace

    app = server.web_app.settings["jupyterlab_convect"]
    go_on = tmp_path_factory.mktemp("signal") / "go-on"
    write_notebook(
        jp_root_dir / "wait.ipynb",
        f"import pathlib, time\nwhile not pathlib.Path({str(go_on)!r}).exists(): time.sleep(0.02)",
    )
    _, run = await api("POST", "runs", {"path": "wait.ipynb"})

    async def runs() -> bool:
        _, shown = await api("GET", f"runs/{run['id']}")
        return bool(shown["steps"]["wait"]["state"] == "running")

    await eventually(runs, "the step ran")
    await app.stop_extension()
    go_on.touch()
    workspace = Workspace(Settings(runs_dir=app.runs_dir, index_dir=app.index_dir))
    assert await workspace.engine.resume() == [run["id"]]
    state = await workspace.engine.wait(run["id"], PATIENCE)
    assert (state.state, len(state.steps["wait"].attempts)) == ("succeeded", 1)
    await workspace.close()


async def test_a_server_stops_although_its_runs_cannot_be_let_go_of(
    server: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk or a cluster does not answer, and may never."""
    app = server.web_app.settings["jupyterlab_convect"]
    monkeypatch.setattr("jupyterlab_convect.app.STOP_PATIENCE", 0.1)
    monkeypatch.setattr(app.workspace, "close", asyncio.Event().wait)
    await app.stop_extension()
    assert app.engine_thread.is_closed
    assert "could not be released" in caplog.text
