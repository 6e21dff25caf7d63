"""The quotas of a namespace, and which of their limits a pod would be stopped by. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from ...pipeline.plan import Json
from .fit import Fit, Needs
from .objects import amount, bare
from .pod_facts import Amounts, amounts_of


@dataclass(frozen=True)
class Quota:
    name: str
    hard: Amounts
    used: Amounts


def quotas_of(items: Iterable[Json]) -> list[Quota]:
    """Those that count every pod; a quota with a scope may or may not count ours."""
    return [
        Quota(
            item["metadata"]["name"],
            amounts_of(item.get("status", {}).get("hard") or item["spec"].get("hard", {})),
            amounts_of(item.get("status", {}).get("used", {})),
        )
        for item in items
        if not item["spec"].get("scopes") and not item["spec"].get("scopeSelector")
    ]


def judge_quotas(needs: Needs, quotas: Iterable[Quota]) -> list[Fit]:
    """One verdict for each limit that is in the way."""
    found = []
    for quota in quotas:
        for key, hard in quota.hard.items():
            wanted = _asked(needs, key)
            if wanted is None:
                if key in ("limits.cpu", "limits.memory", "requests.cpu", "requests.memory"):
                    part, _, name = key.partition(".")
                    what = "CPU" if name == "cpu" else "memory"
                    sentence = (
                        f"The quota {quota.name} requires every pod to set a {what} {part[:-1]}."
                    )
                    found.append(Fit(False, False, sentence))
                continue
            left = max(hard - quota.used.get(key, Decimal(0)), Decimal(0))
            if wanted > left:
                found.append(_over_quota(quota.name, key, wanted, left, hard, needs.gpu_type))
    return found


def _over_quota(
    name: str, key: str, wanted: Decimal, left: Decimal, hard: Decimal, kind: str | None
) -> Fit:
    need = amount(key, wanted, kind)
    if wanted > hard:
        return Fit(
            False,
            False,
            f"It needs {need}, but the quota {name} allows {bare(key, hard)} in total.",
        )
    return Fit(
        False,
        True,
        f"It needs {need}; of the {bare(key, hard)} that the quota {name} allows, "
        f"{bare(key, left)} {'is' if left == 1 else 'are'} left.",
    )


def _asked(needs: Needs, key: str) -> Decimal | None:
    """How much of what a quota counts; None when the pod does not say."""
    if key == "count/jobs.batch":
        return Decimal(1)
    if key in ("count/pods", "pods"):
        return needs.requests.get("pods", Decimal(1))
    if key.startswith("limits."):
        return needs.limits.get(key.removeprefix("limits."))
    name = key.removeprefix("requests.")
    if name in ("cpu", "memory", "ephemeral-storage"):
        return needs.requests.get(name)
    return needs.requests.get(name, Decimal(0))
