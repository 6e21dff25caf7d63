"""A real cluster: the one of KUBECONFIG, or the test bed on this machine.

`make test-cluster` runs these; without CONVECT_TEST_CLUSTER none of them is collected.
A cluster of your own needs an administrator's kubeconfig and CONVECT_TEST_IMAGE (Python,
papermill and ipykernel, a user that is not root). For the tests with a shared volume
CONVECT_TEST_SHARED is a folder here, and CONVECT_TEST_VOLUME the source of a persistent
volume that has the same files, as JSON: {"nfs": {"server": …, "path": …}}. Other images:
CONVECT_TEST_BARE_IMAGE (no papermill), CONVECT_TEST_TOOLS_IMAGE (sh and busybox, no
Python, entry point `echo by itself`), CONVECT_TEST_EXAMPLE_IMAGE (the example's packages).
CONVECT_TEST_ITEMS is how many items the long loop of the suite has, each a pod.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from loading import load

from jupyterlab_convect import safe_files
from jupyterlab_convect.runs.store import Store
from jupyterlab_convect.runtimes.kubernetes import api as api_module
from jupyterlab_convect.runtimes.kubernetes.api import Api, connect

HERE = Path(__file__).parent

if not os.environ.get("CONVECT_TEST_CLUSTER"):
    collect_ignore_glob = ["test_*.py"]

sys.path[:0] = [str(HERE), str(HERE.parent / "testbed")]

import s3  # noqa: E402
from support import PROJECT, RBAC, USER, Bed  # noqa: E402

suite = load("conformance_lab", HERE.parent / "conformance" / "conftest.py")


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
            os.environ.get("CONVECT_TEST_TOOLS_IMAGE"),
            os.environ.get("CONVECT_TEST_EXAMPLE_IMAGE"),
            "shared" if shared else None,
            Path(shared) if shared else None,
            folder,
        )
        source = json.loads(os.environ["CONVECT_TEST_VOLUME"]) if shared else None
        yield from _furnished(bed, source)
        return
    import cluster as testbed
    import images
    import machine

    was_up = testbed.is_up()
    kubeconfig = testbed.up()
    admin = Api(connect(config_file=str(kubeconfig)))
    bed = Bed(
        kubeconfig,
        admin,
        "",
        images.NOTEBOOK,
        images.BARE,
        images.TOOLS,
        images.EXAMPLE,
        "shared",
        testbed.SHARED,
        folder,
        testbed,
    )
    yield from _furnished(bed, {"hostPath": {"path": str(testbed.SHARED)}})
    packets = machine.packets_that_left()
    if not was_up:
        testbed.down()
    assert packets == 0, f"{packets} packets of the test bed wanted to leave this machine."


def _furnished(bed: Bed, volume: Any) -> Iterator[Bed]:
    """A namespace with our Role; `volume` is the source of a volume with the shared folder."""
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
    # The pods' user is not ours, as it is where people work, and both write there.
    before = os.umask(0)
    open_to_all = pytest.MonkeyPatch()
    open_to_all.setattr(safe_files, "PRIVATE", 0o777)
    open_to_all.setattr(Store.__init__, "__defaults__", (0o777,))
    open_to_all.setattr(safe_files, "_file_mode", lambda _: 0o666)
    if bed.shared is not None:
        bed.make_claim("shared", volume, ["ReadWriteMany"])
        bed.shared = bed.shared / bed.namespace
        bed.shared.mkdir(mode=0o777)
    yield bed
    open_to_all.undo()
    os.umask(before)
    bed.close()
    if bed.shared is not None:
        shutil.rmtree(bed.shared, ignore_errors=True)


class Lab(suite.Lab):  # type: ignore[misc,name-defined]
    """On a volume where every file belongs to the pods' user, as one with `all_squash` has it.

    We are root here, and the pods must not be.
    """

    many = int(os.environ.get("CONVECT_TEST_ITEMS", "40"))

    async def start(self, *what: Any, **how: Any) -> Any:
        self.hand_over()
        return await super().start(*what, **how)

    def hand_over(self) -> None:
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, USER, USER)


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
        # Special rights: the command line closes any other runs folder to the pods' user.
        labs[-1].store.folder.chmod(0o1777)
        return labs[-1]

    yield make
    for lab in labs:
        await lab.close()
    # What a failed test left would be in the way of the next.
    await asyncio.to_thread(
        bed.admin.delete, bed.admin.path("jobs"), propagationPolicy="Background"
    )


@pytest.fixture(scope="session")
def s3_server(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Server]:
    if bed.testbed is None:
        pytest.skip("Pods of another cluster would not reach an S3 server here.")
    if missing := s3.what_is_missing():
        pytest.skip(missing)
    import places

    folder = tmp_path_factory.mktemp("s3") / "buckets"
    with s3.serving(folder, places.ADDRESS) as server:
        server.make_bucket("convect")
        yield server


@pytest.fixture
def s3_store(s3_server: s3.Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The settings of a bucket that pods can reach."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    return {"endpoint": s3_server.endpoint, "bucket": "convect", "prefix": secrets.token_hex(4)}


@pytest.fixture
async def lab(make_lab: Callable[..., Any]) -> Any:
    return make_lab()


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """After which somebody decided whether to ask again."""
    seen: list[Exception] = []
    decide = api_module._worth

    def note(error: Any, seconds: float) -> float:
        seen.append(error)
        return decide(error, seconds)

    monkeypatch.setattr(api_module, "_worth", note)
    return seen
