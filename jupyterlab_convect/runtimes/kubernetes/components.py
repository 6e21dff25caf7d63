"""Components as pods: what their container is, before, and what it left, afterwards.

A component knows nothing of us. Its image starts its own command, its log is what its
container prints, and its outputs are collected here once it has ended.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ...catalog.definition import component_from_json
from ...catalog.execute import collect, make_ready
from ...catalog.model import Component
from ...catalog.render import Argument
from ...catalog.run import (
    SEEN,
    Folders,
    Launch,
    arguments_of,
    as_distant_pod,
    as_pod,
    context_of,
    in_view,
)
from ...errors import ConvectError
from ...json_text import dumps, loads
from ...pipeline.plan import Json, Step
from ...run_files import open_regular, read_regular, size_of_regular
from ...runner import files
from ...runner.outcome import StepFailed, explain_end
from ...runner.saving import write_whole
from ..base import Attempt
from . import bundles
from .delivery import KEPT, PYTHON, Parcel, Way, as_secret, carrier
from .fingerprints import KEY, Fingerprints, forget_key, guard_program, make_key
from .manifests import Delivery, Escort, Guard
from .objects import Finding, Object, seconds_of, terminated
from .site import Site

LAST_WORDS = 4000
THERE = "/convect"
"""Where inputs and outputs are in a pod that shares no volume with us."""


def make_parcel(attempt: Attempt, site: Site, way: Way, secret: str, carry: int) -> Parcel:
    """Writes (or packs) the inputs: call it in a thread."""
    spec = _read(attempt)
    component, folders = component_of(spec), Folders(Path(spec["folder"]))
    arguments = _arguments(spec, component, folders)
    if way == "shared":
        launch = as_pod(component, arguments, folders, context_of(spec))
        make_ready(launch, folders)
        binds = {path: str(real) for path, real in launch.binds.items()}
        started = _started(launch, attempt, secret)
        delivery = Delivery(**started, shares=site.shares, binds=binds)
        return Parcel(way, delivery, as_secret(_key(attempt)) or None, _expected(launch))
    launch, inputs = as_distant_pod(component, arguments, folders, context_of(spec))
    content = {
        "bundle.tar.xz": _pack(attempt, launch, folders, inputs),
        "carrier.py": carrier(),
        **_key(attempt),
    }
    delivery = Delivery(
        **_started(launch, attempt, secret),
        binds={
            SEEN.inputs: f"{THERE}/inputs",
            SEEN.outputs: f"{THERE}/outputs",
            **{path: _there(str(seen)) for path, seen in launch.binds.items()},
        },
        secret=secret,
        scratch=(THERE,),
        ttl=max(site.ttl, KEPT),
        escort=Escort(
            (PYTHON, f"{Delivery.inbox}/carrier.py", "unpack", Delivery.inbox),
            (PYTHON, f"{Delivery.inbox}/carrier.py", "home", THERE, str(carry)),
        ),
    )
    return Parcel(way, delivery, as_secret(content), _expected(launch))


def rehearsed(step: Step, definition: Json, site: Site) -> Delivery:
    """What can be known of a component's pod before its inputs are there."""
    component = component_from_json(definition)
    image = component.container.image if component.container else None
    guard = Guard(guard_program(), "name") if step.secrets else None
    if site.shares:
        return Delivery((), image=image, shares=site.shares, guard=guard)
    escort = Escort((PYTHON,), (PYTHON,))
    return Delivery((), image=image, scratch=(THERE,), escort=escort, guard=guard)


def component_of(spec: Json) -> Component:
    return component_from_json(spec["component"]["definition"])


