"""Labs whose distributed steps are run by a certain operator."""

from __future__ import annotations

import contextlib
from typing import Any

from jupyterlab_convect.runtimes.kubernetes.api import ApiError


def by_operator(lab: Any, kind: str) -> Any:
    """What it starts is run by this operator."""
    start = lab.start

    async def operated(what: Any, *more: Any, **how: Any) -> Any:
        for node in what.values():
            node["distributed"] = {**node["distributed"], "operator": kind}
        return await start(what, *more, **how)

    lab.start = operated
    return lab


async def clean_up(bed: Any) -> None:
    """What a failed test left would be in the way of the next."""
    for plural in ("trainjobs", "trainingruntimes", "pytorchjobs", "tfjobs", "mpijobs"):
        with contextlib.suppress(ApiError):
            bed.admin.delete(bed.admin.path(plural), propagationPolicy="Background")
