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
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from ...catalog.execute import collect, make_ready
from ...catalog.launch import (
    SEEN,
    Folders,
    Launch,
    arguments_of,
    as_distant_pod,
    as_pod,
    context_of,
    in_view,
)
from ...catalog.model import Component, component_from_json
from ...catalog.render import Argument
from ...errors import ConvectError
from ...json_text import dumps, loads
from ...pipeline.plan import Json, Step
from ...runner import declared_files
from ...runner.outcome import Ending, StepFailed, explain_end, write_outcome
from ...safe_files import open_regular, read_regular, size_of_regular, write_whole
from ...transfer.base import KEPT, PYTHON, Mounts, Transfer
from ...transfer.bundle import SendingTransfer, agent_program
from ...transfer.pack import FOLDER, Package, below_root, files_below
from ..base import Attempt
from .manifests import DigestContainer, FileContainers, PodContent
from .objects import Diagnosis, Object, seconds_of, terminated
from .pod_defaults import PodDefaults
from .prepare import Prepared, as_secret
from .secret_digests import KEY, SecretDigests, digest_program, forget_key, make_key

LAST_WORDS = 4000


def prepare(attempt: Attempt, defaults: PodDefaults, transfer: Transfer, secret: str) -> Prepared:
    """Writes (or sends) the inputs: call it in a thread."""
    spec = _read(attempt)
    component, folders = component_of(spec), Folders(Path(spec["folder"]))
    arguments = _arguments(spec, component, folders)
    if not isinstance(transfer, SendingTransfer):
        launch = as_pod(component, arguments, folders, context_of(spec))
        make_ready(launch, folders)
        content = PodContent(
            **_started(launch, attempt, secret),
            mounts=Mounts(transfer.mounts().volumes),
            binds={path: str(real) for path, real in launch.binds.items()},
        )
        return Prepared(transfer.way, content, as_secret(_key(attempt)) or None, _expected(launch))
    launch, inputs = as_distant_pod(component, arguments, folders, context_of(spec))
    inbox = {
        **transfer.send(attempt, _package(launch, folders, inputs)),
        "agent.py": agent_program(),
        **_key(attempt),
    }
    content = PodContent(
        **_started(launch, attempt, secret),
        binds={
            SEEN.inputs: f"{FOLDER}/inputs",
            SEEN.outputs: f"{FOLDER}/outputs",
            **{path: _path_in_pod(str(seen)) for path, seen in launch.binds.items()},
        },
        mounts=replace(transfer.mounts(), volumes=()),
        secret=secret,
        ttl=max(defaults.ttl, KEPT),
        file_containers=FileContainers(transfer.agent("unpack"), transfer.agent("send")),
    )
    return Prepared(transfer.way, content, as_secret(inbox), _expected(launch))


def planned_content(step: Step, definition: Json, transfer: Transfer) -> PodContent:
    """What can be known of a component's pod before its inputs are there."""
    component = component_from_json(definition)
    image = component.container.image if component.container else None
    digests = DigestContainer(digest_program(), "name") if step.secrets else None
    if not isinstance(transfer, SendingTransfer):
        mounts = Mounts(transfer.mounts().volumes)
        return PodContent((), image=image, mounts=mounts, digest_container=digests)
    mounts = Mounts(scratch=transfer.mounts().scratch)
    files = FileContainers((PYTHON,), (PYTHON,))
    return PodContent(
        (), image=image, mounts=mounts, file_containers=files, digest_container=digests
    )


def component_of(spec: Json) -> Component:
    return component_from_json(spec["component"]["definition"])


