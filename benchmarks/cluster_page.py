"""The page of a large cluster in a real browser: 1000 nodes and 20,000 pods that KWOK keeps."""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .browser import LAB, ROOT, is_installed, measure
from .measure import Result, absent, median
from .server import server

NAME = "cluster page"
NODES, PODS = 1000, 20_000
SIZE = f"{NODES:,} nodes, {PODS:,} pods"
TYPES = ("NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3", "Tesla-T4")
TEAMS, PEOPLE = 40, 200
MAKERS = 8
CHANGES = 8
"""Pods that are made while somebody looks, each with one GPU of the first node."""


def rows() -> Iterator[Result]:
    if not is_installed():
        yield absent(NAME, "the browser tests are not installed; run make test once")
        return
    sys.path.insert(0, str(ROOT / "tests" / "testbed"))
    try:
        import kwok

        if missing := kwok.what_is_missing():
            yield absent(NAME, missing)
            return
        with tempfile.TemporaryDirectory(prefix="convect-bench-") as scratch:
            folder = Path(scratch)
            place = folder / "kwok"
            place.mkdir()
            with kwok.serving(place) as kubeconfig:
                fill(kubeconfig, kwok.node)
                yield from _measure(folder, kubeconfig)
    finally:
        sys.path.remove(str(ROOT / "tests" / "testbed"))


def _measure(folder: Path, kubeconfig: Path) -> Iterator[Result]:
    with server(
        folder,
        options=LAB,
        KUBECONFIG=str(kubeconfig),
        CONVECT_RUNS_DIR=f"{folder}/runs",
        CONVECT_INDEX_DIR=f"{folder}/index",
        JUPYTER_CONFIG_DIR=f"{folder}/config",
    ) as running:
        changes = [pod(f"change-{each}", 0, gpus=1) for each in range(CHANGES)]
        access = _access(kubeconfig)
        asked = {"api": access, "changes": changes, "node": name_of(0)}
        found = measure(running.port, ["cluster"], cluster=asked)["cluster"]
    yield Result(
        f"cluster page opens, {SIZE}", median(found["opened"]), "s",
        budget=1, ours=found["opened"], note="until nodes, holders and what is free are drawn",
    )  # fmt: skip
    yield Result(
        f"cluster page opens, {SIZE}, first look", found["first"], "s",
        budget=1, note=f"until the nodes are drawn; what is free of them after {found['read']:.1f}"
        " s, when all pods have been read",
    )  # fmt: skip
    yield Result(
        f"cluster page shows a change, {SIZE}, slowest", max(found["updated"]), "s",
        budget=2, ours=found["updated"], note="from the pod that the API server has accepted",
    )  # fmt: skip


def name_of(number: int) -> str:
    return f"node-{number:04}"


def pod(name: str, place: int, gpus: int = 0) -> dict[str, Any]:
    amounts = {"cpu": "500m", "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "load", "owner": f"person-{sum(name.encode()) % PEOPLE}"},
        },
        "spec": {
            "nodeName": name_of(place),
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.org/team/image:1",
                    "command": ["python", "-m", "work"],
                    "env": [{"name": f"SETTING_{each}", "value": "x"} for each in range(8)],
                    "resources": {"requests": amounts, "limits": amounts},
                }
            ],
        },
    }


def fill(kubeconfig: Path, make_node: Any) -> None:
    """Nodes, every fourth with GPUs, and pods on them; none on the GPUs of the first node."""
    teams = [f"team-{each}" for each in range(TEAMS)]
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in teams
    ]
    _create(kubeconfig, [("/api/v1/namespaces", each) for each in spaces])
    nodes = [
        make_node(name_of(each), 0 if each % 4 else 8, TYPES[each // 4 % 3])
        for each in range(NODES)
    ]
    _create(kubeconfig, [("/api/v1/nodes", each) for each in nodes])
    pods = []
    for number in range(PODS):
        place, turn = number % NODES, number // NODES
        made = pod(f"load-{number}", place, gpus=int(place % 4 == 0 and place > 0 and turn < 5))
        team = made["metadata"]["namespace"] = teams[number % TEAMS]
        pods.append((f"/api/v1/namespaces/{team}/pods", made))
    _create(kubeconfig, pods)


def _create(kubeconfig: Path, items: list[tuple[str, Any]]) -> None:
    access = _access(kubeconfig)
    address = urlsplit(access["server"])
    trusted = ssl.create_default_context(cafile=access["ca"])
    trusted.load_cert_chain(access["cert"], access["key"])

    def make(part: list[tuple[str, Any]]) -> None:
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=trusted, timeout=120
        )
        for path, item in part:
            body = json.dumps(item)
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 201:
                raise RuntimeError(f"{path}: {answer.status} {said[:300]!r}")
        connection.close()

    with ThreadPoolExecutor(MAKERS) as makers:
        list(makers.map(make, (items[each::MAKERS] for each in range(MAKERS))))


def _access(kubeconfig: Path) -> dict[str, str]:
    """Where the API server is, and what its administrator shows it."""
    config = json.loads(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return {
        "server": cluster["server"],
        "ca": cluster["certificate-authority"],
        "cert": user["client-certificate"],
        "key": user["client-key"],
    }
