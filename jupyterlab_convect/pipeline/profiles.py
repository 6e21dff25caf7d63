"""What an administrator offers: profiles of resources, images with notes, and rules for images."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ConvectError, Missing
from .plan import Gpu, Json, Plan
from .problems import Problem
from .quantities import quantity

DOCKER_HUB = "docker.io"
_NAME = re.compile(
    r"(?:(?P<host>[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]+)?)/)?"
    r"(?P<path>[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[a-z0-9]+:[a-fA-F0-9]{32,}))?"
)
_PROFILE_KEYS = ("name", "image", "cpu", "memory", "gpu", "notes", "namespaces")
_IMAGE_KEYS = ("image", "notes")


@dataclass(frozen=True, slots=True)
class Profile:
    """A size to choose instead of numbers."""

    name: str
    image: str = ""
    cpu: str | float | None = None
    memory: str | float | None = None
    gpu: Gpu | None = None
    notes: str = ""
    namespaces: tuple[str, ...] = ()
    """Where it is offered; empty is everywhere."""

    def is_for(self, namespace: str | None) -> bool:
        return not self.namespaces or namespace is None or namespace in self.namespaces


@dataclass(frozen=True, slots=True)
class OfferedImage:
    image: str
    notes: str = ""


@dataclass(frozen=True, slots=True)
class ImageName:
    registry: str
    path: str
    tag: str | None
    digest: str | None


@dataclass(frozen=True, slots=True)
class Offering:
    """All that an administrator has configured."""

    profiles: tuple[Profile, ...] = ()
    images: tuple[OfferedImage, ...] = ()
    registries: tuple[str, ...] = ()
    """Registries, or the beginnings of names in them, that images may come from; empty is all."""

    def profile(self, name: str) -> Profile:
        for each in self.profiles:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.profiles)
        raise Missing(
            f"There is no profile {name[:80]!r}.",
            code="no-such-profile",
            hint=f"Profiles: {known}." if known else "Your administrator has configured none.",
        )


def read_offering(
    profiles: Iterable[Any], images: Iterable[Any], registries: Iterable[str]
) -> Offering:
    """As it is configured. ConvectError with what is wrong."""
    found = tuple(_profile(each) for each in profiles)
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise _wrong("profiles", f"two profiles are called {name!r}")
    return Offering(found, tuple(_offered(each) for each in images), tuple(registries))


def settings_of(profile: Profile) -> dict[str, Json]:
    """What it stands for in the settings of a document."""
    gpu = profile.gpu
    count = None if gpu is None else int(gpu.count) if gpu.count == int(gpu.count) else gpu.count
    named = {"type": gpu.type, "resource": gpu.resource} if gpu else {}
    given = {key: value for key, value in named.items() if value}
    resources = {
        "cpu": profile.cpu,
        "memory": profile.memory,
        "gpu": {"count": count, **given} if given else count,
    }
    kept = {key: value for key, value in resources.items() if value is not None}
    return {
        **({"image": profile.image} if profile.image else {}),
        **({"resources": kept} if kept else {}),
    }


def settings_times(profile: Profile, count: int) -> dict[str, Json]:
    """The same for a step that gets so many times as much, on one node."""
    if count == 1:
        return settings_of(profile)
    gpu = profile.gpu
    larger = replace(
        profile,
        cpu=None if profile.cpu is None else whole(float(quantity(profile.cpu)) * count),
        memory=None
        if profile.memory is None
        else memory_text(int(quantity(profile.memory) * count) >> 20),
        gpu=None if gpu is None else replace(gpu, count=gpu.count * count),
    )
    return settings_of(larger)


def memory_text(mebibytes: int) -> str:
    """`6Gi` or `6500Mi`, never more than that."""
    return f"{mebibytes >> 10}Gi" if mebibytes % 1024 == 0 else f"{mebibytes}Mi"


def floor_to(amount: float, part: float) -> float:
    return math.floor(amount / part + 1e-9) * part


def whole(amount: float) -> float | int:
    return int(amount) if amount == int(amount) else round(amount, 3)


def read_image(name: str) -> ImageName | None:
    """The parts of an image's name; None when it is none."""
    match = _NAME.fullmatch(name)
    if match is None or len(name) > 4096:
        return None
    host, path = match["host"], match["path"]
    if host and not ("." in host or ":" in host or host == "localhost"):
        # `team/image` is a path: a registry has a dot, a port, or is this machine.
        if host != host.lower():
            return None
        host, path = None, f"{host}/{path}"
    return ImageName(host or DOCKER_HUB, path, match["tag"], match["digest"])


