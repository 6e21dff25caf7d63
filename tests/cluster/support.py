"""The cluster of the tests: what an administrator does there, and accounts with fewer rights."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from waiting import eventually

from jupyterlab_convect.catalog.expand import expand
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.runs.model import Request, Run, new_id
from jupyterlab_convect.runtimes.kubernetes import KubernetesRuntime
from jupyterlab_convect.runtimes.kubernetes.api import Api

PROJECT = Path(__file__).parent.parent.parent
USER = 1000
"""Whom the pods run as."""
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass
class Bed:
    """The cluster, as an administrator sees it, and a namespace for these tests."""

    kubeconfig: Path
    admin: Api
    namespace: str
    image: str
    bare: str | None
    """Without papermill."""
    tools: str | None
    """Without Python."""
    example: str | None
    """With all that the example needs."""
    claim: str | None
    shared: Path | None
    """The folder of the claim on this machine."""
    folder: Path
    """For kubeconfigs of others."""
    testbed: ModuleType | None = None
    accounts: dict[str, Path] = field(default_factory=dict)
    volumes: list[str] = field(default_factory=list)

    def create(self, kind: str, name: str, **content: Any) -> Any:
        group = {"Job": "/apis/batch/v1", "Role": RBAC, "RoleBinding": RBAC}.get(kind, "/api/v1")
        manifest = {"kind": kind, "metadata": {"name": name}, **content}
        version = group.removeprefix("/apis/").removeprefix("/api/")
        path = f"{group}/namespaces/{self.namespace}/{kind.lower()}s"
        return self.admin.create(path, {"apiVersion": version, **manifest})

    def pods(self, run: str = "") -> list[Any]:
        selector = f"jupyterlab-convect.dev/run={run}" if run else None
        return self.admin.list(self.admin.path("pods"), labelSelector=selector)

    def account(self, name: str, *, capacity: bool = False) -> Path:
        """The kubeconfig of an account with exactly the Role of `deploy/`."""
        if name not in self.accounts:
            self.create("ServiceAccount", name)
            subject = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role"}
            self.create(
                "RoleBinding",
                name,
                roleRef={**reference, "name": "jupyterlab-convect"},
                subjects=[subject],
            )
            if capacity:
                self._bind_everywhere(name, subject)
            self.accounts[name] = self._kubeconfig(name)
        return self.accounts[name]

    def make_claim(self, name: str, source: Any, modes: list[str]) -> None:
        """A claim of this name, with a volume of its own."""
        volume = f"{self.namespace}-{name}"
        size = {"storage": "1Gi"}
        common = {"accessModes": modes, "storageClassName": ""}
        manifest = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {**common, "capacity": size, **source},
        }
        self.admin.create("/api/v1/persistentvolumes", manifest)
        self.volumes.append(volume)
        self.create(
            "PersistentVolumeClaim",
            name,
            spec={**common, "resources": {"requests": size}, "volumeName": volume},
        )

    def _bind_everywhere(self, name: str, subject: Any) -> None:
        role = yaml.safe_load((PROJECT / "deploy" / "cluster-role.yaml").read_text())
        role["metadata"]["name"] += f"-{self.namespace}"
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{self.namespace}-{name}"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role["metadata"]["name"],
            },
            "subjects": [subject],
        }
        self.admin.create(f"{RBAC}/clusterroles", role)
        self.admin.create(f"{RBAC}/clusterrolebindings", binding)

    def _kubeconfig(self, name: str) -> Path:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200},
        }
        place = self.admin.path("serviceaccounts", name)
        token = self.admin.create(f"{place}/token", request)["status"]["token"]
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"] = [{"name": name, "user": {"token": token}}]
        for item in config["contexts"]:
            item["context"].update(user=name, namespace=self.namespace)
        path = self.folder / f"{name}.conf"
        path.write_text(json.dumps(config))
        return path

    def runtime(self, account: str = "convect", **traits: Any) -> KubernetesRuntime:
        """A runtime with the rights of `deploy/role.yaml` and no others."""
        if self.claim and "volumes" not in traits:
            entry = {"path": str(self.shared), "claim": self.claim, "sub_path": self.namespace}
            traits["volumes"] = [entry]
        given = {"image": self.image, "patience": 2, "grace": 5, **traits}
        config_file = given.pop("config_file", None) or self.account(
            account, capacity=account == "viewer"
        )
        return KubernetesRuntime(config_file=str(config_file), **given)

    def close(self) -> None:
        for kind in ("clusterrolebindings", "clusterroles"):
            for item in self.admin.list(f"{RBAC}/{kind}"):
                if self.namespace in item["metadata"]["name"]:
                    self.admin.delete(f"{RBAC}/{kind}/{item['metadata']['name']}")
        self.admin.delete(f"/api/v1/namespaces/{self.namespace}")
        for volume in self.volumes:
            self.admin.delete(f"/api/v1/persistentvolumes/{volume}")


def container_of(bed: Bed, *command: str, **asked: str) -> dict[str, Any]:
    """One of somebody else that the rules of the namespace allow, for a pod made by hand."""
    amounts = {name.replace("gpu", "nvidia.com/gpu"): amount for name, amount in asked.items()}
    return {
        "name": "c",
        "image": bed.image,
        **({"command": list(command)} if command else {}),
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


async def start_document(lab: Any, document: Any) -> Run:
    plan = expand(resolve(document, root=lab.root))
    name = lab.runtime.name
    run = Run(
        new_id(), plan.name, time.time(), name, plan, Request(root=str(lab.root), runtime=name)
    )
    lab.hand_over()
    await lab.engine.submit(run)
    return run


async def end_while_nobody_listens(lab: Any, bed: Bed) -> Any:
    """A run of a script that leaves x.txt, and ends while there is no server; one is open now."""
    lab.write("a.py", "import time; time.sleep(1); open('x.txt', 'w').write('1')")
    run = await lab.start({"a": {"kind": "script", "path": "a.py", "outputs": ["x.txt"]}})

    def handle() -> Any:
        attempts = lab.store.read(run.id).state.steps["a"].attempts
        return attempts and attempts[0].handle

    await eventually(handle)
    await lab.close()
    await eventually(lambda: bed.pods(run.id)[0]["status"]["phase"] == "Succeeded")
    lab.open()
    return run
