"""The Job as data: what a document asks for is in it, and nothing that it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.plan import (
    Amount,
    Distributed,
    Gpu,
    Kubernetes,
    Resources,
    Secret,
    Step,
    Toleration,
    Volume,
)
from jupyterlab_convect.runtimes.kubernetes.manifests import (
    FileContainers,
    PodContent,
    job,
    secret,
    service,
)
from jupyterlab_convect.runtimes.kubernetes.pod_defaults import (
    RESTRICTED_CONTAINER,
    RESTRICTED_POD,
    PodDefaults,
    profile_from_config,
)
from jupyterlab_convect.transfer.base import Mounts, SharedVolume

RUN = "20261116-074512123-a1b2c3"
DEFAULTS = PodDefaults(
    "team",
    image="python:3",
    pod_security=RESTRICTED_POD,
    container_security=RESTRICTED_CONTAINER,
    gpus={
        "nvidia.com/gpu": profile_from_config(
            "nvidia.com/gpu", {"type_label": "nvidia.com/gpu.product"}
        ),
        "tencent.com/vcuda-core": profile_from_config(
            "tencent.com/vcuda-core",
            {
                "requests": {"tencent.com/vcuda-core": 100, "tencent.com/vcuda-memory": 60},
                "shareable": True,
            },
        ),
    },
)
STEP = Step("train", "notebook", "train", path="train.ipynb")
CONTENT = PodContent(("python3", "/runs/.runner/1.pyz", "/runs/x"))


def pod(
    step: Step = STEP, defaults: PodDefaults = DEFAULTS, content: PodContent = CONTENT, **more: Any
) -> Any:
    return job(RUN, step, 1, defaults, content, **more)["spec"]["template"]["spec"]


def container(
    step: Step = STEP, defaults: PodDefaults = DEFAULTS, content: PodContent = CONTENT
) -> Any:
    return pod(step, defaults, content)["containers"][0]


def test_the_whole_of_a_plain_job() -> None:
    metadata = {
        "labels": {
            "app.kubernetes.io/managed-by": "jupyterlab-convect",
            "jupyterlab-convect.dev/run": RUN,
            "jupyterlab-convect.dev/step": "train",
            "jupyterlab-convect.dev/attempt": "1",
        },
        "annotations": {"jupyterlab-convect.dev/name": f"{RUN} train 1"},
    }
    assert job(RUN, STEP, 1, DEFAULTS, CONTENT) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"train-{RUN}-1", **metadata},
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "ttlSecondsAfterFinished": 3600,
            "template": {
                "metadata": metadata,
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": 30,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "volumes": [],
                    "containers": [
                        {
                            "name": "step",
                            "image": "python:3",
                            "command": ["python3", "/runs/.runner/1.pyz", "/runs/x"],
                            "env": [],
                            "resources": {},
                            "volumeMounts": [],
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "capabilities": {"drop": ["ALL"]},
                            },
                            "terminationMessagePolicy": "FallbackToLogsOnError",
                        }
                    ],
                },
            },
        },
    }


def test_resources_and_shared_memory() -> None:
    wanted = Resources(
        cpu=Amount("500m", "2"),
        memory=Amount("2Gi"),
        ephemeral_storage=Amount(limit="10Gi"),
        shared_memory="1Gi",
        gpu=Gpu(2),
    )
    step = replace(STEP, resources=wanted)
    assert container(step)["resources"] == {
        "requests": {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "2"},
        "limits": {"cpu": "2", "ephemeral-storage": "10Gi", "nvidia.com/gpu": "2"},
    }
    assert pod(step)["volumes"] == [
        {"name": "v0", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}
    ]
    assert container(step)["volumeMounts"] == [{"name": "v0", "mountPath": "/dev/shm"}]


def test_gpu_types_become_an_affinity_and_taints_are_tolerated() -> None:
    step = replace(STEP, resources=Resources(gpu=Gpu(1, "A100")))
    spec = pod(step, gpu_types=["NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"])
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {
            "matchExpressions": [
                {
                    "key": "nvidia.com/gpu.product",
                    "operator": "In",
                    "values": ["NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"],
                }
            ]
        }
    ]
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]


def test_gpus_are_counted_as_the_profile_says() -> None:
    half = replace(STEP, resources=Resources(gpu=Gpu(0.5, resource="tencent.com/vcuda-core")))
    assert container(half)["resources"]["limits"] == {
        "tencent.com/vcuda-core": "50",
        "tencent.com/vcuda-memory": "30",
    }
    unknown = replace(STEP, resources=Resources(gpu=Gpu(2, resource="amd.com/gpu")))
    assert container(unknown)["resources"]["limits"] == {"amd.com/gpu": "2"}


@pytest.mark.parametrize(
    ("gpu", "code"),
    [(Gpu(0.5), "whole-gpus"), (Gpu(1, "MI300", resource="amd.com/gpu"), "no-gpu-types")],
)
def test_what_cannot_be_honoured_is_refused(gpu: Gpu, code: str) -> None:
    with pytest.raises(Refused) as refusal:
        pod(replace(STEP, resources=Resources(gpu=gpu)))
    assert refusal.value.code == code


def test_a_step_without_an_image_is_refused() -> None:
    with pytest.raises(Refused, match="has no image"):
        pod(defaults=replace(DEFAULTS, image=""))


def test_secrets_are_references_and_named_for_the_mask() -> None:
    step = replace(STEP, secrets=(Secret("TOKEN", "s3", "key"), Secret("PW", "db", "password")))
    assert container(step)["env"] == [
        {"name": "CONVECT_SECRETS", "value": "TOKEN,PW"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "key"}}},
        {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
    ]


def test_volumes_of_the_step_and_of_the_place() -> None:
    volume = SharedVolume("/home/ana", {"persistentVolumeClaim": {"claimName": "homes"}}, "ana")
    step = replace(STEP, volumes=(Volume("data", "/data", "sets", True), Volume("homes", "/all")))
    spec = pod(step, content=replace(CONTENT, mounts=Mounts((volume,))))
    assert spec["volumes"] == [
        {"name": "v0", "persistentVolumeClaim": {"claimName": "homes"}},
        {"name": "v1", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": "v0", "mountPath": "/home/ana", "subPath": "ana"},
        {"name": "v1", "mountPath": "/data", "subPath": "sets", "readOnly": True},
        {"name": "v0", "mountPath": "/all"},
    ]


def test_a_volume_that_is_bound_to_a_node_pins_the_pod() -> None:
    volume = SharedVolume("/home", {"persistentVolumeClaim": {"claimName": "home"}}, node="n7")
    required = pod(content=replace(CONTENT, mounts=Mounts((volume,))))["affinity"]["nodeAffinity"]
    assert required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}
    ]


def test_details_of_the_pod() -> None:
    wanted = Kubernetes(
        node_selector={"pool": "gpu"},
        tolerations=(
            Toleration("team", "Equal", "a", "NoSchedule"),
            Toleration("spot", "Exists", seconds=30),
            Toleration(),
        ),
        labels={"team": "a", "app.kubernetes.io/managed-by": "me"},
        annotations={"note": "数"},
        priority="high",
        service_account="trainer",
        pull_secrets=("mine", "all"),
    )
    defaults = replace(
        DEFAULTS, pull_secrets=("all",), node_selector={"zone": "z"}, labels={"org": "o"}
    )
    step = replace(STEP, kubernetes=wanted, pull_policy="Always", image="x:1")
    made = job(RUN, step, 1, defaults, CONTENT)
    spec = made["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"zone": "z", "pool": "gpu"}
    assert spec["tolerations"] == [
        {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists", "tolerationSeconds": 30},
        {"operator": "Exists"},
    ]
    assert spec["priorityClassName"] == "high"
    assert spec["serviceAccountName"] == "trainer"
    assert spec["automountServiceAccountToken"] is True
    assert spec["imagePullSecrets"] == [{"name": "mine"}, {"name": "all"}]
    assert spec["containers"][0]["image"] == "x:1"
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    for labels in (made["metadata"]["labels"], made["spec"]["template"]["metadata"]["labels"]):
        assert labels["team"] == "a"
        assert labels["org"] == "o"
        assert labels["app.kubernetes.io/managed-by"] == "jupyterlab-convect"
    assert made["metadata"]["annotations"]["note"] == "数"


def test_a_distributed_step_is_an_indexed_job_that_counts_its_pods() -> None:
    step = Step("train", "script", "train", distributed=Distributed(3, 2, outputs_from=4))
    made = job(RUN, step, 1, DEFAULTS, CONTENT)["spec"]
    assert (made["completions"], made["parallelism"]) == (3, 3)
    assert (made["completionMode"], made["backoffLimit"]) == ("Indexed", 0)
    env = {item.pop("name"): item for item in made["template"]["spec"]["containers"][0]["env"]}
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    assert env["CONVECT_NODE"] == {"valueFrom": {"fieldRef": {"fieldPath": index}}}
    assert env["CONVECT_OUTPUTS_NODE"] == {"value": "2"}


def test_what_only_some_clusters_have_is_asked_for_by_name() -> None:
    asked = Kubernetes(resources={"rdma/hca": "1"})
    step = replace(STEP, kubernetes=asked, resources=Resources(cpu=Amount("1")))
    assert container(step)["resources"] == {
        "requests": {"cpu": "1", "rdma/hca": "1"},
        "limits": {"rdma/hca": "1"},
    }


def test_no_sidecar_comes_between_nodes_unless_that_is_asked_for() -> None:
    name = "sidecar.istio.io/inject"
    together = replace(STEP, distributed=Distributed(2))
    wanted = replace(together, kubernetes=Kubernetes(annotations={name: "true"}))
    found = [
        job(RUN, step, 1, DEFAULTS, CONTENT)["spec"]["template"]["metadata"]["annotations"].get(
            name
        )
        for step in (STEP, together, wanted)
    ]
    assert found == [None, "false", "true"]


def test_a_service_leads_to_the_first_pod_and_goes_with_its_job() -> None:
    step = Step("3d " + "x" * 80, "script", "train", distributed=Distributed(2))
    made = job(RUN, step, 1, DEFAULTS, CONTENT)
    made["metadata"]["uid"] = "u1"
    found = service(made)
    name = found["metadata"]["name"]
    assert (len(name) <= 63, name[0].isalpha()) == (True, True)
    assert found["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert found["spec"]["selector"] == {
        "batch.kubernetes.io/job-name": made["metadata"]["name"],
        "batch.kubernetes.io/job-completion-index": "0",
    }


def test_a_bundle_is_a_secret_that_goes_with_its_job() -> None:
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "uid": "u-1"}}
    assert secret(made, {"x": "eA=="})["metadata"] == {
        "name": "a",
        "labels": {"app.kubernetes.io/managed-by": "jupyterlab-convect"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u-1"}],
    }
    spec = pod(
        content=replace(CONTENT, secret="a", mounts=Mounts(scratch=("/convect",), inbox=True))
    )
    assert spec["volumes"] == [
        {"name": "inbox", "secret": {"secretName": "a"}},
        {"name": "scratch0", "emptyDir": {}},
    ]


COMPONENT = Step("count", "component", "Count", timeout=1.5)
PART = PodContent(("sh", "-c"), ("$(HOME) $x",), image="alpine", env={"A": "$(B)"})


def test_a_component_is_its_own_container() -> None:
    spec = pod(COMPONENT, content=PART)
    (made,) = spec["containers"]
    assert (made["image"], made["command"], made["args"]) == (
        "alpine",
        ["sh", "-c"],
        ["$$(HOME) $$x"],
    )
    assert made["env"] == [{"name": "A", "value": "$$(B)"}]
    assert spec["securityContext"]["runAsUser"] == 1000
    assert spec["activeDeadlineSeconds"] == 902
    assert "command" not in container(COMPONENT, content=replace(PART, command=()))
    assert container(replace(COMPONENT, image="mine"), content=PART)["image"] == "mine"
    assert "activeDeadlineSeconds" not in pod()


def test_a_path_of_the_image_is_a_file_of_a_volume() -> None:
    volume = SharedVolume("/home/ana", {"persistentVolumeClaim": {"claimName": "homes"}}, "ana")
    content = replace(PART, mounts=Mounts((volume,)), binds={"/out.txt": "/home/ana/runs/x"})
    made = container(COMPONENT, content=content)["volumeMounts"][-1]
    assert made == {"name": "v0", "mountPath": "/out.txt", "subPath": "ana/runs/x"}


def test_a_component_without_a_volume_has_file_containers() -> None:
    content = replace(
        PART,
        binds={"/tmp/inputs": "/convect/inputs"},
        secret="s",
        mounts=Mounts(scratch=("/convect",), inbox=True),
        file_containers=FileContainers(("python3", "before"), ("python3", "after")),
    )
    step = replace(COMPONENT, resources=Resources(cpu=Amount("1"), gpu=Gpu(1)))
    spec = pod(step, content=content)
    before, own = spec["initContainers"]
    (after,) = spec["containers"]
    assert [item["image"] for item in (before, own, after)] == ["python:3", "alpine", "python:3"]
    assert own["volumeMounts"] == [
        {"name": "scratch0", "mountPath": "/tmp/inputs", "subPath": "inputs"}
    ]
    assert [item["mountPath"] for item in after["volumeMounts"]] == ["/convect-in", "/convect"]
    assert before["resources"] == after["resources"] == {"requests": {"cpu": "1"}}
    assert all(item["securityContext"] == RESTRICTED_CONTAINER for item in (before, own, after))
    with pytest.raises(Refused, match="needs an image with Python"):
        pod(step, replace(DEFAULTS, image=""), content)