def conclude(
    attempt: Attempt,
    diagnosis: Diagnosis,
    pod: Object | None,
    digests: SecretDigests | None = None,
    missing: Iterable[str] = (),
    lost: str | None = None,
) -> None:
    """Write down how it ended, in the words and with the results that any step has.

    `lost`: why there are no results although it succeeded.
    """
    spec = _read(attempt)
    end = (terminated(pod) if pod else None) or {}
    ending = _end(attempt, diagnosis, end)
    metrics = _metrics(spec, attempt.folder / "log.txt")
    values: dict[str, Json] = {}
    files: list[Json] = []
    if ending.state == "succeeded":
        try:
            if lost:
                raise StepFailed(lost)
            _no_results_left_behind(missing)
            found, files = _take_results(attempt, spec)
            found = [digests.hide_in(item) for item in found] if digests else found
            values = {item["name"]: item["value"] for item in found if item["kind"] == "output"}
            metrics |= {item["name"]: item["value"] for item in found if item["kind"] == "metric"}
        except (ConvectError, StepFailed) as trouble:
            ending = Ending("failed", str(trouble))
    facts = {
        "exit_code": end.get("exitCode", 0 if ending.state == "succeeded" else 1),
        "started": _seconds(end.get("startedAt")),
        "ended": _seconds(end.get("finishedAt")) or time.time(),
        "values": values,
        "metrics": metrics,
        "files": files,
    }
    _tell(attempt, ending, facts)
    write_outcome(attempt.folder, ending, facts)
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
        "digest_container": DigestContainer(digest_program(), secret)
        if attempt.step.secrets
        else None,
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


def _package(launch: Launch, folders: Folders, inputs: Mapping[str, str]) -> Package:
    texts = {
        _below_folder(path, folders): text.encode(errors="surrogateescape")
        for path, text in launch.writes.items()
    }
    files = below_root(
        (file, PurePosixPath(_path_in_pod(seen)) / file.relative_to(real).as_posix())
        for seen, real in inputs.items()
        for file in files_below(Path(real))
    )
    wanted = {
        "folders": [
            f"{FOLDER}/{_below_folder(path.parent, folders)}" for path in launch.reads.values()
        ],
        "files": [f"{FOLDER}/{_below_folder(path, folders)}" for path in launch.mounts],
    }
    return Package({**texts, "places.json": json.dumps(wanted).encode()}, files)


def _below_folder(path: Path, folders: Folders) -> str:
    """A path of the working folder as it is below the pod's folder."""
    return path.relative_to(folders.work).as_posix()


def _path_in_pod(seen: str) -> str:
    """A path that the component sees, as the containers before and after it see it."""
    for base, name in ((SEEN.inputs, "inputs"), (SEEN.outputs, "outputs")):
        if seen.startswith(base + "/"):
            return f"{FOLDER}/{name}{seen[len(base) :]}"
    return seen


def _end(attempt: Attempt, diagnosis: Diagnosis, end: Json) -> Ending:
    """The container's own end is its own; the rest the cluster's."""
    with contextlib.suppress(OSError, ValueError):
        stop = json.loads(read_regular(attempt.folder / "stop.json"))
        return Ending(stop["state"], stop["reason"])
    code = end.get("exitCode")
    if code == 0:
        return Ending("succeeded")
    if code is None or end.get("reason") != "Error":
        return Ending("failed", diagnosis.reason or "It failed and gave no reason.")
    said = _tail(attempt.folder / "log.txt")
    last = said.rpartition("\n")[2].strip()
    how = explain_end(code)
    reason = f"{attempt.step.id} {how}" + (f": {last[:300]}" if last else ".")
    return Ending("failed", reason, {"name": "exit", "value": how, "traceback": said})


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
    kept = declared_files.collect(spec["outputs"], work, attempt.folder / "files", strict=True)
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


def _tell(attempt: Attempt, ending: Ending, facts: Json) -> None:
    """The events of a step, all at once: nobody of ours was there while it ran."""
    begun, ended = facts["started"] or facts["ended"], facts["ended"]
    events: list[Json] = [
        {"time": begun, "type": "step.start", "step": attempt.step.id, "attempt": attempt.number},
        *(
            {"time": ended, "type": "output", "name": name, "value": value}
            for name, value in facts["values"].items()
        ),
        *(
            {"time": ended, "type": "metric", "name": name, "value": value, "step": None}
            for name, value in facts["metrics"].items()
        ),
        {
            "time": ended,
            "type": "step.end",
            "state": ending.state,
            "reason": ending.reason,
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