def conclude(
    attempt: Attempt,
    finding: Finding,
    pod: Object | None,
    marks: Fingerprints | None = None,
    missing: Iterable[str] = (),
    lost: str | None = None,
) -> None:
    """Write down how it ended, in the words and with the results that any step has.

    `lost`: why there are no results although it succeeded.
    """
    spec = _read(attempt)
    end = (terminated(pod) if pod else None) or {}
    state, reason, error = _end(attempt, finding, end)
    metrics = _metrics(spec, attempt.folder / "log.txt")
    values: dict[str, Json] = {}
    facts: list[Json] = []
    if state == "succeeded":
        try:
            if lost:
                raise StepFailed(lost)
            _no_results_left_behind(missing)
            found, facts = _take_results(attempt, spec)
            found = [marks.hide_in(item) for item in found] if marks else found
            values = {item["name"]: item["value"] for item in found if item["kind"] == "output"}
            metrics |= {item["name"]: item["value"] for item in found if item["kind"] == "metric"}
        except (ConvectError, StepFailed) as trouble:
            state, reason = "failed", str(trouble)
    outcome = {
        "state": state,
        **({"reason": reason, "error": error} if reason else {}),
        "exit_code": end.get("exitCode", 0 if state == "succeeded" else 1),
        "started": _seconds(end.get("startedAt")),
        "ended": _seconds(end.get("finishedAt")) or time.time(),
        "values": values,
        "metrics": metrics,
        "files": facts,
    }
    _tell(attempt, outcome)
    write_whole(attempt.folder / "outputs.json", dumps(outcome).encode())
    forget_key(attempt.folder)


def _key(attempt: Attempt) -> dict[str, bytes]:
    """What the container that knows its secrets needs."""
    return {KEY: make_key(attempt.folder).encode()} if attempt.step.secrets else {}


def _started(launch: Launch, attempt: Attempt, secret: str) -> dict[str, Any]:
    """The user under which it runs here mostly has no home in the image."""
    env = {"HOME": "/tmp", **launch.env, **attempt.step.env}  # noqa: S108
    return {
        "command": launch.command,
        "args": launch.args,
        "image": launch.image,
        "env": env,
        "guard": Guard(guard_program(), secret) if attempt.step.secrets else None,
    }


def _expected(launch: Launch) -> Json:
    """What to look for afterwards; it goes into the handle."""
    return {
        "reads": {name: str(path) for name, path in launch.reads.items()},
        "executor_output": str(launch.executor_output) if launch.executor_output else None,
    }


def _arguments(spec: Json, component: Component, folders: Folders) -> dict[str, Argument]:
    given = spec["component"]
    files = in_view(given, folders.work / "merged")
    return arguments_of(component, files, (folders.work, Path(given["root"])))


def _pack(attempt: Attempt, launch: Launch, folders: Folders, inputs: Mapping[str, str]) -> bytes:
    contents = {
        _placed(path, folders): text.encode(errors="surrogateescape")
        for path, text in launch.writes.items()
    }
    contents |= bundles.load(
        (
            (file, PurePosixPath(_there(seen)) / file.relative_to(real).as_posix())
            for seen, real in inputs.items()
            for file in bundles.below(Path(real))
        ),
        attempt.step,
    )
    wanted = {
        "folders": [_placed(path.parent, folders) for path in launch.reads.values()],
        "files": [_placed(path, folders) for path in launch.mounts],
    }
    contents[f"{THERE}/places.json"] = json.dumps(wanted).encode()
    return bundles.compress(contents, attempt.step)


def _placed(path: Path, folders: Folders) -> str:
    """A path of the working folder as it is in the pod."""
    return f"{THERE}/{path.relative_to(folders.work).as_posix()}"


def _there(seen: str) -> str:
    """A path that the component sees as its escort sees it."""
    for base, name in ((SEEN.inputs, "inputs"), (SEEN.outputs, "outputs")):
        if seen.startswith(base + "/"):
            return f"{THERE}/{name}{seen[len(base) :]}"
    return seen


