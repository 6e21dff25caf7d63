"""Checks of settings by themselves: names, labels, images, volumes, amounts, patterns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .document import shorten
from .files import join, path_fault
from .merge import merge
from .plan import Json
from .problems import Path, Problem
from .quantities import quantity

_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
_IMAGE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]+)?(/[A-Za-z0-9][A-Za-z0-9._-]*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
_MEBIBYTE = 2**20


def check_settings(
    settings: Mapping[str, Any], node: str | None, path: Path, folder: str
) -> Iterator[Problem]:
    """The settings of a node, or the defaults when `node` is None; paths start at `folder`."""
    if not settings:
        return

    def problem(
        code: str, message: str, *where: str | int, hint: str | None = None, warn: bool = False
    ) -> Problem:
        severity = "warning" if warn else "error"
        return Problem(severity, code, message, node, (*path, *where), hint)  # type: ignore[arg-type]

    image = settings.get("image")
    if image and "${{" not in image and not _IMAGE.fullmatch(image):
        hint = "Write it as registry/name:tag, without spaces."
        yield problem("bad-image", f"“{image[:80]}” is not an image name.", "image", hint=hint)
    env = settings.get("env", {})
    for name in env:
        if not _ENV.fullmatch(name):
            yield problem("bad-name", _not_a_variable(name), "env", name)
    for name in settings.get("parameters", {}):
        if not name.strip():
            yield problem("bad-name", "A parameter has no name.", "parameters", name)
    for index, secret in enumerate(settings.get("secrets", ())):
        where = ("secrets", index, "env")
        if not _ENV.fullmatch(secret.get("env", "X")):
            yield problem("bad-name", _not_a_variable(secret["env"]), *where)
        if secret.get("env") in env:
            message = f"“{secret['env']}” is an environment variable and a secret."
            yield problem("duplicate-name", message, *where, hint="Keep one of them.")
    for metric, pattern in settings.get("metrics", {}).items():
        fault = _pattern_fault(pattern)
        if fault:
            yield problem("bad-pattern", f"The pattern of “{metric}” {fault}.", "metrics", metric)
    for index, glob in enumerate(settings.get("outputs", ())):
        if fault := path_fault(glob):
            yield problem("bad-path", f"{shorten(glob)} {fault}.", "outputs", index)
        elif join("", glob) is None:
            yield problem(
                "unreachable-output",
                f"The output “{glob[:80]}” is outside the working folder.",
                "outputs",
                index,
                hint="Write it into the working folder, or onto a volume.",
            )
    work = settings.get("working_folder")
    if work not in (None, "source", "isolated") and (fault := path_fault(work)):
        yield problem("bad-path", f"{shorten(work)} {fault}.", "working_folder")
    elif work not in (None, "source", "isolated") and join(folder, work) is None:
        yield problem("outside-root", f"“{work[:80]}” is outside the root.", "working_folder")
    yield from _check_volumes(settings.get("volumes", ()), problem)
    yield from _check_kubernetes(settings.get("kubernetes", {}), problem)


def check_resources(
    defaults: Mapping[str, Any], settings: Mapping[str, Any], node: str | None, path: Path
) -> Iterator[Problem]:
    """Amounts as they hold for a node, after its defaults."""
    if "resources" not in settings:
        return
    own = settings["resources"]
    merged = merge(defaults.get("resources", {}), own)
    for name in own:
        amount = merged[name]
        if _exceeds_limit(amount):
            yield Problem(
                "error",
                "request-over-limit",
                f"“{name}” asks for {amount['request']}, but its limit is {amount['limit']}.",
                node,
                (*path, "resources", name),
            )
        if name in ("memory", "shared_memory", "ephemeral_storage"):
            parts = amount.values() if isinstance(amount, dict) else [amount]
            if any(0 < quantity(part) < _MEBIBYTE for part in parts):
                yield Problem(
                    "warning",
                    "tiny-amount",
                    f"“{name}” is less than one mebibyte.",
                    node,
                    (*path, "resources", name),
                    "Without a unit it counts bytes: write 2Gi for two gibibytes.",
                )
        if name == "gpu" and not float(amount.get("count", 1)).is_integer():
            yield Problem(
                "info",
                "shared-gpu",
                "A fraction of a GPU needs a cluster that shares GPUs.",
                node,
                (*path, "resources", name),
            )


def check_distributed(
    settings: Mapping[str, Any], own: Mapping[str, Any], node: str | None, path: Path
) -> Iterator[Problem]:
    """`settings` are those that hold, of which `own` are those that this place says."""
    how = settings.get("distributed")
    if how is None or not ({"distributed", "resources"} & own.keys()):
        return
    processes = how.get("processes", 1)
    gpu = settings.get("resources", {}).get("gpu")
    count = gpu.get("count", 1) if isinstance(gpu, Mapping) else gpu or 0
    if processes == "gpu" and not count:
        yield Problem(
            "error",
            "no-gpu-asked",
            "It runs one process per GPU, but no GPU is requested.",
            node,
            (*path, "distributed", "processes"),
            "Ask for GPUs in “resources”, or write a number of processes.",
        )
    known = math.ceil(count) if processes == "gpu" else processes
    ranks = how.get("nodes", 1) * known if isinstance(known, int | float) else None
    if ranks and how.get("outputs_from", 0) >= ranks:
        yield Problem(
            "error",
            "no-such-rank",
            f"There is no rank {how['outputs_from']}: the last one is {int(ranks) - 1}.",
            node,
            (*path, "distributed", "outputs_from"),
        )
    least, nodes = how.get("min_nodes"), how.get("nodes", 1)
    if least is not None and least > nodes:
        yield Problem(
            "error",
            "too-few-nodes",
            f"It needs at least {int(least)} nodes, but has {int(nodes)}.",
            node,
            (*path, "distributed", "min_nodes"),
        )
    rank = how.get("outputs_from", 0)
    if least is not None and ranks and rank >= ranks / nodes:
        yield Problem(
            "error",
            "no-such-rank",
            f"The node of rank {int(rank)} may be lost; the first node always stays.",
            node,
            (*path, "distributed", "outputs_from"),
            "Choose a rank of the first node.",
        )


def _exceeds_limit(amount: Any) -> bool:
    if not isinstance(amount, dict) or not amount.keys() >= {"request", "limit"}:
        return False
    return quantity(amount["request"]) > quantity(amount["limit"])


def _check_volumes(volumes: Any, problem: Any) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        claim, mount = volume.get("claim", "x"), volume.get("path", "/x")
        if not _is_dns_name(claim):
            yield problem("bad-name", _not_a_name(claim, "volume claim"), "volumes", index, "claim")
        if not mount.startswith("/") or ":" in mount or ".." in mount.split("/"):
            hint = "It starts with “/” and has no “:” and no “..”."
            message = f"A volume cannot be mounted at “{mount[:80]}”."
            yield problem("bad-path", message, "volumes", index, "path", hint=hint)
        if mount in seen:
            message = f"Two volumes are mounted at “{mount[:80]}”."
            yield problem("duplicate-name", message, "volumes", index, "path")
        seen.add(mount)
        if join("", volume.get("sub_path", "") or ".") is None:
            message = f"“{volume['sub_path'][:80]}” leads out of the volume."
            yield problem("bad-path", message, "volumes", index, "sub_path")
        if "size" in volume and not quantity(volume["size"]):
            message = "A volume needs a size above 0."
            yield problem("bad-value", message, "volumes", index, "size")
        for key in ("mode", "storage_class"):
            if key in volume and "size" not in volume:
                message = f"“{key}” means nothing for a claim that is there already."
                hint = "Add a size, and the run makes the claim; or remove it."
                where = ("volumes", index, key)
                yield problem("unused-setting", message, *where, hint=hint, warn=True)
        storage = volume.get("storage_class", "x")
        if not _is_dns_name(storage):
            message = _not_a_name(storage, "storage class")
            yield problem("bad-name", message, "volumes", index, "storage_class")


def _check_kubernetes(details: Mapping[str, Json], problem: Any) -> Iterator[Problem]:
    hint = "Up to 63 letters, digits, “-”, “_” and “.”, starting and ending with a letter or digit."
    for key in ("labels", "node_selector", "annotations"):
        for name, value in details.get(key, {}).items():
            where = ("kubernetes", key, name)
            if not _is_label_key(name):
                message = f"“{name[:80]}” cannot be the name of a label or annotation."
                yield problem("bad-label", message, *where, hint=hint)
            if key != "annotations" and value and not _LABEL_NAME.fullmatch(value):
                message = f"“{value[:80]}” cannot be the value of a label."
                yield problem("bad-label", message, *where, hint=hint)
    for key, words in (("priority", "priority class"), ("service_account", "service account")):
        name = details.get(key)
        if name is not None and not _is_dns_name(name):
            yield problem("bad-name", _not_a_name(name, words), "kubernetes", key)
    for index, name in enumerate(details.get("pull_secrets", ())):
        if not _is_dns_name(name):
            message = _not_a_name(name, "pull secret")
            yield problem("bad-name", message, "kubernetes", "pull_secrets", index)
    for index, toleration in enumerate(details.get("tolerations", ())):
        where = ("kubernetes", "tolerations", index)
        operator = toleration.get("operator", "Equal")
        if operator == "Exists" and toleration.get("value"):
            message = "A toleration with “Exists” has no value."
            yield problem("bad-value", message, *where)
        if not toleration.get("key") and operator != "Exists":
            message = "A toleration without a key needs the operator “Exists”."
            yield problem("bad-value", message, *where)


def _is_label_key(name: str) -> bool:
    prefix, slash, rest = name.rpartition("/")
    return bool(_LABEL_NAME.fullmatch(rest)) and (not slash or _is_dns_name(prefix))


def _is_dns_name(name: str) -> bool:
    return len(name) <= 253 and bool(_DNS_NAME.fullmatch(name))


def _not_a_variable(name: str) -> str:
    return f"“{name[:80]}” cannot be the name of an environment variable."


def _not_a_name(name: str, words: str) -> str:
    return f"“{name[:80]}” cannot be the name of a {words}."


def _pattern_fault(pattern: str) -> str | None:
    try:
        groups = re.compile(pattern).groups
    except (re.error, RecursionError, OverflowError) as error:
        return f"is not a regular expression: {error}"
    return None if groups == 1 else f"needs one group, but it has {groups}"
