"""The queues of Kueue on the test bed: its definitions and its controller, built once."""

from __future__ import annotations

import json
from pathlib import Path

import build
import certificates
import cluster
from places import KUBECONFIG, PKI, STATE

VERSION = "0.19.0"
PROGRAM = f"kueue-{VERSION}"
FIXED = Path("/etc/kueue/metrics/certs")
"""Where it looks for a certificate, whatever it is told."""
MODULE = f"sigs.k8s.io/kueue@v{VERSION}"


def up(*frameworks: str) -> None:
    """Start it on the cluster that is up. Only Jobs with a queue's label are its business, and
    what else is named."""
    program = build_program()
    cluster.apply(_definitions())
    place = STATE / "kueue"
    certificates.sign(PKI, certificates.Identity("kueue", "/CN=kueue", "IP:127.0.0.1"))
    for folder in (place, FIXED):
        folder.mkdir(parents=True, exist_ok=True)
        for kind in ("crt", "key"):
            (folder / f"tls.{kind}").write_bytes((PKI / f"kueue.{kind}").read_bytes())
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": "127.0.0.1:18081"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": 19443, "certDir": str(place)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["batch/job", *frameworks]},
    }
    path = place / "configuration.yaml"
    path.write_text(json.dumps(configuration))
    cluster.start(
        "kueue",
        [str(program), f"--config={path}", "--feature-gates=VisibilityOnDemand=false"],
        KUBECONFIG=str(KUBECONFIG),
    )


def down() -> None:
    cluster.kill("kueue")


def _definitions() -> Path:
    return build.folder_of_module(MODULE) / "config" / "components" / "crd" / "bases"


def build_program() -> Path:
    """The controller, built now if it is not there yet."""
    return build.build_of_module(build.cache_folder() / PROGRAM, MODULE, "./cmd/kueue")
