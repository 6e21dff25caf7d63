"""`make test-cluster`: the tests that need a cluster, on the one of KUBECONFIG or on our own.
`make test-kfp`: those that need Kubeflow Pipelines, on our own.
`make test-training`: those that need training operators, on our own.

Usage: python run.py [--optional] [--training | --kfp] [--within SECONDS] [arguments of pytest]

`--optional`: where there can be none, say so and succeed.
`--within`: build it only as far as there is time left to test with it.
"""

from __future__ import annotations

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
BUILD_TIME, KFP_TIME, TRAINING_TIME = 1320, 1200, 1400
"""Seconds to build Kubeflow Pipelines or the training operators, and to test with each; on a busy
machine tests may take up to twice as long."""


def main(arguments: list[str]) -> int:
    optional = "--optional" in arguments
    given = [word for word in arguments if word not in ("--optional", "--kfp", "--training")]
    within = float(BUILD_TIME + max(KFP_TIME, TRAINING_TIME))
    if "--within" in given:
        at = given.index("--within")
        within = float(given[at + 1])
        del given[at : at + 2]
    if "--training" in arguments:
        return _training(given, optional, within)
    if "--kfp" in arguments:
        return _kfp(given, optional, within)
    return _cluster(given, optional)


def _kfp(given: list[str], optional: bool, within: float) -> int:
    missing = pipelines.what_is_missing() or _build(
        "Kubeflow Pipelines", "pipelines_build.py", within - KFP_TIME
    )
    if missing:
        print(f"test-kfp: {'skipped' if optional else 'impossible'}. {missing}", flush=True)
        return 0 if optional else 1
    ours = not cluster.is_up()
    began = time.monotonic()
    code = _test("kfp", given or ["tests/kfp"], timeout=2 * KFP_TIME, CONVECT_TEST_KFP="1")
    if ours:
        cluster.down()
    left = cluster.leftovers() if ours else []
    clean = f"; left behind: {', '.join(left)}" if left else "; nothing left behind" * ours
    seconds = time.monotonic() - began
    print(f"test-kfp: {_counts('kfp')} in {seconds:.0f} s{clean}", flush=True)
    return code or int(bool(left))


def _training(given: list[str], optional: bool, within: float) -> int:
    missing = cluster.what_is_missing()
    if missing is None and not training.is_built() and shutil.which("go") is None:
        missing = "The training operators are built with Go 1.26, which is not installed."
    missing = missing or _build("The training operators", "training.py", within - TRAINING_TIME)
    if missing:
        print(f"test-training: {'skipped' if optional else 'impossible'}. {missing}", flush=True)
        return 0 if optional else 1
    ours = not cluster.is_up()
    began = time.monotonic()
    variables = {"CONVECT_TEST_TRAINING": "1", "CONVECT_TEST_CLUSTER": "1"}
    code = _test("training", given or ["tests/training"], timeout=1.5 * TRAINING_TIME, **variables)
    if ours:
        cluster.down()
    left = cluster.leftovers() if ours else []
    clean = f"; left behind: {', '.join(left)}" if left else "; nothing left behind" * ours
    seconds = time.monotonic() - began
    print(f"test-training: {_counts('training')} in {seconds:.0f} s{clean}", flush=True)
    return code or int(bool(left))


def _build(what: str, programs: str, within: float) -> str | None:
    """Why it could not be built within so many seconds, if it could not."""
    seconds = min(within, BUILD_TIME)
    if seconds < 1:
        return "There is no time left for it."
    command = [sys.executable, str(Path(__file__).with_name(programs))]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"{what} could not be built in {seconds / 60:.0f} minutes."
    return f"{what} cannot be built here: see above." if done.returncode else None


def _cluster(given: list[str], optional: bool) -> int:
    foreign = bool(os.environ.get("KUBECONFIG"))
    missing = None if foreign else cluster.what_is_missing()
    if missing:
        print(f"test-cluster: {'skipped' if optional else 'impossible'}. {missing}", flush=True)
        return 0 if optional else 1
    if not foreign and shutil.which("go"):
        kueue.build_program()
        s3.build_program()
    ours = not foreign and not cluster.is_up()
    began = time.monotonic()
    code = _test("cluster", given or ["tests/cluster"], CONVECT_TEST_CLUSTER="1")
    if ours:
        cluster.down()
    left = cluster.leftovers() if ours else []
    seconds = time.monotonic() - began
    clean = f"; left behind: {', '.join(left)}" if left else "; nothing left behind" * ours
    print(f"test-cluster: {_counts('cluster')} in {seconds:.0f} s{clean}", flush=True)
    return code or int(bool(left))


def _test(name: str, tests: list[str], timeout: float | None = None, **variables: str) -> int:
    report = RESULTS / f"{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    environment = {**os.environ, **variables}
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
