"""A cluster of nodes and pods that only its API server knows: KWOK, for how large one can be.

There is no kubelet and no scheduler: KWOK says of every node that it is ready, and of every
pod that it runs on the node it names. All of it is on loopback, in one folder, and gone
with the block that wanted it; it shares nothing with the cluster of `cluster.py`.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import build
import certificates
import pipelines_build
from s3 import free_port

VERSION = "0.8.0"
MODULE = f"sigs.k8s.io/kwok@v{VERSION}"
STAGES = ("node/fast/node-initialize", "pod/fast/pod-ready", "pod/fast/pod-delete")
"""What becomes of nodes and pods, by KWOK's own files; pods of Jobs do not end by themselves."""
PATIENCE = 120.0


def build_program() -> Path:
    return build.build_of_module(build.cache_folder() / f"kwok-{VERSION}", MODULE, "./cmd/kwok")


def what_is_missing() -> str | None:
    """Why there can be none on this machine, in a sentence."""
    if not build.is_built() or etcd() is None:
        return "`make cluster-up` has not been run here."
    if shutil.which("openssl") is None:
        return "The certificates of a cluster are made with openssl, which is not installed."
    return None


def etcd() -> str | None:
    built = pipelines_build.folder() / "etcd"
    return str(built) if built.exists() else shutil.which("etcd")


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Path]:
    """An API server without nodes, until the block is left; its administrator's kubeconfig."""
    program = build_program()
    store, peers, port = (free_port("127.0.0.1") for _ in range(3))
    pki = folder / "pki"
    wanted = certificates.identities("none", "127.0.0.1", "10.97.0.1")
    certificates.make(pki, f"https://127.0.0.1:{port}", wanted)
    kubeconfig = pki / "admin.conf"
    stages = folder / "stages.yaml"
    source = build.folder_of_module(MODULE) / "kustomize" / "stage"
    texts = [(source / f"{each}.yaml").read_text() for each in STAGES]
    stages.write_text("\n---\n".join(texts))
    address, peer = f"http://127.0.0.1:{store}", f"http://127.0.0.1:{peers}"
    with contextlib.ExitStack() as stack:

        def start(name: str, *command: str) -> subprocess.Popen[bytes]:
            return stack.enter_context(_process(folder / f"{name}.log", command))

        start(
            "etcd", etcd() or "etcd", f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync",
            f"--listen-client-urls={address}", f"--advertise-client-urls={address}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )  # fmt: skip
        server = start(
            "apiserver", str(build.cache_folder() / "kube-apiserver"), f"--etcd-servers={address}",
            "--bind-address=127.0.0.1", f"--secure-port={port}",
            "--service-cluster-ip-range=10.97.0.0/16", "--authorization-mode=RBAC",
            # Nobody is here who makes accounts for pods, nor who takes taints away again.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--service-account-key-file={pki / 'sa.pub'}",
            f"--service-account-signing-key-file={pki / 'sa.key'}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            # Thousands are made at once.
            "--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
        )  # fmt: skip
        _wait(server, kubeconfig, folder / "apiserver.log")
        start(
            "kwok", str(program), f"--kubeconfig={kubeconfig}", f"--config={stages}",
            "--manage-all-nodes=true", "--node-lease-duration-seconds=0",
            "--server-address=127.0.0.1:0",
        )  # fmt: skip
        yield kubeconfig


@contextlib.contextmanager
def _process(log: Path, command: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(server: subprocess.Popen[bytes], kubeconfig: Path, log: Path) -> None:
    kubectl = [str(build.cache_folder() / "kubectl"), f"--kubeconfig={kubeconfig}"]
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        done = subprocess.run([*kubectl, "get", "--raw", "/readyz"], capture_output=True)
        if done.stdout == b"ok":
            return
        time.sleep(0.2)
    raise SystemExit(f"The API server did not start: {log.read_text()[-2000:]}")


def node(name: str, gpus: int, kind: str) -> dict[str, object]:
    """One that KWOK keeps ready, with so many GPUs of a type."""
    have = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    have |= {"nvidia.com/gpu": str(gpus)} if gpus else {}
    labels = {"kubernetes.io/hostname": name, "type": "kwok"}
    labels |= {"nvidia.com/gpu.product": kind} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": have, "capacity": have},
    }


if __name__ == "__main__":
    print(build_program())
