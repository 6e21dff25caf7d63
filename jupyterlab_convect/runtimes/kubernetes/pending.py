"""Why a pod is not there yet, or not running yet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from ...errors import ConvectError
from ...pipeline.plan import Json
from ...pipeline.quantities import quantity
from .objects import (
    Finding,
    Object,
    condition,
    last_words,
    statuses,
    step_container,
    waiting,
    words_of,
)
from .words import amount, bare, listing, plain_resource


def refused_pod(message: str) -> Finding:
    """The Job is there, but its pod may not be."""
    if quota := re.search(
        r"exceeded quota: (?P<name>[^,]+), requested: (?P<asked>\S+?), used: (?P<used>\S+?), "
        r"limited: (?P<hard>\S+)",
        message,
    ):
        return _quota(quota["name"], quota["asked"], quota["used"], quota["hard"], message)
    if found := re.search(r"failed quota: ([^:]+): must specify ([^:;]+)", message):
        missing = listing(sorted({_part(key) for key in re.split(r"[,\s]+", found[2]) if key}))
        return Finding(
            "queued",
            f"The quota {found[1]} wants every pod to have a {missing}; set it.",
            message,
            hopeless=True,
        )
    if "violates PodSecurity" in message:
        rule = re.search(r'violates PodSecurity "([^":]+)', message)
        level = f" “{rule[1]}”" if rule else ""
        return Finding(
            "queued",
            f"The namespace's security rules{level} do not allow this pod.",
            message,
            hopeless=True,
        )
    if found := re.search(r'serviceaccount "?([^"\s]+)"? not found', message):
        reason = f"There is no service account {found[1].rpartition('/')[2]} in the namespace."
        return Finding("queued", reason, message, hopeless=True)
    if found := re.search(r"no PriorityClass with name (\S+) was found", message):
        reason = f"The cluster has no priority class {found[1]}."
        return Finding("queued", reason, message, hopeless=True)
    if found := re.search(r"(maximum|minimum) (\S+) usage per (\w+) is (\S+?),", message):
        reason = (
            f"The namespace allows a {found[1]} of {found[4]} {found[2]} for a {found[3].lower()}."
        )
        return Finding("queued", reason, message, hopeless=True)
    return Finding(
        "queued", "The cluster does not allow its pod to be created.", message, hopeless=True
    )


def _quota(name: str, asked: str, used: str, hard: str, message: str) -> Finding:
    wanted, taken, limit = (_pairs(text) for text in (asked, used, hard))
    parts, hopeless = [], False
    for key, need in wanted.items():
        most = limit.get(key, Decimal(0))
        left = max(most - taken.get(key, Decimal(0)), Decimal(0))
        hopeless = hopeless or need > most
        if need > most:
            parts.append(f"needs {amount(key, need)}, but {bare(key, most)} is all that it allows")
        elif need > left:
            parts.append(
                f"needs {amount(key, need)}, and {bare(key, left)} of {bare(key, most)} "
                f"{'is' if left == 1 else 'are'} left"
            )
    return Finding(
        "queued",
        f"Waiting for the quota {name}: it {listing(parts)}.",
        message,
        hopeless=hopeless,
    )


def pending(pod: Object, events: Sequence[Object], why_it_does_not_fit: str | None) -> Finding:
    scheduled = condition(pod, "PodScheduled", "False")
    if scheduled:
        words = words_of(scheduled)
        if scheduled.get("reason") == "SchedulingGated":
            return Finding("queued", "Waiting to be admitted by the cluster's queue.", words)
        return _unschedulable(words, why_it_does_not_fit)
    if held_up := waiting(pod):
        return _waiting_container(pod, held_up)
    mount = last_words(events, "FailedMount") or last_words(events, "FailedAttachVolume")
    if mount:
        return _failed_mount(mount)
    sandbox = last_words(events, "FailedCreatePodSandBox")
    if sandbox:
        node = pod["spec"].get("nodeName", "")
        return Finding("starting", f"The node {node} cannot start the pod yet.", sandbox)
    if pod["spec"].get("nodeName"):
        return Finding("starting", f"Starting on {pod['spec']['nodeName']}.")
    return Finding("queued", "Waiting for a node.")


def _unschedulable(words: str, why_it_does_not_fit: str | None) -> Finding:
    if claim := re.search(r'persistentvolumeclaim "([^"]+)" not found', words):
        reason = f"There is no volume claim {claim[1]} in the namespace."
        return Finding("queued", reason, words, hopeless=True)
    if claim := re.search(r'persistentvolumeclaim "([^"]+)" is being deleted', words):
        return Finding("queued", f"The volume claim {claim[1]} is being deleted.", words, True)
    if "unbound immediate PersistentVolumeClaims" in words:
        return Finding("queued", "Waiting: a volume claim is not bound to a volume yet.", words)
    if why_it_does_not_fit:
        first = why_it_does_not_fit.removeprefix("It ")
        sentence = first if first != why_it_does_not_fit else why_it_does_not_fit
        return Finding("queued", f"Waiting: {sentence[0].lower()}{sentence[1:]}", words)
    return Finding("queued", _scheduler_words(words), words)


def _scheduler_words(words: str) -> str:
    """The scheduler's count of why each node will not do, without its vocabulary."""
    head = re.match(r"0/(\d+) nodes are available: (.*?)(?:\. .*)?$", words, re.DOTALL)
    if head is None:
        return "Waiting for a node that can take it."
    parts = []
    for part in re.split(r", (?=\d+ )", head[2].rstrip(". ")):
        found = re.match(r"(\d+) (.*)", part)
        if found is None:
            continue
        count, why = int(found[1]), found[2]
        has, does = ("has", "does") if count == 1 else ("have", "do")
        if short := re.match(r"Insufficient (\S+)", why):
            thing = {"cpu": "cores", "memory": "memory", "nvidia.com/gpu": "GPUs"}.get(
                short[1], short[1]
            )
            parts.append(
                f"{count} {has} too few free {thing}".replace(
                    "few free memory", "little free memory"
                )
            )
        elif taint := re.search(r"untolerated taint\(?s?\)? \{([^:}]+)", why):
            parts.append(f"{count} {'keeps' if count == 1 else 'keep'} pods away ({taint[1]})")
        elif "affinity/selector" in why or "node selector" in why:
            parts.append(f"{count} {does} not have the labels that it asks for")
        elif "unschedulable" in why:
            parts.append(f"{count} {'takes' if count == 1 else 'take'} no pods at the moment")
        elif "volume" in why:
            parts.append(f"{count} cannot have its volume")
        else:
            parts.append(f"{count}: {why}")
    total = "the node" if head[1] == "1" else f"one of {head[1]} nodes"
    return f"Waiting for room on {total}: {listing(parts)}."


