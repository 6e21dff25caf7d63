"""What a step may do in its pod, and what we may do in the cluster."""

from __future__ import annotations

import json
from typing import Any

import yaml
from support import PROJECT, USER

LOOK = """
import json, os, pathlib
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(json.dumps({
    "user": os.getuid(),
    "privileges": status["CapEff"].strip(),
    "no_new": status["NoNewPrivs"].strip(),
    "token": os.path.exists("/var/run/secrets/kubernetes.io"),
    "links": [name for name in os.environ if name.endswith("_SERVICE_HOST")],
}))
"""


async def look(lab: Any, **settings: Any) -> Any:
    lab.write("a.py", LOOK)
    run, _ = await lab.succeed("a.py", settings=settings)
    return json.loads((lab.result(run, "a") / "log.txt").read_text())


async def test_a_step_has_no_rights(lab: Any) -> None:
    """In a namespace that enforces the restricted standard, too: see the fixture."""
    assert await look(lab) == {
        "user": USER,
        "privileges": "0000000000000000",
        "no_new": "1",
        "token": False,
        "links": ["KUBERNETES_SERVICE_HOST"],
    }


async def test_a_service_account_comes_with_its_token(lab: Any, bed: Any) -> None:
    bed.create("ServiceAccount", "trainer")
    assert (await look(lab, kubernetes={"service_account": "trainer"}))["token"] is True


async def test_everything_of_the_document_is_in_the_pod(make_lab: Any, bed: Any) -> None:
    lab = make_lab("viewer")
    settings = {
        "resources": {
            "cpu": "100m",
            "memory": {"request": "64Mi", "limit": "256Mi"},
            "shared_memory": "32Mi",
            "gpu": {"count": 1, "type": "A100", "resource": "nvidia.com/gpu"},
        },
        "volumes": [{"claim": bed.claim, "path": "/data", "read_only": True}],
        "env": {"A": "b c"},
        "kubernetes": {"labels": {"team": "a"}, "annotations": {"note": "数"}},
    }
    text = (
        "import os; print(os.environ['A'], os.statvfs('/dev/shm').f_blocks, os.access('/data', 2))"
    )
    lab.write("a.py", text)
    run, _ = await lab.succeed("a.py", settings=settings)
    said, blocks, writable = (lab.result(run, "a") / "log.txt").read_text().rsplit(" ", 2)
    assert (said, writable.strip()) == ("b c", "False")
    assert int(blocks) * 4096 == 32 << 20
    (pod,) = bed.pods(run.id)
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"memory": "256Mi", "nvidia.com/gpu": "1"}
    assert pod["metadata"]["labels"]["team"] == "a"
    assert pod["metadata"]["annotations"]["note"] == "数"
    record = json.loads((lab.result(run, "a") / "cluster.json").read_text())
    assert record["pod"] == pod["metadata"]["name"]
    assert "sha256:" in record["image"]
    assert {"Scheduled", "Started"} <= {event["reason"] for event in record["events"]}


def test_the_role_asks_for_nothing_that_reads_secrets_or_touches_pods() -> None:
    role = yaml.safe_load((PROJECT / "deploy" / "role.yaml").read_text())
    verbs = {name: set(rule["verbs"]) for rule in role["rules"] for name in rule["resources"]}
    assert verbs["secrets"] == {"create"}
    assert not verbs["pods"] & {"create", "update", "patch", "delete"}
    assert not any("*" in item for item in (*verbs, *verbs.values()))
