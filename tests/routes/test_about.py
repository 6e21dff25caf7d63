from __future__ import annotations

import subprocess
from typing import Any

import jupyterlab_convect


async def test_about_tells_version_runtimes_and_what_is_installed(api: Any) -> None:
    status, about = await api("GET", "about")
    assert status == 200
    assert about["version"] == jupyterlab_convect.__version__
    local = next(runtime for runtime in about["runtimes"] if runtime["name"] == "local")
    assert local["problem"] is None
    assert about["installed"]["papermill"]
    shown = subprocess.run([about["command"], "--version"], capture_output=True, text=True)
    assert about["version"] in shown.stdout


async def test_the_openapi_document_is_served(api: Any) -> None:
    status, document = await api("GET", "openapi")
    assert status == 200
    assert document["openapi"] == "3.0.3"
    assert "/runs" in document["paths"]


async def test_about_tells_what_does_not_work_now(api: Any, server: Any) -> None:
    health = server.web_app.settings["jupyterlab_convect"].workspace.health
    assert (await api("GET", "about"))[1]["health"] == []
    health.failed("Counting sheep", OSError(28, "No space left on device"))
    health.failed("Counting sheep", OSError(28, "No space left on device"))
    (trouble,) = (await api("GET", "about"))[1]["health"]
    assert (trouble["name"], trouble["tries"]) == ("Counting sheep", 2)
    assert trouble["sentence"] == "No space is left on the disk."
    health.recovered("Counting sheep")
    assert (await api("GET", "about"))[1]["health"] == []
