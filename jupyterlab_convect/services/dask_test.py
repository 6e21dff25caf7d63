"""Computes something on every worker of a Dask cluster and tells what is installed there.

Reads `{"cluster": <name>, "compute": <bool>}` from standard input and prints JSON: `workers` that
have answered, `seconds`, `versions` of the client, the scheduler and the workers; or an `error`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

PATIENCE = 60.0
NUMBERS = 1000


def main() -> None:
    order = json.load(sys.stdin)
    name = order["cluster"]
    try:
        told = _test(name, compute=order["compute"])
    except Exception as error:  # whatever stands in the way is what is asked for
        words = f"{type(error).__name__}: {error}".splitlines()[0].replace(name, "…")
        told = {"error": words.rstrip(" .:")[:500]}
    sys.stdout.write(json.dumps(told))


def _test(name: str, *, compute: bool) -> dict[str, Any]:
    from dask_gateway import Gateway

    with Gateway() as gateway, gateway.connect(name) as cluster, cluster.get_client() as client:
        workers = list(client.scheduler_info(n_workers=-1)["workers"]) if compute else []
        began = time.monotonic()
        sums = [
            client.submit(sum, range(NUMBERS), workers=[worker], pure=False) for worker in workers
        ]
        results = [future.result(timeout=PATIENCE) for future in sums]
        seconds = time.monotonic() - began
        wrong = [value for value in results if value != sum(range(NUMBERS))]
        if wrong:
            return {"error": f"a worker said that a sum is {wrong[0]}"}
        return {
            "workers": len(results),
            "seconds": round(seconds, 3),
            "versions": _versions(client.get_versions()),
        }


def _versions(told: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "client": told["client"]["packages"],
        "scheduler": {"": told["scheduler"]["packages"]},
        "workers": {address: each["packages"] for address, each in told["workers"].items()},
    }


if __name__ == "__main__":
    main()
