"""What a run was executed with, from its record to what is told before the next one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_server.serverapp import ServerApp
from waiting import eventually

Write = Callable[..., Path]


async def recorded(api: Any, path: str, **request: Any) -> tuple[Any, Any]:
    """Run it; the run and its environment, which is written down after the end."""
    _, run = await api("POST", "runs", {"path": path, **request})
    await api.ended(run["id"])

    async def look() -> Any:
        _, seen = await api("GET", f"runs/{run['id']}")
        assert seen["state"] == "succeeded", seen["reason"]
        return seen if seen["environments"] else None

    seen = await eventually(look, "its environment was recorded")
    return seen, (await api("GET", f"runs/{run['id']}/environment"))[1]


async def drift(api: Any, path: str, **request: Any) -> list[tuple[str, str, str | None]]:
    """What is told of differing environments before a run."""
    status, answer = await api("POST", "runtimes/local/check", {"path": path, **request})
    assert status == 200
    return [
        (problem["severity"], problem["message"], problem.get("hint"))
        for problem in answer["problems"]
        if problem["code"].startswith("differs-from-")
    ]


async def test_an_installed_package_shows_between_two_runs_and_before_the_next(
    api: Any, jp_root_dir: Path, write_notebook: Write, other_python: Any
) -> None:
    other_python.install("frames", "2.1.0")
    write_notebook(jp_root_dir / "n.ipynb", "import frames", kernel="other")
    assert await drift(api, "n.ipynb") == []
    run, first = await recorded(api, "n.ipynb")
    (short,) = run["environments"]
    assert (short["steps"], short["digest"]) == (["n"], first["steps"]["n"]["digest"])
    assert short["packages"] == len(first["environments"][short["digest"]]["packages"])
    assert first["steps"]["n"]["interpreter"] == other_python.path
    assert first["git"] is None
    assert await drift(api, "n.ipynb") == []

    other_python.install("frames", "2.2.3")
    said = "frames is 2.2.3 here; the last successful run used 2.1.0."
    assert await drift(api, "n.ipynb") == [("warning", said, None)]
    other_python.install("unrelated", "1")
    told = await drift(api, "n.ipynb")
    assert told == [("warning", said, "There is 1 more difference.")]

    _, second = await recorded(api, "n.ipynb")
    was, now = (
        each["environments"][each["steps"]["n"]["digest"]]["packages"] for each in (first, second)
    )
    changed = {name for name in {*was, *now} if was.get(name) != now.get(name)}
    assert changed == {"frames", "unrelated"}
    assert await drift(api, "n.ipynb") == []

    other_python.install("more", "1")
    said = "more is 1 here; the last successful run did not have it."
    assert await drift(api, "n.ipynb") == [("info", said, None)], "the notebook does not use it"


async def test_uncommitted_changes_are_shown(
    api: Any, server: ServerApp, jp_root_dir: Path, write_notebook: Write, eventually: Any
) -> None:
    project = jp_root_dir / "project"
    write_notebook(project / "n.ipynb", "1")
    for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm first"):
        subprocess.run(["git", *words.split()], cwd=project, check=True)
    run, environment = await recorded(api, "project/n.ipynb")
    assert (run["git"]["dirty"], environment["git"]["difference"]) == (False, None)
    write_notebook(project / "n.ipynb", "2")
    workspace = server.web_app.settings["jupyterlab_convect"].workspace
    workspace.planner._commits.clear()  # What is looked up once for runs that are made together.
    run, _ = await recorded(api, "project/n.ipynb")
    assert run["git"]["dirty"]
    kept = workspace.store.folder / "environments" / f"{run['git']['difference'][7:]}.json"
    await eventually(kept.exists)
    _, environment = await api("GET", f"runs/{run['id']}/environment")
    difference = environment["git"]["difference"]
    assert '+   "source": "2"' in difference["text"]
    assert (difference["cut"], difference["untracked"]) == (False, [])
