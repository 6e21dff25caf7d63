"""The cluster's own authority and what it signs, made with openssl."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Identity:
    name: str
    subject: str
    hosts: str = ""


def identities(node: str, address: str, service_address: str) -> tuple[Identity, ...]:
    names = ",".join(
        f"DNS:kubernetes{suffix}"
        for suffix in ("", ".default", ".default.svc", ".default.svc.cluster.local")
    )
    return (
        Identity(
            "apiserver",
            "/CN=kube-apiserver",
            f"{names},DNS:localhost,IP:127.0.0.1,IP:{service_address},IP:{address}",
        ),
        Identity("admin", "/O=system:masters/CN=admin"),
        Identity("controller-manager", "/CN=system:kube-controller-manager"),
        Identity("scheduler", "/CN=system:kube-scheduler"),
        Identity("proxy", "/CN=system:kube-proxy"),
        Identity("kubelet", f"/O=system:nodes/CN=system:node:{node}", f"DNS:{node},IP:{address}"),
    )


def make(folder: Path, server: str, wanted: tuple[Identity, ...]) -> None:
    """Keys, certificates and a kubeconfig for each identity; nothing when they are there."""
    if (folder / "done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    _openssl(
        folder,
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 365",
        "-subj",
        "/CN=testbed",
    )
    _openssl(folder, "genrsa -out sa.key 2048")
    _openssl(folder, "rsa -in sa.key -pubout -out sa.pub")
    for identity in wanted:
        sign(folder, identity)
        _kubeconfig(folder, identity.name, server)
    (folder / "done").touch()


def sign(folder: Path, identity: Identity) -> None:
    """A key and a certificate of our authority, in the folder where it is."""
    name = identity.name
    lines = ["extendedKeyUsage=clientAuth,serverAuth"]
    if identity.hosts:
        lines.append(f"subjectAltName={identity.hosts}")
    (folder / f"{name}.ext").write_text("\n".join(lines) + "\n")
    _openssl(
        folder,
        f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr",
        "-subj",
        identity.subject,
    )
    _openssl(
        folder,
        f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial "
        f"-days 365 -out {name}.crt -extfile {name}.ext",
    )


def _kubeconfig(folder: Path, name: str, server: str) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "testbed",
                "cluster": {"server": server, "certificate-authority": str(folder / "ca.crt")},
            }
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate": str(folder / f"{name}.crt"),
                    "client-key": str(folder / f"{name}.key"),
                },
            }
        ],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": name}}],
        "current-context": "testbed",
    }
    (folder / f"{name}.conf").write_text(json.dumps(config, indent=2))


def _openssl(folder: Path, words: str, *more: str) -> None:
    subprocess.run(["openssl", *words.split(), *more], cwd=folder, check=True, capture_output=True)
