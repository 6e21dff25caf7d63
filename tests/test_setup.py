"""Setting up the clone and running its suites on a machine that lacks something."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("setup")


@pytest.fixture
def suites(setup: ModuleType) -> ModuleType:
    return importlib.import_module("suites")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder where programs are looked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH", raising=False)
    return folder


def add_program(folder: Path, name: str, text: str = "") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("version", "enough"),
    [
        ("v20.0.0", True),
        ("v24.19.0", True),
        ("v100.1.2", True),
        ("v18.20.4", False),
        ("v4.8.2", False),
        ("", False),
        ("Node for something else", False),
    ],
)
def test_a_node_of_the_right_version_is_used(setup: ModuleType, version: str, enough: bool) -> None:
    assert setup.is_new_enough(version) is enough


@pytest.mark.parametrize(
    ("program", "version"),
    [("echo v18.20.4", "v18.20.4"), ("echo broken >&2; exit 127", ""), (None, "")],
)
def test_the_version_of_node_is_what_it_says(
    setup: ModuleType, programs: Path, program: str | None, version: str
) -> None:
    if program:
        add_program(programs, "node", program)
    assert setup.node_version() == version


def test_without_chromium_the_browser_tests_are_skipped_with_the_command_that_installs_it(
    suites: ModuleType, programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_program(programs, "apt-get")
    result = suites.run(suites.browser())
    assert result.counts == suites.Counts(passed=0, failed=0, skipped=1)
    said = capsys.readouterr().out
    assert said.startswith("browser: skipped, ")
    assert "apt-get install chromium" in said


def test_where_there_is_no_apt_get_no_such_command_is_told(
    setup: ModuleType, programs: Path
) -> None:
    assert "apt-get" not in setup.how_to_install("chromium")


def test_the_browser_tests_use_the_chromium_of_the_path(suites: ModuleType, programs: Path) -> None:
    add_program(programs, "chromium")
    suite = suites.browser()
    assert suite.missing is None
    found = suite.env["PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH"]
    assert found == os.fspath(programs / "chromium")


def test_a_browser_that_cannot_be_installed_stops_nothing_and_is_looked_for_again(
    setup: ModuleType, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not setup.can_install()
    assert setup.set_up_browser() is False


def test_every_test_that_failed_is_named_at_the_end(suites: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "pytest.xml").write_text(
        '<testsuites><testsuite tests="3" failures="1" errors="0" skipped="1">'
        '<testcase classname="tests.a" name="good"/>'
        '<testcase classname="tests.a" name="bad"><failure message="1 != 2&#10;more"/></testcase>'
        "</testsuite></testsuites>"
    )
    spec = {"file": "a.spec.ts", "line": 3, "title": "a journey"}
    error = {"message": "\x1b[31mno\x1b[39m\n\nwaiting for b", "location": {"line": 7}}
    failed = {**spec, "tests": [{"results": [{"errors": [error]}]}]}
    passed = {**spec, "tests": [{"results": [{"errors": []}]}]}
    nested = {"specs": [passed], "suites": [{"specs": [failed]}]}
    stats = {"expected": 1, "flaky": 0, "unexpected": 1, "skipped": 0}
    (tmp_path / "browser.json").write_text(json.dumps({"stats": stats, "suites": [nested]}))
    results = [
        suites.Result(suites.Suite("units", ()), suites.read_junit(tmp_path / "pytest.xml"), 1),
        suites.Result(suites.browser(), suites.read_playwright(tmp_path / "browser.json"), 1),
        suites.Result(suites.Suite("ruff", ()), suites.Counts(0, 1, 0), 1),
        suites.Result(suites.Suite("mypy", ()), suites.Counts(1, 0, 0), 1),
    ]
    assert suites.failures_of(results) == [
        "FAILED units: tests.a::bad: 1 != 2",
        "FAILED browser: a.spec.ts:7 a journey: no; waiting for b",
        "FAILED ruff: see above",
    ]