def _waiting_container(pod: Object, held_up: Json) -> Finding:
    kind = held_up.get("reason", "")
    words = held_up.get("message") or kind
    image = _held_up_image(pod, held_up)
    if kind in ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"):
        return Finding("starting", _image_trouble(image, words), words, hopeless=True)
    if kind == "ErrImageNeverPull":
        reason = (
            f"The image {image} is not on the node, and the pull policy does not allow pulling it."
        )
        return Finding("failed", reason, words)
    if kind == "InvalidImageName":
        return Finding("failed", f"{image} is not the name of an image.", words)
    if kind == "CreateContainerConfigError":
        return Finding("starting", _config_trouble(words), words, hopeless=True)
    if kind in ("CreateContainerError", "RunContainerError"):
        return Finding("starting", f"The container does not start: {words}", words, hopeless=True)
    node = pod["spec"].get("nodeName")
    return Finding("starting", f"Starting on {node}." if node else None)


def _held_up_image(pod: Object, held_up: Json) -> str:
    names = [
        item.get("name")
        for item in statuses(pod)
        if item.get("state", {}).get("waiting") == held_up
    ]
    spec = pod["spec"]
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        if container.get("name") in names:
            return str(container["image"])
    return str(step_container(spec)["image"])


def _image_trouble(image: str, words: str) -> str:
    lower = words.lower()
    if "not found" in lower or "manifest unknown" in lower:
        return f"There is no image {image}."
    if any(word in lower for word in ("unauthorized", "denied", "authentication", "forbidden")):
        return f"The image {image} cannot be pulled: it needs a pull secret or does not exist."
    if any(word in lower for word in ("no such host", "timeout", "refused", "unreachable", "dial")):
        return f"The registry of the image {image} cannot be reached."
    return f"The image {image} cannot be pulled."


def _config_trouble(words: str) -> str:
    if found := re.search(r'secret "([^"]+)" not found', words):
        return f"There is no secret {found[1]} in the namespace."
    if found := re.search(r"couldn't find key (\S+) in Secret \S*?/?([^/\s]+)$", words):
        return f"The secret {found[2]} has no key {found[1]}."
    if "runAsNonRoot" in words:
        return "The image runs as root, which is not allowed here; use one with a user of its own."
    return f"The container cannot be set up: {words}"


def _failed_mount(words: str) -> Finding:
    if found := re.search(r'secret "([^"]+)" not found', words):
        return Finding("starting", f"There is no secret {found[1]} in the namespace.", words, True)
    if found := re.search(r'configmap "([^"]+)" not found', words):
        return Finding("starting", f"There is no configmap {found[1]}.", words, True)
    return Finding("starting", "A volume cannot be mounted yet.", words)


def _pairs(text: str) -> dict[str, Decimal]:
    found = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        try:
            found[key] = quantity(value)
        except ConvectError:
            continue
    return found


def _part(key: str) -> str:
    """`limits.memory` as `memory limit`."""
    side = key.partition(".")[0]
    what = {"cpu": "CPU"}.get(plain_resource(key), plain_resource(key))
    return f"{what} {side[:-1]}" if side in ("limits", "requests") else what
