"""Asks registries whether they have an image, where an administrator lets us.

Only registries that are named are asked, by the HTTP interface of the Open Container Initiative
and without a password: what only those with one may know stays unknown, and nothing is said of it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from .catalog.fetch import Fetcher, Policy
from .errors import ConvectError
from .pipeline.plan import Plan
from .pipeline.problems import Problem
from .pipeline.profiles import DOCKER_HUB, ImageName, is_allowed, read_image
from .pools import Threads

PATIENCE = 3.0
"""Seconds for one question, those of a person who looks at a dialog."""
FRESH = 60.0
"""Seconds for which an answer is good."""
LARGEST = 1 << 20
PARALLEL = 8
PLAIN = "http://"
INTERNAL = "It has an internal address, and c.Convect.asked_registries does not name it."
MANIFESTS = ", ".join(
    [
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    ]
)
_PART = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Answer:
    has: bool | None
    """None where it is not known."""
    why: str = ""
    """Why the registry could not be asked, if that was so."""


class ImageRegistries:
    """Those that may be asked, as `c.Convect.asked_registries` names them. Blocks."""

    def __init__(self, rules: Sequence[str]) -> None:
        self._plain = {each.removeprefix(PLAIN) for each in rules if each.startswith(PLAIN)}
        self._rules = [each.removeprefix(PLAIN).removeprefix("https://") for each in rules]
        # One that is named may be internal; what only matches a pattern may not.
        named = [rule.partition("/")[0] for rule in self._rules if "*" not in rule]
        hosts = tuple(each.rpartition(":")[0] or each for each in named)
        self._policy = Policy(hosts, max_bytes=LARGEST, timeout=PATIENCE)
        self._known: dict[str, tuple[Answer, float]] = {}

    def problems(self, plan: Plan) -> list[Problem]:
        """What the registries say of the images of a plan, each asked once."""
        if not self._rules:
            return []
        steps: dict[str, str] = {}
        for step in plan.steps:
            if step.image:
                steps.setdefault(step.image, step.id)
        names = [(image, name) for image in steps if (name := read_image(image))]
        asked = [(image, name) for image, name in names if is_allowed(name, self._rules)]
        with Threads(min(PARALLEL, len(asked) or 1), "convect-registries") as threads:
            answers = list(threads.map(self._ask, asked))
        return [
            problem
            for (image, name), answer in zip(asked, answers, strict=True)
            for problem in _problem(image, name, answer, steps[image])
        ]

    def _ask(self, asked: tuple[str, ImageName]) -> Answer:
        image, name = asked
        known = self._known.get(image)
        if known is None or time.monotonic() - known[1] > FRESH:
            known = self._known[image] = self._look(name), time.monotonic()
        return known[0]

    def _look(self, name: ImageName) -> Answer:
        host, path = name.registry, name.path
        if host == DOCKER_HUB:
            host, path = "registry-1.docker.io", path if "/" in path else f"library/{path}"
        scheme = "http" if name.registry in self._plain else "https"
        url = f"{scheme}://{host}/v2/{path}/manifests/{name.digest or name.tag or 'latest'}"
        fetcher = Fetcher(self._policy, until=time.monotonic() + PATIENCE)
        try:
            status, headers = fetcher.head(url, MANIFESTS)
            challenge = headers.get("WWW-Authenticate") or ""
            if status == 401 and challenge.lower().startswith("bearer "):
                token = self._token(fetcher, dict(_PART.findall(challenge)))
                own = frozenset({host.rpartition(":")[0] or host})
                signed = replace(fetcher, authorization=f"Bearer {token}", authorized_hosts=own)
                status, _ = signed.head(url, MANIFESTS)
        except ConvectError as error:
            if error.code == "internal-address":
                return Answer(None, INTERNAL)
            return Answer(None, error.sentence)
        if status in (401, 403, 429):
            return Answer(None)
        if status >= 500:
            return Answer(None, f"{url} answered with {status}.")
        return Answer(status < 400)

    @staticmethod
    def _token(fetcher: Fetcher, challenge: dict[str, str]) -> str:
        """What everybody gets who asks for it."""
        asked = [(key, challenge[key]) for key in ("service", "scope") if key in challenge]
        page = fetcher.get(f"{challenge.get('realm', '')}?{urlencode(asked)}")
        try:
            found = json.loads(page.data)
            token = str(found.get("token") or found["access_token"])
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise ConvectError(f"{page.url} did not answer with a token.") from None
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise ConvectError(f"{page.url} did not answer with a token.")
        return token


def _problem(image: str, name: ImageName, answer: Answer, step: str) -> Iterator[Problem]:
    if answer.has is False:
        yield Problem(
            "warning",
            "image-missing",
            f"The registry {name.registry} has no image {image}.",
            step,
            ("image",),
            "Look at its name and its tag.",
        )
    elif answer.why:
        yield Problem(
            "warning",
            "registry-unreachable",
            f"Whether there is an image {image} is unknown: {answer.why}",
            step,
            ("image",),
        )
