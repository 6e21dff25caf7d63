"""Runs every suite, prints what failed, and ends with one table, one line of counts, and the
names of the tests that failed."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import setup

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / ".make" / "results"
FAILURES = RESULTS / "failures.txt"
SHOWN_LINES = 150
WAITING = ("tests/runner", "tests/routes")
"""Tests that wait for kernels and servers, which others may compute beside."""
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""Tests start Python often, which takes twice as long where it may not keep its bytecode."""


class Counts(NamedTuple):
    passed: int
    failed: int
    skipped: int
    failures: tuple[str, ...] = ()
    """Each test that failed: its name, and the first line of why."""


@dataclass(frozen=True)
class Suite:
    name: str
    command: tuple[str, ...]
    report: str | None = None
    """The file of results that the command writes; without one the exit code is the result."""
    read: Callable[[Path], Counts] | None = None
    env: dict[str, str] = field(default_factory=dict)
    folder: Path = ROOT
    missing: str | None = None
    """Why it cannot run here, in a sentence: then it is skipped."""


class Result(NamedTuple):
    suite: Suite
    counts: Counts
    seconds: float


def slow_suites() -> list[Suite]:
    return [browser(), pytest("pytest, slow", "-m", "slow")]


def fast_suites() -> list[Suite]:
    """The longest first."""
    python = sys.executable
    results = RESULTS.relative_to(ROOT)
    return [
        pytest("pytest, runner and routes", "-m", "not slow", *WAITING),
        pytest("pytest", "-m", "not slow", *(f"--ignore={folder}" for folder in WAITING)),
        Suite(
            "jest",
            ("jlpm", "jest", "--json", f"--outputFile={results}/jest.json"),
            "jest.json",
            read_jest,
        ),
        Suite("prettier", ("jlpm", "prettier", "--check")),
        Suite("tsc", ("jlpm", "tsc", "--project", "tsconfig.test.json")),
        Suite("eslint", ("jlpm", "eslint")),
        Suite("mypy", (python, "-m", "mypy")),
        Suite("stylelint", ("jlpm", "stylelint")),
        Suite("ruff", (python, "-m", "ruff", "check")),
        Suite("ruff format", (python, "-m", "ruff", "format", "--check")),
        Suite("translations", (python, "scripts/translations.py", "check")),
        Suite("docs", (python, "scripts/docs.py")),
    ]


def pytest(name: str, *options: str) -> Suite:
    report = f"{file_name(name)}.xml"
    command = (sys.executable, "-m", "pytest", *options)
    path = RESULTS.relative_to(ROOT) / report
    return Suite(name, (*command, f"--junitxml={path}"), report, read_junit)


def browser() -> Suite:
    chromium = setup.chromium()
    return Suite(
        "browser",
        in_network_of_its_own(("jlpm", "test")),
        "browser.json",
        read_playwright,
        {
            "PLAYWRIGHT_JSON_OUTPUT_NAME": str(RESULTS / "browser.json"),
            "PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH": chromium or "",
        },
        ROOT / "ui-tests",
        missing=None if chromium else setup.how_to_install("chromium"),
    )


