"""The test bed keeps to itself: nothing of it leaves loopback and its bridge."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from machine import packets_that_left
from places import ELSEWHERE, FIRST_SERVICE, GROUP

LOOK_UP = """
import json, socket
names = ["kubernetes.default.svc.cluster.local", "kubernetes.default", "pypi.org", "nowhere"]
found = {}
for name in names:
    try:
        found[name] = socket.gethostbyname(name)
    except socket.gaierror as error:
        found[name] = error.errno == socket.EAI_NONAME
print(json.dumps(found))
"""
SEND = f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ({ELSEWHERE!r}, 9))"


@pytest.fixture(autouse=True)
def _on_the_test_bed(bed: Any) -> None:
    if bed.testbed is None:
        pytest.skip("Not on a cluster of others.")


async def test_names_of_the_cluster_are_known_and_no_other(lab: Any) -> None:
    """No question about a name goes to a server outside: none of its packets is counted."""
    lab.write("a.py", LOOK_UP)
    run, _ = await lab.succeed("a.py")
    assert json.loads((lab.result(run, "a") / "log.txt").read_text()) == {
        "kubernetes.default.svc.cluster.local": FIRST_SERVICE,
        "kubernetes.default": FIRST_SERVICE,
        "pypi.org": True,
        "nowhere": True,
    }
    assert packets_that_left() == 0


async def test_a_pod_that_wants_to_leave_is_counted(lab: Any) -> None:
    before = packets_that_left(to_elsewhere=True)
    lab.write("a.py", SEND)
    await lab.succeed("a.py")
    assert packets_that_left(to_elsewhere=True) == before + 1


def test_a_part_of_the_cluster_that_wants_to_leave_is_counted() -> None:
    before = packets_that_left(to_elsewhere=True)
    subprocess.run([sys.executable, "-c", SEND], extra_groups=[GROUP], check=False)
    assert packets_that_left(to_elsewhere=True) == before + 1
