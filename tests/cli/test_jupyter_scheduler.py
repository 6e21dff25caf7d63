"""Definitions that the real jupyter-scheduler made, in the database that it wrote them to.

It is installed once into the user's cache, beside this environment: as a part of it, its
extensions of the server and of JupyterLab would be loaded in every other test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Convect = Callable[..., tuple[int, str, str]]

PACKAGES = ("jupyter-scheduler==2.12.1", "sqlalchemy", "croniter", "pytz", "fsspec")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jupyterlab-convect"

MAKE = """
import json, sys
from jupyter_scheduler.environments import StaticEnvironmentManager
from jupyter_scheduler.models import CreateJobDefinition, UpdateJobDefinition
from jupyter_scheduler.orm import create_tables
from jupyter_scheduler.scheduler import Scheduler

class WithoutClock(Scheduler):
    task_runner_class = None

root, database, definitions = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
create_tables(database)
scheduler = WithoutClock(
    root_dir=root, environments_manager=StaticEnvironmentManager(), db_url=database
)
for each in definitions:
    active = each.pop("active", True)
    common = {"runtime_environment_name": "python3", "runtime_environment_parameters": {}}
    model = CreateJobDefinition(output_formats=["ipynb"], **common, **each)
    made = scheduler.create_job_definition(model)
    if not active:
        scheduler.update_job_definition(made, UpdateJobDefinition(active=False))
"""


@pytest.fixture(scope="module")
def packages() -> Path:
    """The folder that jupyter-scheduler can be imported from."""
    folder = CACHE / "tests" / PACKAGES[0]
    done = folder / ".done"
    if not done.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade"]
        words = [*pip, "--disable-pip-version-check", "--target", str(folder), *PACKAGES]
        installed = subprocess.run(words, capture_output=True, text=True, check=False)
        if installed.returncode:
            pytest.skip(f"jupyter-scheduler does not install here: {installed.stderr[-300:]}")
        done.touch()
    return folder


@pytest.mark.slow
def test_definitions_that_it_made_are_taken_over(
    work: Path, packages: Path, convect: Convect, write_notebook: Callable[..., Path]
):
    write_notebook(work / "train.ipynb", ("parameters", "day = ''\nn = 1"), "print(day, n)")
    (work / "报告").mkdir()
    write_notebook(work / "报告" / "weekly.ipynb", "1")
    definitions = [
        {
            "name": "nightly",
            "input_uri": "train.ipynb",
            "schedule": "30 2 * * *",
            "timezone": "Europe/Berlin",
            "parameters": {"n": "3", "day": "7"},
            "tags": ["team"],
        },
        {
            "name": "每周",
            "input_uri": "报告/weekly.ipynb",
            "schedule": "0 9 * * 1",
            "active": False,
            "package_input_folder": True,
        },
        {"name": "once", "input_uri": "train.ipynb"},
    ]
    database = work / "scheduler.sqlite"
    environment = {
        **os.environ,
        "PYTHONPATH": str(packages),
        "JUPYTER_DATA_DIR": str(work.parent / "data"),
    }
    words = [sys.executable, "-c", MAKE, str(work), f"sqlite:///{database}"]
    subprocess.run([*words, json.dumps(definitions)], env=environment, check=True)
    before = database.read_bytes()

    code, out, _ = convect("schedule", "import", str(database), "--json")
    assert code == 0
    assert [each["reason"] for each in json.loads(out)["definitions"]] == [None, None]
    assert database.read_bytes() == before
    listed = json.loads(convect("schedule", "list", "--json")[1])["schedules"]
    nightly, weekly = sorted(listed, key=lambda each: each["name"])
    assert (nightly["name"], nightly["path"]) == ("nightly", "train.ipynb")
    assert (nightly["clock"]["cron"], nightly["clock"]["zone"]) == ("30 2 * * *", "Europe/Berlin")
    assert nightly["paused"] is None
    shown = json.loads(convect("schedule", "show", "nightly", "--json")[1])
    # It knows texts alone; what they become is what the notebook declares.
    assert shown["request"]["parameters"] == {"n": 3, "day": "7"}
    assert (weekly["name"], weekly["path"]) == ("每周", "报告/weekly.ipynb")
    assert weekly["paused"] is not None
    assert convect("schedule", "import", str(database))[1].count("It was imported before.") == 2
