"""The properties of an Elyra node, or of a pipeline's defaults, as settings of ours.

Up to version 7 the items of a list are texts such as `KEY=value`, in version 8 objects.
Both are read everywhere, because files in between exist.
"""

from __future__ import annotations

import posixpath
from typing import Any

from ..document import shorten, write_number
from ..plan import Json
from .bag import (
    Bag,
    Unreadable,
    as_flag,
    as_literal,
    as_number,
    as_object,
    as_text,
    as_value_text,
    is_empty,
)

USUAL_GPU = "nvidia.com/gpu"
OPERATORS = ("Equal", "Exists")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

POD_PROPERTIES = (
    "env_vars",
    "kubernetes_secrets",
    "kubernetes_shared_mem_size",
    "mounted_volumes",
    "disable_node_caching",
    "kubernetes_tolerations",
    "kubernetes_pod_labels",
    "kubernetes_pod_annotations",
)
"""What `read_pod_settings` takes; Elyra puts it beside a component's own inputs."""


def read_settings(bag: Bag) -> dict[str, Any]:
    """Take everything out of the bag that is a setting here, too."""
    pod = read_pod_settings(bag)
    return without_empty(
        {
            "image": bag.take("runtime_image", as_text),
            "dependencies": _dependencies(bag),
            "outputs": bag.take_each("outputs", as_text),
            **pod,
            "resources": {**_resources(bag), **pod.get("resources", {})},
        }
    )


def read_pod_settings(bag: Bag) -> dict[str, Any]:
    """The settings that components have as well."""
    caching_off = bag.take("disable_node_caching", _selection)
    kubernetes = {
        "tolerations": bag.take_each("kubernetes_tolerations", _toleration),
        "labels": dict(bag.take_each("kubernetes_pod_labels", _key_and_value)),
        "annotations": dict(bag.take_each("kubernetes_pod_annotations", _key_and_value)),
    }
    return without_empty(
        {
            "env": dict(bag.take_each("env_vars", _variable)),
            "secrets": bag.take_each("kubernetes_secrets", _secret),
            "resources": without_empty(
                {"shared_memory": bag.take("kubernetes_shared_mem_size", _shared_memory)}
            ),
            "volumes": bag.take_each("mounted_volumes", _volume),
            "cache": None if caching_off is None else not caching_off,
            "kubernetes": without_empty(kubernetes),
        }
    )


def without_empty(content: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in content.items() if not is_empty(item)}


def _resources(bag: Bag) -> dict[str, Any]:
    """CPU in cores, memory in gigabytes; 0 is how Elyra's form says that nothing is asked for."""
    gpu = bag.take("gpu", as_number)
    vendor = bag.take("gpu_vendor", as_text) or USUAL_GPU
    if vendor != USUAL_GPU and not gpu:
        bag.refuse("gpu_vendor", vendor, Unreadable("no GPU is asked for", "info"))
    return without_empty(
        {
            "cpu": _amount(bag.take("cpu", as_number), bag.take("cpu_limit", as_number), ""),
            "memory": _amount(
                bag.take("memory", as_number), bag.take("memory_limit", as_number), "G"
            ),
            "gpu": None
            if not gpu
            else gpu
            if vendor == USUAL_GPU
            else {"count": gpu, "resource": vendor},
        }
    )


def _amount(request: float | None, limit: float | None, unit: str) -> Json:
    def quantity(number: float) -> Json:
        return write_number(number) + unit if unit else number

    if not limit:
        return quantity(request) if request else None
    return without_empty(
        {"request": quantity(request) if request else None, "limit": quantity(limit)}
    )


def _shared_memory(value: Json) -> str | None:
    """A number of gigabytes."""
    content = as_object(value)
    size, unit = content.get("size"), content.get("units") or "G"
    if unit != "G" or content.keys() - {"size", "units"}:
        raise Unreadable(f"{shorten(value)} is not a number of gigabytes")
    number = 0 if is_empty(size) else as_number(size)
    return f"{write_number(number)}G" if number else None


