"""What every pod gets: volumes that are shared, and what is taken over from the server's pod."""

from __future__ import annotations

from typing import Any

import pytest

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.runtimes.kubernetes.pod_defaults import (
    inherit_from,
    own_container,
    volume_from_config,
)
from jupyterlab_convect.transfer.base import choose, first_uncovered

MOUNTS = """\
712 701 0:5 /null /proc/kcore rw - devtmpfs udev rw
713 702 8:1 /var/lib/kubelet/pods/0b/etc-hosts /etc/hosts rw,relatime - ext4 /dev/sda1 rw
714 702 8:1 /var/lib/kubelet/pods/0b/containers/notebook/f2 /dev/termination-log rw - ext4 /dev/sda1 rw
"""  # noqa: E501
CLAIM = {"persistentVolumeClaim": {"claimName": "home"}}


def own_pod(*mounts: Any, **volumes: Any) -> Any:
    return {
        "metadata": {"name": "lab"},
        "spec": {
            "nodeName": "n7",
            "volumes": [{"name": name, **source} for name, source in volumes.items()],
            "containers": [
                {"name": "proxy", "image": "mesh:1"},
                {"name": "notebook", "image": "hub/lab:1", "volumeMounts": list(mounts)},
            ],
            "securityContext": {"fsGroup": 100},
            "imagePullSecrets": [{"name": "registry"}],
            "tolerations": [{"key": "hub", "operator": "Exists"}, {"key": "node.kubernetes.io/x"}],
        },
    }


def test_the_server_s_volume_is_found_and_its_habits_are_taken_over() -> None:
    pod = own_pod(
        {"name": "home", "mountPath": "/home/ana", "subPath": "ana"},
        {"name": "tmp", "mountPath": "/scratch"},
        {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        home=CLAIM,
        tmp={"emptyDir": {}},
        token={"projected": {}},
    )
    own = inherit_from(pod, own_container(pod, MOUNTS), {"home": ["ReadWriteMany"]})
    assert [(each.path, each.source, each.sub_path, each.node) for each in own.shared_volumes] == [
        ("/home/ana", CLAIM, "ana", None)
    ]
    assert own.image == "hub/lab:1"
    assert own.pull_secrets == ("registry",)
    assert own.tolerations == ({"key": "hub", "operator": "Exists"},)
    assert own.pod_security == {"fsGroup": 100}


def test_our_own_container_is_found_wherever_it_comes() -> None:
    """A mesh may put its proxy first; a step must not run in the proxy's image."""
    pod = own_pod()
    assert own_container(pod, MOUNTS)["name"] == "notebook"
    assert own_container(pod, "")["name"] == "proxy"
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "notebook"}
    assert own_container(pod, "")["name"] == "notebook"
    assert own_container(pod, MOUNTS.replace("notebook", "elsewhere"))["name"] == "notebook"


def test_a_volume_for_one_node_is_pinned_and_said() -> None:
    pod = own_pod({"name": "home", "mountPath": "/home/ana"}, home=CLAIM)
    own = inherit_from(pod, own_container(pod, MOUNTS), {"home": ["ReadWriteOnce"]})
    assert own.shared_volumes[0].node == "n7"
    assert "steps run on n7" in own.notes[0]
    alone = inherit_from(pod, own_container(pod, MOUNTS), {"home": ["ReadWriteOncePod"]})
    assert alone.shared_volumes == ()
    assert "for one pod only" in alone.notes[0]


def test_what_is_covered() -> None:
    volumes = [volume_from_config({"path": "/home/ana/", "claim": "homes"})]
    assert first_uncovered(volumes, ["/home/ana", "/home/ana/x.ipynb"]) is None
    assert first_uncovered(volumes, ["/home/ana/x", "/home/anabel/x"]) == "/home/anabel/x"


@pytest.mark.parametrize(
    "entry", [{}, {"path": "home", "claim": "x"}, {"path": "/home"}, {"path": "/a", "clame": "x"}]
)
def test_a_wrong_mapping_is_refused(entry: Any) -> None:
    with pytest.raises(Refused, match="is invalid"):
        volume_from_config(entry)


SHARED = (volume_from_config({"path": "/home/ana", "claim": "homes"}),)


@pytest.mark.parametrize(
    ("wanted", "volumes", "path", "store", "way"),
    [
        ("auto", SHARED, "/home/ana/x", True, "shared"),
        ("auto", SHARED, "/data/x", True, "s3"),
        ("auto", SHARED, "/data/x", False, "bundle"),
        ("auto", (), "/home/ana/x", True, "s3"),
        ("auto", (), "/home/ana/x", False, "bundle"),
        ("s3", SHARED, "/home/ana/x", True, "s3"),
        ("bundle", SHARED, "/home/ana/x", True, "bundle"),
        ("shared", SHARED, "/home/ana/x", True, "shared"),
    ],
)
def test_which_way_files_go(wanted: Any, volumes: Any, path: str, store: bool, way: str) -> None:
    assert choose(wanted, volumes, [path], store) == way


@pytest.mark.parametrize(
    ("wanted", "volumes", "why"),
    [
        ("shared", SHARED, "No volume of the cluster holds /data/x."),
        ("shared", (), "No volume of the cluster holds /data/x."),
        ("s3", SHARED, "No object store is configured."),
    ],
)
def test_a_way_that_is_not_there_is_refused_with_the_reason(
    wanted: Any, volumes: Any, why: str
) -> None:
    with pytest.raises(Refused) as told:
        choose(wanted, volumes, ["/data/x"], has_store=False)
    assert told.value.sentence == why