def is_allowed(name: ImageName, registries: Iterable[str]) -> bool:
    """Whether the image comes from one of them: `ghcr.io`, `ghcr.io/team`, `*.example.org`."""
    rules = [each.rstrip("/") for each in registries]
    if not rules:
        return True
    for rule in rules:
        host, _, path = rule.partition("/")
        matches = name.registry == host or (
            host.startswith("*.") and name.registry.endswith(host[1:])
        )
        if matches and (not path or f"{name.path}/".startswith(f"{path}/")):
            return True
    return False


def check_images(plan: Plan, registries: Iterable[str]) -> Iterator[Problem]:
    """What is wrong with the images that the steps of a plan name, each said once."""
    rules = list(registries)
    seen: dict[str, str] = {}
    for step in plan.steps:
        if step.image:
            seen.setdefault(step.image, step.id)
    for image, step_id in seen.items():
        yield from _check_image(image, rules, step_id)


def _check_image(image: str, registries: list[str], step: str) -> Iterator[Problem]:
    where = ("image",)
    name = read_image(image)
    if name is None:
        yield Problem(
            "error",
            "bad-image",
            f"“{image[:100]}” is not the name of an image.",
            step,
            where,
            "Write it as registry/path:tag, in lower case.",
        )
        return
    if not is_allowed(name, registries):
        yield Problem(
            "error",
            "registry-not-allowed",
            f"The image {image} comes from {name.registry}, which is not allowed here.",
            step,
            where,
            f"Images may come from: {', '.join(registries)}.",
        )
    if name.digest is None and name.tag in (None, "latest"):
        yield Problem(
            "warning",
            "image-latest",
            f"The image {image} has no fixed version: what it contains can change between runs.",
            step,
            where,
            "Name a tag other than latest, or a digest.",
        )


def _profile(entry: Any) -> Profile:
    given = _entry("profiles", entry, _PROFILE_KEYS, "name")
    name = given["name"]
    for key in ("cpu", "memory"):
        value = given.get(key)
        try:
            if value is not None and (isinstance(value, bool) or quantity(value) <= 0):
                raise _wrong("profiles", f"`{key}` of {name!r} is not an amount above 0")
        except (ConvectError, TypeError, AttributeError) as error:
            sentence = error.sentence if isinstance(error, ConvectError) else "it is no amount"
            raise _wrong("profiles", f"`{key}` of {name!r}: {sentence}") from None
    namespaces = given.get("namespaces") or []
    if not isinstance(namespaces, list | tuple) or not all(isinstance(n, str) for n in namespaces):
        raise _wrong("profiles", f"`namespaces` of {name!r} is not a list of names")
    return Profile(
        name=name,
        image=_image("profiles", given["image"]) if given.get("image") else "",
        cpu=given.get("cpu"),
        memory=given.get("memory"),
        gpu=_gpu(name, given.get("gpu")),
        notes=str(given.get("notes") or ""),
        namespaces=tuple(namespaces),
    )


def _gpu(name: str, value: Any) -> Gpu | None:
    if value is None:
        return None
    given = {"count": value} if isinstance(value, int | float) else value
    if not isinstance(given, Mapping) or set(given) - {"count", "type", "resource"}:
        raise _wrong("profiles", f"`gpu` of {name!r} is a number, or has count, type and resource")
    count = given.get("count", 1)
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count < 1e6:
        raise _wrong("profiles", f"`gpu` of {name!r} has no valid count")
    texts = {key: str(given[key]) for key in ("type", "resource") if given.get(key)}
    return Gpu(float(count), **texts) if count else None


def _offered(entry: Any) -> OfferedImage:
    given = _entry(
        "images", {"image": entry} if isinstance(entry, str) else entry, _IMAGE_KEYS, "image"
    )
    return OfferedImage(_image("images", given["image"]), str(given.get("notes") or ""))


def _image(trait: str, value: Any) -> str:
    if not isinstance(value, str) or read_image(value) is None:
        raise _wrong(trait, f"{str(value)[:80]!r} is not the name of an image")
    return value


def _entry(trait: str, entry: Any, keys: tuple[str, ...], main: str) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get(main), str) or not entry[main]:
        raise _wrong(trait, f"an entry has no `{main}`")
    unknown = set(entry) - set(keys)
    if unknown:
        raise _wrong(trait, f"{entry[main]!r} has an unknown key {min(map(str, unknown))!r}")
    return entry


def _wrong(trait: str, what: str) -> ConvectError:
    what = what.rstrip(".")
    return ConvectError(f"c.Convect.{trait} is wrong: {what}.", code="bad-config")
