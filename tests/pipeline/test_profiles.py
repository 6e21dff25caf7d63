from __future__ import annotations

from typing import Any

import pytest

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Plan, Step
from jupyterlab_convect.pipeline.profiles import (
    check_images,
    is_allowed,
    read_image,
    read_offering,
    settings_of,
    settings_times,
)


@pytest.mark.parametrize(
    ("name", "registry", "path", "tag"),
    [
        ("python", "docker.io", "python", None),
        ("python:3.12", "docker.io", "python", "3.12"),
        ("team/tool:1", "docker.io", "team/tool", "1"),
        ("ghcr.io/team/tool", "ghcr.io", "team/tool", None),
        ("localhost:5000/a/b:c", "localhost:5000", "a/b", "c"),
        ("ghcr.io/t/x@sha256:" + 64 * "a", "ghcr.io", "t/x", None),
    ],
)
def test_the_parts_of_a_name(name: str, registry: str, path: str, tag: str | None) -> None:
    found = read_image(name)
    assert found is not None
    assert (found.registry, found.path, found.tag) == (registry, path, tag)


@pytest.mark.parametrize(
    "name", ["", "Python", "a b", "ghcr.io/", "x:", "x@sha256:1", "https://x/y"]
)
def test_what_is_no_name(name: str) -> None:
    assert read_image(name) is None


@pytest.mark.parametrize(
    ("rule", "name", "allowed"),
    [
        ("ghcr.io", "ghcr.io/team/a:1", True),
        ("ghcr.io/team", "ghcr.io/team/a:1", True),
        ("ghcr.io/team", "ghcr.io/teams/a:1", False),
        ("*.example.org", "r.example.org/a:1", True),
        ("*.example.org", "badexample.org/a:1", False),
        ("docker.io/library", "python:3", False),
        ("docker.io", "python:3", True),
    ],
)
def test_registries_that_are_allowed(rule: str, name: str, allowed: bool) -> None:
    found = read_image(name)
    assert found is not None
    assert is_allowed(found, [rule]) is allowed
    assert is_allowed(found, [])


def codes(image: str, *registries: str) -> list[tuple[str, str]]:
    plan = Plan("p", (Step("a", "script", "a", image=image), Step("b", "script", "b", image=image)))
    return [(each.severity, each.code) for each in check_images(plan, registries)]


def test_images_are_checked_once_each() -> None:
    assert codes("ghcr.io/t/a:1") == []
    assert codes("ghcr.io/t/a") == [("warning", "image-latest")]
    assert codes("ghcr.io/t/a:latest") == [("warning", "image-latest")]
    assert codes("ghcr.io/t/a:latest@sha256:" + 64 * "0") == []
    assert codes("ghcr.io/t/a:1", "quay.io") == [("error", "registry-not-allowed")]
    assert codes("Not An Image") == [("error", "bad-image")]


def test_a_profile_as_settings_and_several_times() -> None:
    entry = {
        "name": "GPU",
        "image": "ghcr.io/t/a:1",
        "cpu": "500m",
        "memory": "1536Mi",
        "gpu": {"count": 1, "type": "T4"},
    }
    (profile,) = read_offering([entry], [], []).profiles
    assert settings_of(profile)["resources"]["gpu"] == {"count": 1, "type": "T4"}
    assert settings_times(profile, 3) == {
        "image": "ghcr.io/t/a:1",
        "resources": {"cpu": 1.5, "memory": "4608Mi", "gpu": {"count": 3, "type": "T4"}},
    }


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "has no `name`"),
        ("x", "has no `name`"),
        ({"name": "x", "cpus": 1}, "unknown key 'cpus'"),
        ({"name": "x", "cpu": "many"}, "`cpu` of 'x'"),
        ({"name": "x", "cpu": 0}, "not an amount above 0"),
        ({"name": "x", "memory": True}, "not an amount"),
        ({"name": "x", "gpu": "two"}, "`gpu` of 'x'"),
        ({"name": "x", "gpu": {"count": -1}}, "no valid count"),
        ({"name": "x", "image": "Not One"}, "not the name of an image"),
        ({"name": "x", "namespaces": "team"}, "not a list of names"),
    ],
)
def test_what_is_wrong_with_a_profile_is_said(entry: Any, words: str) -> None:
    with pytest.raises(ConvectError) as caught:
        read_offering([entry], [], [])
    assert caught.value.sentence.startswith("c.Convect.profiles is wrong: ")
    assert words in caught.value.sentence


def test_two_profiles_of_one_name_are_refused() -> None:
    with pytest.raises(ConvectError, match="two profiles are called 'x'"):
        read_offering([{"name": "x"}, {"name": "x"}], [], [])
