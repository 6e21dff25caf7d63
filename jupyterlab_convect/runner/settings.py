"""What whoever starts the runner can set, by environment variables, and what steps then see."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .step import StepSpec

_PREFIX = "CONVECT_"
VALUES = "values.ndjson"
"""The file in the attempt folder that steps report to."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Each field is set by the variable of its name in capitals, after `CONVECT_`."""

    output_limit: int = 10_000_000
    """Bytes of output kept in the notebook for one cell."""
    log_limit: int = 100_000_000
    """Bytes of `log.txt`."""
    memory_limit: int = 0
    """Bytes of memory that the step may have; 0 means no limit."""
    cpu_limit: float = 0.0
    """Processors that the step may keep busy, where that can be limited; 0 means no limit."""
    grace: float = 5.0
    """Seconds a step has to end by itself once it is asked to stop."""
    start_timeout: float = 60.0
    """Seconds a kernel has to start."""

    overlays: int = 1
    """Whether a step may see its folder through an overlay; 0 means that it is copied."""

    copied_files: int = 5000
    """Files of a project that are copied for a step, where there can be no overlay."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        def number(name: str, default: float) -> float:
            try:
                return float(environment[_PREFIX + name.upper()])
            except (KeyError, ValueError):
                return default

        base = cls()
        return cls(
            output_limit=int(number("output_limit", base.output_limit)),
            log_limit=int(number("log_limit", base.log_limit)),
            memory_limit=int(number("memory_limit", base.memory_limit)),
            cpu_limit=number("cpu_limit", base.cpu_limit),
            grace=number("grace", base.grace),
            start_timeout=number("start_timeout", base.start_timeout),
            overlays=int(number("overlays", base.overlays)),
            copied_files=int(number("copied_files", base.copied_files)),
        )


def child_environment(step: StepSpec, values: Path) -> dict[str, str]:
    """The environment of what the step executes: ours, less what is meant for us, and its own.

    The limits stay: who starts containers has to pass them on.
    """
    names = set(Settings.__slots__) - {"memory_limit", "cpu_limit"}
    private = {_PREFIX + name.upper() for name in names} | {
        "CONVECT_SECRETS",
        "CONVECT_SCRATCH",
    }
    ours = {name: value for name, value in os.environ.items() if name not in private}
    return {
        **ours,
        **step.env,
        "CONVECT_RUN": step.run,
        "CONVECT_STEP": step.step,
        "CONVECT_ATTEMPT": str(step.attempt),
        "CONVECT_VALUES": str(values),
    }


def mark_of(values: Path) -> str:
    """What the environment of everything that a step starts has, and of nothing else."""
    return f"CONVECT_VALUES={values}"
