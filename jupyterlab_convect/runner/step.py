"""What the runner is asked to do: the content of `step.json`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConvectError
from ..json_text import loads
from ..run_files import read_regular
from .view_spec import ViewSpec

KINDS = ("notebook", "script", "command", "component")


@dataclass(frozen=True, slots=True)
class Input:
    """A file or folder to place into the working folder before the start."""

    source: Path
    to: str


@dataclass(frozen=True, slots=True)
class StepSpec:
    step: str
    kind: str
    folder: Path
    run: str = ""
    attempt: int = 1
    source: Path | None = None
    inputs: tuple[Input, ...] = ()
    kernel: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    expected: float | None = None
    copy: Path | None = None
    """The source as it was at submit, wherever that is kept."""
    digest: str | None = None
    """Of the source as it was at submit."""
    notices: tuple[str, ...] = ()
    view: ViewSpec | None = None
    """The step's own version of the project folder; None when it shares the folder."""
    computed: tuple[str, ...] = ()
    """Parameters that it is not given, and whose defaults its source computes."""

    @property
    def title(self) -> str:
        """What a sentence calls it."""
        if self.source is not None:
            return self.source.name
        if self.kind == "component":
            return self.step
        return self.command[0] if self.command else self.step


def read_step(path: Path) -> StepSpec:
    """Read `step.json`; a ConvectError says what is wrong with it."""
    try:
        data = loads(read_regular(path))
    except OSError as error:
        raise ConvectError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConvectError(f"{path} is not JSON: {error}.") from error
    try:
        return _parse(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConvectError(
            f"{path} does not describe a step: {type(error).__name__} {error}."
        ) from error


def _parse(data: Any) -> StepSpec:
    kind = data["kind"]
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    source = data.get("source")
    command = tuple(str(part) for part in data.get("command") or ())
    if kind in ("notebook", "script") and not source:
        raise ValueError(f"a {kind} needs a source")
    if kind in ("command", "component") and not command:
        raise ValueError(f"a {kind} needs a command")
    timeout = data.get("timeout")
    return StepSpec(
        step=str(data.get("step") or "step"),
        kind=kind,
        folder=Path(data.get("folder") or (Path(source).parent if source else ".")),
        run=str((data.get("run") or {}).get("id") or ""),
        attempt=int(data.get("attempt") or 1),
        source=Path(source) if source else None,
        inputs=tuple(Input(Path(i["from"]), str(i["to"])) for i in data.get("inputs") or ()),
        kernel=data.get("kernel") or None,
        parameters=dict(data.get("parameters") or {}),
        command=command,
        env={str(name): str(value) for name, value in (data.get("env") or {}).items()},
        outputs=tuple(str(pattern) for pattern in data.get("outputs") or ()),
        metrics=dict(data.get("metrics") or {}),
        timeout=float(timeout) if timeout else None,
        expected=data.get("expected"),
        copy=Path(data["copy"]) if data.get("copy") else None,
        digest=data.get("digest") or None,
        notices=tuple(data.get("notices") or ()),
        view=ViewSpec.read(data["view"]) if data.get("view") else None,
        computed=tuple(str(name) for name in data.get("computed") or ()),
    )
