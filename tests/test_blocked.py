"""Nothing of ours runs on the server's event loop: a disk that hangs does not stop JupyterLab."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WATCHED = ("open", "os.", "shutil.", "sqlite3.", "subprocess.", "fcntl.", "socket.")


class Frozen:
    """A file system of its own in which every write waits until it is thawed, whoever asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_frozen = False

    def freeze(self) -> None:
        subprocess.run(["fsfreeze", "-f", self.folder], check=True)
        self.is_frozen = True
        # Whatever happens to the test, nothing is left waiting.
        again = f"sleep 120; fsfreeze -u '{self.folder}'"
        self._watchdog = subprocess.Popen(["sh", "-c", again], stderr=subprocess.DEVNULL)

    def thaw(self) -> None:
        if self.is_frozen:
            self._watchdog.kill()
            self._watchdog.wait()
            subprocess.run(["fsfreeze", "-u", self.folder], check=True)
            self.is_frozen = False


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Frozen]:
    for tool in ("mkfs.ext4", "fsfreeze", "mount"):
        if os.geteuid() != 0 or shutil.which(tool) is None:
            pytest.skip(f"Only root can make a file system that blocks, with {tool}.")
    image, folder = tmp_path / "image", tmp_path / "runs"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True).returncode:
        pytest.skip("This machine mounts no loop device.")
    frozen = Frozen(folder)
    yield frozen
    frozen.thaw()
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.slow
async def test_jupyterlab_answers_while_the_runs_folder_blocks(
    disk: Frozen,
    api: Any,
    jp_fetch: Callable[..., Any],
    jp_root_dir: Path,
    write_notebook: Callable[..., Path],
    eventually: Callable[..., Any],
    server: Any,
) -> None:
    write_notebook(jp_root_dir / "a.ipynb", "1")
    _, first = await api("POST", "runs", {"path": "a.ipynb"})
    await api.ended(first["id"])
    disk.freeze()
    sweep = {"request": {"path": "a.ipynb"}, "space": {"x": [1, 2]}}
    asked = [
        asyncio.create_task(api("POST", "runs", {"path": "a.ipynb"})),
        asyncio.create_task(api("PATCH", f"runs/{first['id']}", {"note": "x"})),
        asyncio.create_task(api("POST", "sweeps", sweep)),
        *(asyncio.create_task(api("GET", f"runs/{first['id']}")) for _ in range(20)),
    ]
    answered = 0
    deadline = asyncio.get_running_loop().time() + 5
    while asyncio.get_running_loop().time() < deadline:
        status = await jp_fetch("api", "status")
        answered += status.code == 200
        await asyncio.sleep(0.05)
    assert disk.is_frozen
    assert answered > 1
    assert not asked[0].done()
    disk.thaw()
    codes = [code for code, _ in await asyncio.gather(*asked)]
    assert set(codes) == {200, 201}
    _, run = await asked[0]
    assert (await api.ended(run["id"]))["state"] == "succeeded"


class Touched:
    """What a thread does to files, processes and databases while it is looked at."""

    def __init__(self) -> None:
        self.thread: int | None = None
        self.where: list[Path] = []
        self.found: list[str] = []
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.thread != threading.get_ident() or not event.startswith(WATCHED):
            return
        text = str(arguments[0]) if arguments else ""
        if event.startswith(("sqlite3.", "subprocess.")) or any(
            text.startswith(str(folder)) for folder in self.where
        ):
            self.found.append(f"{event} {text}")


@pytest.fixture(scope="session")
def touched() -> Touched:
    return Touched()  # A hook cannot be taken off again.


async def test_no_file_of_a_run_is_touched_on_the_event_loop_of_the_server(
    touched: Touched,
    api: Any,
    server: Any,
    jp_root_dir: Path,
    write_notebook: Callable[..., Path],
) -> None:
    app = server.web_app.settings["jupyterlab_convect"]
    write_notebook(
        jp_root_dir / "a.ipynb", ("parameters", "x = 1"), "print(x)", ("outputs", "y = x")
    )
    touched.where = [Path(app.runs_dir), Path(app.index_dir)]
    touched.thread = threading.get_ident()
    try:
        _, run = await api("POST", "runs", {"path": "a.ipynb", "parameters": {"x": 2}})
        assert (await api.ended(run["id"]))["state"] == "succeeded"
        one = f"runs/{run['id']}"
        step = f"{one}/steps/a/1"
        for path in ("runs", one, "sweeps", f"{step}/log", f"{step}/events", f"{step}/files"):
            assert (await api("GET", path))[0] == 200
        for path in (f"{step}/notebook", f"{step}/log", f"{one}/archive"):
            response = await api.response("GET", path, params={"download": "1"})
            assert response.code == 200, path
        assert (await api("PATCH", one, {"note": "x"}))[0] == 200
        assert (await api("POST", f"{one}/stop"))[0] == 200
        status, again = await api("POST", f"{one}/rerun")
        assert status == 201
        await api.ended(again["id"])
        request = {"request": {"path": "a.ipynb"}, "space": {"x": [1, 2]}}
        status, sweep = await api("POST", "sweeps", request)
        assert status == 201
        for point in sweep["points"]:
            await api.ended(point["run"])
        assert (await api("POST", f"sweeps/{sweep['id']}/stop"))[0] == 200
        assert (await api("DELETE", one))[0] == 204
    finally:
        touched.thread = None
    assert touched.found == []