def _end(
    attempt: Attempt, finding: Finding, end: Json
) -> tuple[str, str | None, dict[str, Any] | None]:
    """State, reason and error. The container's own end is its own; the rest the cluster's."""
    with contextlib.suppress(OSError, ValueError):
        stop = json.loads(read_regular(attempt.folder / "stop.json"))
        return stop["state"], stop["reason"], None
    code = end.get("exitCode")
    if code == 0:
        return "succeeded", None, None
    if code is None or end.get("reason") != "Error":
        return "failed", finding.reason or "It failed and gave no reason.", None
    said = _tail(attempt.folder / "log.txt")
    last = said.rpartition("\n")[2].strip()
    how = explain_end(code)
    reason = f"{attempt.step.id} {how}" + (f": {last[:300]}" if last else ".")
    return "failed", reason, {"name": "exit", "value": how, "traceback": said}


def _no_results_left_behind(missing: Iterable[str]) -> None:
    names = [name.removeprefix("outputs/").removesuffix("/data") for name in missing]
    if names:
        more = " and more" if len(names) > 3 else ""
        raise StepFailed(
            "The results are too large to be copied back without a shared volume: "
            f"{', '.join(names[:3])}{more}."
        )


def _take_results(attempt: Attempt, spec: Json) -> tuple[list[Json], list[Json]]:
    """What the outputs say, and the files that are kept."""
    work, expected = Path(spec["folder"]), (attempt.handle or {}).get("results") or {}
    (work / "outputs").mkdir(parents=True, exist_ok=True)
    _drop_links(work)
    told = expected.get("executor_output")
    launch = Launch(
        command=(),
        env={},
        reads={name: Path(path) for name, path in expected.get("reads", {}).items()},
        executor_output=Path(told) if told else None,
    )
    found = list(collect(component_of(spec), launch, attempt.folder, work))
    kept = files.collect(spec["outputs"], work, attempt.folder / "files", strict=True)
    return found, kept


def _drop_links(work: Path) -> None:
    """A pod must not have us read what it cannot read itself, nor wait for what never comes."""
    home = work.resolve()
    for path in (work / "outputs").rglob("*"):
        inside = path.resolve().is_relative_to(home)
        if not inside or not (path.is_symlink() or path.is_file() or path.is_dir()):
            path.unlink()


def _metrics(spec: Json, log: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    patterns = {name: re.compile(text) for name, text in (spec.get("metrics") or {}).items()}
    if not patterns:
        return found
    with contextlib.suppress(OSError), open_regular(log) as file:
        for line in io.TextIOWrapper(file, encoding="utf-8", errors="replace"):
            for name, pattern in patterns.items():
                for match in pattern.finditer(line):
                    with contextlib.suppress(TypeError, ValueError):
                        found[name] = float(match.group(1 if pattern.groups else 0))
    return found


def _tell(attempt: Attempt, outcome: Json) -> None:
    """The events of a step, all at once: nobody of ours was there while it ran."""
    begun, ended = outcome["started"] or outcome["ended"], outcome["ended"]
    events: list[Json] = [
        {"time": begun, "type": "step.start", "step": attempt.step.id, "attempt": attempt.number},
        *(
            {"time": ended, "type": "output", "name": name, "value": value}
            for name, value in outcome["values"].items()
        ),
        *(
            {"time": ended, "type": "metric", "name": name, "value": value, "step": None}
            for name, value in outcome["metrics"].items()
        ),
        {
            "time": ended,
            "type": "step.end",
            "state": outcome["state"],
            "reason": outcome.get("reason"),
        },
    ]
    lines = "".join(dumps(event) + "\n" for event in events)
    write_whole(attempt.folder / "events.ndjson", lines.encode())


def _tail(log: Path) -> str:
    try:
        with open_regular(log) as file:
            file.seek(max(size_of_regular(log) - LAST_WORDS, 0))
            return file.read().decode(errors="replace").rstrip()
    except OSError:
        return ""


def _seconds(stamp: str | None) -> float | None:
    return seconds_of(stamp) if stamp else None


def _read(attempt: Attempt) -> Json:
    return loads(read_regular(attempt.folder / "step.json"))
