from __future__ import annotations

from typing import Any


async def test_a_runtime_that_does_not_know_what_is_free(api: Any) -> None:
    status, error = await api("GET", "runtimes/local/top")
    assert status == 404
    assert error["message"] == "The runtime local does not know what there is and is free."
    status, error = await api("GET", "runtimes/moon/top")
    assert status == 404
