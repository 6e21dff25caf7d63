"""What an administrator can set, and the place that follows from it."""

from __future__ import annotations

import os
from pathlib import Path

from traitlets import Dict, Enum, Int, List, Unicode

from ...pipeline.plan import Json
from ..base import Feature, StepRuntime
from .api import Api
from .objects import Object
from .shares import (
    OwnPod,
    access_modes,
    find_own_pod,
    own_container,
    share_from_config,
    take_over,
)
from .site import (
    RESTRICTED_CONTAINER,
    RESTRICTED_POD,
    GpuProfile,
    Site,
    profile_from_config,
)


class ConfiguredRuntime(StepRuntime):
    """The settings of `c.KubernetesRuntime`."""

    name = "kubernetes"
    display_name = Unicode("Kubernetes", help="What the front end calls it.").tag(config=True)
    features = frozenset(Feature)

    context = Unicode("", help="The context of the kubeconfig; the current one if empty.").tag(
        config=True
    )
    config_file = Unicode("", help="The kubeconfig; KUBECONFIG or ~/.kube/config if empty.").tag(
        config=True
    )
    namespace = Unicode(
        "", help="Where Jobs are made; our own pod's or the context's namespace if empty."
    ).tag(config=True)
    image = Unicode(
        "", help="The image of steps that name none; our own pod's image if empty."
    ).tag(config=True)
    pull_policy = Enum(["", "Always", "IfNotPresent", "Never"], "").tag(config=True)
    pull_secrets = List(Unicode(), help="Secrets that open the images' registry.").tag(config=True)
    volumes = List(
        Dict(),
        help="""Volumes that this machine and pods share, at the same path:
        {"path": "/home/ana", "claim": "homes", "sub_path": "ana"}.""",
    ).tag(config=True)
    files = Enum(
        ["auto", "shared", "bundle"],
        "auto",
        help="""How files reach a pod: over a shared volume, or in a bundle with the results
        copied back through the log. `auto` takes the volume wherever there is one.""",
    ).tag(config=True)
    node_selector = Dict(help="Labels that every node must have.").tag(config=True)
    tolerations = List(Dict(), help="Tolerations of every pod, as in a manifest.").tag(config=True)
    labels = Dict(help="Labels of every Job and pod, such as a queue's.").tag(config=True)
    annotations = Dict(help="Annotations of every Job and pod.").tag(config=True)
    pod_security = Dict(
        help="Replaces parts of the pods' security context, which is a restricted one."
    ).tag(config=True)
    container_security = Dict(
        help="Replaces parts of the containers' security context, which is a restricted one."
    ).tag(config=True)
    gpu_profiles = Dict(
        {"nvidia.com/gpu": {"type_label": "nvidia.com/gpu.product"}},
        help="""How this cluster counts GPUs, by the resource name that documents use:
        {"type_label": label of nodes, "requests": {resource: amount for one GPU},
        "shareable": whether fractions can be had}.""",
    ).tag(config=True)
    grace = Int(30, min=1, help="Seconds a step has to end after it is asked to.").tag(config=True)
    ttl = Int(3600, min=0, help="Seconds for which an ended Job stays in the cluster.").tag(
        config=True
    )
    patience = Int(
        120,
        min=0,
        help="""Seconds that a step waits for something that does not mend by itself, such as
        an image that does not exist, before it fails.""",
    ).tag(config=True)
    carry_limit = Int(
        8_000_000,
        min=100_000,
        help="Bytes that may be copied back through a log; the nodes keep about 10 MB of each.",
    ).tag(config=True)
    max_pods = Int(100, min=1, help="Steps that are in the cluster at the same time.").tag(
        config=True
    )

    def make_site(self, api: Api) -> Site:
        """Look at our own pod, if we are in one, and put together what every pod gets."""
        pod = find_own_pod(api)
        own = None if pod is None else _own(api, pod)
        shares = (*map(share_from_config, self.volumes), *(own.shares if own else ()))
        notes = list(own.notes) if own else []
        if self.files == "bundle" or not shares:
            shares = ()
            notes.append(
                "No volume is shared with the cluster: files that are declared are sent with the "
                f"run, up to 0.9 MB, and up to {self.carry_limit / 1e6:g} MB are copied back."
            )
        return Site(
            namespace=api.namespace,
            image=self.image or (own.image if own else ""),
            pull_policy=self.pull_policy or None,
            pull_secrets=(*self.pull_secrets, *(own.pull_secrets if own else ())),
            shares=shares,
            tolerations=(*self.tolerations, *(own.tolerations if own else ())),
            node_selector=self.node_selector,
            labels=self.labels,
            annotations=self.annotations,
            pod_security={**_user(bool(shares), own), **self.pod_security},
            container_security={**RESTRICTED_CONTAINER, **self.container_security},
            gpus=self._gpus(),
            grace=self.grace,
            ttl=self.ttl,
            notes=tuple(notes),
        )

    def _gpus(self) -> dict[str, GpuProfile]:
        return {name: profile_from_config(name, item) for name, item in self.gpu_profiles.items()}


def _own(api: Api, pod: Object) -> OwnPod:
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
    except OSError:
        mounts = ""
    return take_over(pod, own_container(pod, mounts), access_modes(api, pod))


def _user(shared: bool, own: OwnPod | None) -> dict[str, Json]:
    """Restricted; and where files are shared, as the user whose files they are."""
    context: dict[str, Json] = {**RESTRICTED_POD, **(own.pod_security if own else {})}
    user = os.geteuid()
    if shared and (user != 0 or own is not None):
        context |= {"runAsUser": user, "runAsGroup": os.getegid()}
    if context.get("runAsUser") == 0:
        context["runAsNonRoot"] = False
    return context
