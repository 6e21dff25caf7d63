"""`make test-cluster`: the tests that need a cluster, on the one of KUBECONFIG or on our own.
`make test-kfp`: those that need Kubeflow Pipelines, on our own.
`make test-training`: those that need training operators, on our own.

Usage: python run.py [--optional] [--training | --kfp] [--within SECONDS] [arguments of pytest]

`--optional`: where there can be none, say so and succeed.
`--within`: build it only as far as there is time left to test with it, and skip the tests that
there is no time for.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import cluster
import kueue
import pipelines
import s3
import training

PROJECT = Path(__file__).resolve().parents[2]
RESULTS = PROJECT / ".make" / "results"
BUILD_TIME, TEST_TIME = 1320, 300
"""Seconds to build Kubeflow Pipelines or the training operators, and to test with them at least."""
LAST_TEST = 900
"""Seconds that the test may take which is begun last."""


def main(arguments: list[str]) -> int:
    optional = "--optional" in arguments
    given = [word for word in arguments if word not in ("--optional", "--kfp", "--training")]
    within: float | None = None
    if "--within" in given:
        at = given.index("--within")
        within = float(given[at + 1])
        del given[at : at + 2]
    if "--training" in arguments:
        return _training(given, optional, within)
    if "--kfp" in arguments:
        return _kfp(given, optional, within)
    return _cluster(given, optional)


def _kfp(given: list[str], optional: bool, within: float | None) -> int:
    until = _until(within)
    missing = pipelines.what_is_missing() or _build(
        "Kubeflow Pipelines", "pipelines_build.py", until
    )
    if missing:
        return _do_without("kfp", missing, optional)
    return _run("kfp", given, until, CONVECT_TEST_KFP="1")


def _training(given: list[str], optional: bool, within: float | None) -> int:
    until = _until(within)
    missing = cluster.what_is_missing()
    if missing is None and not training.is_built() and shutil.which("go") is None:
        missing = "The training operators are built with Go 1.26, which is not installed."
    missing = missing or _build("The training operators", "training.py", until)
    if missing:
        return _do_without("training", missing, optional)
    return _run("training", given, until, CONVECT_TEST_TRAINING="1", CONVECT_TEST_CLUSTER="1")


def _cluster(given: list[str], optional: bool) -> int:
    foreign = bool(os.environ.get("KUBECONFIG"))
    missing = None if foreign else cluster.what_is_missing()
    if missing:
        return _do_without("cluster", missing, optional)
    if not foreign and shutil.which("go"):
        kueue.build_program()
        s3.build_program()
    return _run("cluster", given, foreign=foreign, CONVECT_TEST_CLUSTER="1")


def _do_without(name: str, missing: str, optional: bool) -> int:
    print(f"test-{name}: {'skipped' if optional else 'impossible'}. {missing}", flush=True)
    return 0 if optional else 1


def _run(
    name: str, given: list[str], until: float = math.inf, *, foreign: bool = False, **variables: str
) -> int:
    """Test, take down the cluster if it was started for that, and say what is left of it."""
    ours = not foreign and not cluster.is_up()
    began = time.monotonic()
    code = _test(name, given or [f"tests/{name}"], until, **variables)
    if ours:
        cluster.down()
    left = cluster.leftovers() if ours else []
    clean = f"; left behind: {', '.join(left)}" if left else "; nothing left behind" * ours
    seconds = time.monotonic() - began
    print(f"test-{name}: {_counts(name)} in {seconds:.0f} s{clean}", flush=True)
    return code or int(bool(left))


def _until(within: float | None) -> float:
    """The time by which tests have to begin."""
    return time.time() + within if within is not None else math.inf


def _build(what: str, programs: str, until: float) -> str | None:
    """Why it could not be built in time for its tests, if it could not."""
    seconds = min(until - TEST_TIME - time.time(), BUILD_TIME)
    if seconds < 1:
        return "There is no time left for it."
    command = [sys.executable, str(Path(__file__).with_name(programs))]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"{what} could not be built in {seconds / 60:.0f} minutes."
    return f"{what} cannot be built here: see above." if done.returncode else None


def _test(name: str, tests: list[str], until: float = math.inf, **variables: str) -> int:
    report = RESULTS / f"{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    environment = {**os.environ, **variables, "CONVECT_TEST_UNTIL": str(until)}
    timeout = until - time.time() + LAST_TEST if until < math.inf else None
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *tests]
    try:
        done = subprocess.run(command, cwd=PROJECT, env=environment, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        print(f"test-{name}: not done after {error.timeout:.0f} s", flush=True)
        return 1
    return done.returncode


def _counts(name: str) -> str:
    report = RESULTS / f"{name}.xml"
    if not report.exists():
        return "no result"
    suite = next(ET.parse(report).getroot().iter("testsuite"))
    tests, failures, errors, skipped = (
        int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
    )
    bad = failures + errors
    parts = [f"{max(tests - bad - skipped, 0)} passed", f"{bad} failed" * bool(bad)]
    return ", ".join(filter(None, [*parts, f"{skipped} skipped" * bool(skipped)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
