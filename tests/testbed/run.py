"""`make test-cluster`: the tests that need a cluster, on the one of KUBECONFIG or on our own.

Usage: python run.py [--optional] [arguments of pytest]

`--optional`: where there can be no cluster, say so and succeed.
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

PROJECT = Path(__file__).resolve().parents[2]
REPORT = PROJECT / ".make" / "results" / "cluster.xml"


def main(arguments: list[str]) -> int:
    optional = "--optional" in arguments
    given = [word for word in arguments if word != "--optional"]
    foreign = bool(os.environ.get("KUBECONFIG"))
    missing = None if foreign else cluster.what_is_missing()
    if missing:
        print(f"test-cluster: {'skipped' if optional else 'impossible'}. {missing}", flush=True)
        return 0 if optional else 1
    if not foreign and shutil.which("go"):
        kueue.build_program()
    ours = not foreign and not cluster.is_up()
    began = time.monotonic()
    code = _test(given)
    if ours:
        cluster.down()
    left = cluster.leftovers() if ours else []
    seconds = time.monotonic() - began
    clean = f"; left behind: {', '.join(left)}" if left else "; nothing left behind" * ours
    print(f"test-cluster: {_counts()} in {seconds:.0f} s{clean}", flush=True)
    return code or int(bool(left))


def _test(given: list[str]) -> int:
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.unlink(missing_ok=True)
    environment = {**os.environ, "CONVECT_TEST_CLUSTER": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        f"--junitxml={REPORT}",
        *(given or ["tests/cluster"]),
    ]
    return subprocess.run(command, cwd=PROJECT, env=environment, check=False).returncode


def _counts() -> str:
    if not REPORT.exists():
        return "no result"
    suite = next(ET.parse(REPORT).getroot().iter("testsuite"))
    tests, failures, errors, skipped = (
        int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
    )
    bad = failures + errors
    parts = [f"{max(tests - bad - skipped, 0)} passed", f"{bad} failed" * bool(bad)]
    return ", ".join(filter(None, [*parts, f"{skipped} skipped" * bool(skipped)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
