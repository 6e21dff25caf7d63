"""The embedded runtime: steps are processes on this machine, and outlive the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .runtime import LocalRuntime

__all__ = ["LocalRuntime"]


def __getattr__(name: str) -> Any:
    if name == "LocalRuntime":
        from .runtime import LocalRuntime

        return LocalRuntime
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
