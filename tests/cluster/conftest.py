"""A real cluster: the one of KUBECONFIG, or the test bed on this machine.

`make test-cluster` runs these; without CONVECT_TEST_CLUSTER none of them is collected.
A cluster of your own needs an administrator's kubeconfig, CONVECT_TEST_IMAGE (Python,
papermill and ipykernel, a user that is not root), and for the tests with a shared volume
CONVECT_TEST_CLAIM, a claim whose folder is mounted here at CONVECT_TEST_SHARED.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from jupyterlab_convect.runtimes.kubernetes import KubernetesRuntime
from jupyterlab_convect.runtimes.kubernetes.api import Api, ApiError, connect

USER = 1000
HERE = Path(__file__).parent
PROJECT = HERE.parent.parent

if not os.environ.get("CONVECT_TEST_CLUSTER"):
    collect_ignore_glob = ["test_*.py"]

sys.path.insert(0, str(HERE.parent / "testbed"))


def load(name: str, path: Path) -> ModuleType:
    spec = util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


suite = load("conformance_lab", HERE.parent / "conformance" / "conftest.py")


@dataclass
class Bed:
    """The cluster, as an administrator sees it, and a namespace for these tests."""

    kubeconfig: Path
    admin: Api
    namespace: str
    image: str
    bare: str | None
    claim: str | None
    shared: Path | None
    """The folder of the claim on this machine."""
    folder: Path
    """For kubeconfigs of others."""
    testbed: ModuleType | None = None
    accounts: dict[str, Path] = field(default_factory=dict)

    def create(self, kind: str, name: str, **content: Any) -> Any:
        group = {"Job": "/apis/batch/v1", "Role": RBAC, "RoleBinding": RBAC}.get(kind, "/api/v1")
        manifest = {"kind": kind, "metadata": {"name": name}, **content}
        version = group.removeprefix("/apis/").removeprefix("/api/")
        path = f"{group}/namespaces/{self.namespace}/{kind.lower()}s"
        return self.admin.create(path, {"apiVersion": version, **manifest})

    def pods(self, run: str = "") -> list[Any]:
        selector = f"jupyterlab-convect.dev/run={run}" if run else None
        return self.admin.list(self.admin.place("pods"), labelSelector=selector)

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
        place = self.admin.place("serviceaccounts", name)
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
            traits["volumes"] = [{"path": str(self.shared), "claim": self.claim}]
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
        if self.testbed is not None:
            self.admin.delete(f"/api/v1/persistentvolumes/{self.namespace}")


RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="session")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    folder = tmp_path_factory.mktemp("accounts")
    given = os.environ.get("KUBECONFIG")
    if given:
        shared = os.environ.get("CONVECT_TEST_SHARED")
        bed = Bed(
            Path(given),
            Api(connect(config_file=given)),
            "",
            os.environ["CONVECT_TEST_IMAGE"],
            os.environ.get("CONVECT_TEST_BARE_IMAGE"),
            os.environ.get("CONVECT_TEST_CLAIM"),
            Path(shared) if shared else None,
            folder,
        )
        yield from _furnished(bed)
        return
    import cluster as testbed
    import images

    was_up = testbed.is_up()
    kubeconfig = testbed.up()
    admin = Api(connect(config_file=str(kubeconfig)))
    bed = Bed(kubeconfig, admin, "", images.NOTEBOOK, images.BARE, "shared", None, folder, testbed)
    yield from _furnished(bed)
    if not was_up:
        testbed.down()


def _furnished(bed: Bed) -> Iterator[Bed]:
    bed.namespace = bed.admin.namespace = f"convect-test-{secrets.token_hex(3)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": bed.namespace, "labels": labels},
    }
    bed.admin.create("/api/v1/namespaces", namespace)
    role = yaml.safe_load((PROJECT / "deploy" / "role.yaml").read_text())
    bed.admin.create(f"{RBAC}/namespaces/{bed.namespace}/roles", role)
    if bed.testbed is not None:
        bed.shared = bed.testbed.SHARED / bed.namespace
        bed.shared.mkdir()
        _make_claim(bed)
    before = os.umask(0)  # The pods' user is not ours, and both write there.
    if bed.shared is not None:
        bed.shared.chmod(0o777)
    yield bed
    os.umask(before)
    bed.close()
    if bed.testbed is not None and bed.shared is not None:
        shutil.rmtree(bed.shared, ignore_errors=True)


def _make_claim(bed: Bed) -> None:
    size = {"storage": "1Gi"}
    many = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": bed.namespace},
        "spec": {**many, "capacity": size, "hostPath": {"path": str(bed.shared)}},
    }
    bed.admin.create("/api/v1/persistentvolumes", volume)
    bed.create(
        "PersistentVolumeClaim",
        "shared",
        spec={**many, "resources": {"requests": size}, "volumeName": bed.namespace},
    )


class Lab(suite.Lab):  # type: ignore[misc,name-defined]
    """On a volume where every file belongs to the pods' user, as one with `all_squash` has it.

    We are root here, and the pods must not be.
    """

    async def start(self, *what: Any, **how: Any) -> Any:
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, USER, USER)
        return await super().start(*what, **how)


@pytest.fixture
async def make_lab(bed: Bed, tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Labs whose runtime has the given traits; `shared=False` leaves the volume aside."""
    labs = []

    def make(account: str = "convect", *, shared: bool = True, **traits: Any) -> Any:
        if shared and bed.shared is None:
            pytest.skip("No volume is shared with this cluster.")
        home = bed.shared if shared else tmp_path
        folder = home / secrets.token_hex(4)
        folder.mkdir(parents=True)
        if not shared:
            traits["volumes"] = []
        labs.append(Lab(folder, lambda: bed.runtime(account, **traits)))
        return labs[-1]

    yield make
    for lab in labs:
        await lab.close()


@pytest.fixture
async def lab(make_lab: Callable[..., Any]) -> Any:
    return make_lab()


def until(check: Callable[[], Any], what: str, seconds: float = 40) -> Any:
    """What `check` gives, once it gives something. For use in a thread."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, f"{what} never happened"
        time.sleep(0.1)
    return found


__all__ = ["ApiError", "Bed", "until"]