def _dependencies(bag: Bag) -> list[str]:
    """Globs beside the node's file; Elyra can look for each of them in every folder below, too."""
    globs = bag.take_each("dependencies", as_text)
    if not bag.take("include_subdirectories", as_flag):
        return globs
    return [
        posixpath.join(posixpath.dirname(glob), "**", posixpath.basename(glob)) for glob in globs
    ]


def _variable(value: Json) -> tuple[str, str]:
    name, text = _pair(value, "env_var", "value")
    if isinstance(value, str):
        text = value.partition("=")[2]  # Every blank of a value counts.
    if not text.strip():
        raise Unreadable(f"{shorten(name)} has no value, and Elyra leaves it unset then", "info")
    return name, as_literal(text)


def _key_and_value(value: Json) -> tuple[str, str]:
    return _pair(value, "key", "value")


def _pair(value: Json, first: str, second: str) -> tuple[str, str]:
    """`name=text`, where only the first `=` counts, or an object."""
    if isinstance(value, str):
        name, _, text = value.partition("=")
        name, text = name.strip(), text.strip()
    else:
        fields = _fields(value, {first, second})
        name, text = fields.get(first, ""), fields.get(second, "")
    if not name:
        raise Unreadable(f"{shorten(value)} has no name")
    return name, text


def _secret(value: Json) -> dict[str, str]:
    """`VARIABLE=secret:key` or an object."""
    if isinstance(value, str):
        env, _, reference = value.partition("=")
        name, _, key = reference.partition(":")
        secret = {"env": env.strip(), "name": name.strip(), "key": key.strip()}
    else:
        fields = _fields(value, {"env_var", "name", "key"})
        secret = {
            "env": fields.get("env_var", ""),
            "name": fields.get("name", ""),
            "key": fields.get("key", ""),
        }
    if not all(secret.values()):
        raise Unreadable(f"{shorten(value)} does not name a variable, a secret and a key")
    return secret


def _volume(value: Json) -> dict[str, Any]:
    """`/path=claim` or an object. Elyra takes paths without their first slash."""
    if isinstance(value, str):
        path, _, claim = value.partition("=")
        fields: dict[str, Any] = {"path": path.strip(), "pvc_name": claim.strip()}
        read_only = False
    else:
        content = as_object(value)
        read_only = not is_empty(content.get("read_only")) and as_flag(content["read_only"])
        fields = _fields(
            {key: item for key, item in content.items() if key != "read_only"},
            {"path", "pvc_name", "sub_path"},
        )
    if not fields.get("path", "").strip("/") or not fields.get("pvc_name"):
        raise Unreadable(f"{shorten(value)} does not name a path and a volume claim")
    return without_empty(
        {
            "claim": fields["pvc_name"],
            "path": "/" + fields["path"].strip("/"),
            "sub_path": fields.get("sub_path"),
            "read_only": read_only or None,
        }
    )


def _toleration(value: Json) -> dict[str, str]:
    """`key:operator:value:effect`, perhaps with a name and `=` before it, or an object."""
    if isinstance(value, str):
        key, *others = value.split(":")
        if len(others) != 3:
            raise Unreadable(f"{shorten(value)} is not key:operator:value:effect")
        names = ("key", "operator", "value", "effect")
        fields = dict(zip(names, (key.rpartition("=")[2], *others), strict=True))
    else:
        fields = _fields(value, {"key", "operator", "value", "effect"})
    toleration = without_empty(fields)
    if toleration.get("operator", "Equal") not in OPERATORS:
        raise Unreadable(f"{shorten(toleration['operator'])} is not an operator of a toleration")
    if toleration.get("effect", EFFECTS[0]) not in EFFECTS:
        raise Unreadable(f"{shorten(toleration['effect'])} is not an effect of a taint")
    return toleration


def _selection(value: Json) -> bool:
    return as_flag(
        value["selection"] if isinstance(value, dict) and "selection" in value else value
    )


def _fields(value: Json, known: set[str]) -> dict[str, str]:
    content = as_object(value)
    if content.keys() - known:
        raise Unreadable(f"{shorten(sorted(content.keys() - known)[0])} is not known there")
    return {key: as_value_text(item) for key, item in content.items() if not is_empty(item)}