def in_network_of_its_own(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command with a loopback interface that is its own, where that is allowed.

    A browser drops the requests under way whenever an interface comes or goes, as when containers
    start beside it; and nobody else can take the ports that the tests have found to be free.
    """
    inside = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    try:
        is_allowed = subprocess.run((*inside, "true"), capture_output=True).returncode == 0
    except OSError:
        is_allowed = False
    return (*inside, *command) if is_allowed else command


def read_junit(path: Path) -> Counts:
    totals = [0, 0, 0]
    root = ET.parse(path).getroot()
    for suite in root.iter("testsuite"):
        tests, failures, errors, skipped = (
            int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
        )
        bad = failures + errors
        totals = [totals[0] + tests - bad - skipped, totals[1] + bad, totals[2] + skipped]
    failed = tuple(
        failure(f"{case.get('classname')}::{case.get('name')}", problem.get("message") or "")
        for case in root.iter("testcase")
        for problem in (*case.iter("failure"), *case.iter("error"))
    )
    return Counts(*totals, failures=failed)


def read_jest(path: Path) -> Counts:
    report = json.loads(path.read_text())
    return Counts(
        report["numPassedTests"],
        report["numFailedTests"] + report["numRuntimeErrorTestSuites"],
        report["numPendingTests"],
        tuple(
            failure(test["fullName"], "".join(test["failureMessages"]))
            for file in report["testResults"]
            for test in file["assertionResults"]
            if test["status"] == "failed"
        ),
    )


def read_playwright(path: Path) -> Counts:
    report = json.loads(path.read_text())
    stats = report["stats"]
    return Counts(
        stats["expected"] + stats["flaky"],
        stats["unexpected"],
        stats["skipped"],
        tuple(
            failure(
                f"{spec['file']}:{error.get('location', spec)['line']} {spec['title']}",
                error["message"],
                lines=12,
            )
            for suite in report["suites"]
            for spec in specs_of(suite)
            for test in spec["tests"]
            for result in test["results"]
            for error in result["errors"][:1]
        ),
    )


def specs_of(suite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from suite.get("specs", ())
    for inner in suite.get("suites", ()):
        yield from specs_of(inner)


def failure(name: str, message: str, lines: int = 1) -> str:
    """One line: the test, and how its message begins."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", message).strip().splitlines()[:lines]
    why = "; ".join(filter(None, (line.strip() for line in plain)))
    return f"{name}: {why[:600]}" if why else name


def run(suite: Suite) -> Result:
    if suite.missing:
        print(f"{suite.name}: skipped, {suite.missing}", flush=True)
        return Result(suite, Counts(0, 0, 1), 0)
    report = RESULTS / suite.report if suite.report else None
    if report:
        report.unlink(missing_ok=True)
    started = time.monotonic()
    # Steps of all programs with one temporary folder share the processors: here each has its own.
    with tempfile.TemporaryDirectory(prefix="cv-", ignore_cleanup_errors=True) as scratch:
        done = subprocess.run(
            suite.command,
            cwd=suite.folder,
            env={**ENVIRONMENT, "TMPDIR": scratch, **suite.env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    seconds = time.monotonic() - started
    (RESULTS / f"{file_name(suite.name)}.log").write_text(done.stdout)
    counts = Counts(int(done.returncode == 0), int(done.returncode != 0), 0)
    if report and suite.read and report.exists():
        counts = suite.read(report)
        if done.returncode != 0 and counts.failed == 0:
            counts = counts._replace(failed=1)
    show(suite, counts, seconds, done.stdout)
    return Result(suite, counts, seconds)


def show(suite: Suite, counts: Counts, seconds: float, output: str) -> None:
    verdict = "FAILED" if counts.failed else "ok"
    text = f"{suite.name}: {verdict} in {seconds:.0f} s\n"
    if counts.failed:
        lines = output.splitlines()
        if len(lines) > SHOWN_LINES:
            lines = [f"… {len(lines) - SHOWN_LINES} lines more", *lines[-SHOWN_LINES:]]
        text += "".join(f"  {line}\n" for line in lines)
    sys.stdout.write(text)
    sys.stdout.flush()


def file_name(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def table(results: list[Result]) -> str:
    rows = [("suite", "passed", "failed", "skipped", "seconds")]
    rows += [
        (result.suite.name, *map(str, result.counts[:3]), f"{result.seconds:.0f}")
        for result in results
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="leave the slow ones out")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    wanted = fast_suites() if options.fast else [*slow_suites(), *fast_suites()]
    # Those with real kernels and browsers wait more than they compute.
    with ThreadPoolExecutor(max_workers=2 if options.fast else 3) as pool:
        results = list(pool.map(run, wanted))
    passed, failed, skipped = (sum(r.counts[column] for r in results) for column in range(3))
    print(f"\n{table(results)}\n")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    failures = "".join(f"{line}\n" for line in failures_of(results))
    FAILURES.write_text(failures)
    sys.stdout.write(failures)
    return 1 if failed else 0


def failures_of(results: list[Result]) -> list[str]:
    """What failed, a line each; a suite that cannot name its tests is a line itself."""
    return [
        f"FAILED {result.suite.name}: {line}"
        for result in results
        if result.counts.failed
        for line in result.counts.failures or ["see above"]
    ]


if __name__ == "__main__":
    sys.exit(main())
