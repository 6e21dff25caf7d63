"""Files of a step on their way to a pod that shares no volume with us: one small archive.

The pod sees `/convect/root` (the tree of the sources) and `/convect/attempt`.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ...errors import ConvectError, Refused
from ...pipeline.plan import Json, Plan, Step, from_json
from ...runner.outcome import size

ROOT, ATTEMPT = PurePosixPath("/convect/root"), PurePosixPath("/convect/attempt")
LARGEST = 900_000
"""Bytes that fit into a Secret beside the runner."""
LARGEST_WHOLE = 64 * LARGEST
"""Bytes that are worth the try to make them small."""


@dataclass(frozen=True)
class Asked:
    """What a bundle needs to know of the run: its root folder and its plan."""

    root: Path
    plan: Plan


def read_run(attempt_folder: Path) -> Asked:
    """From `run.json`, three folders above the attempt's."""
    data = json.loads((attempt_folder.parents[2] / "run.json").read_bytes())
    return Asked(Path(data["request"]["root"]), from_json(Plan, data["plan"]))


def pack(attempt_folder: Path, step: Step, asked: Asked) -> bytes:
    """The archive: `step.json` for the pod, and every file that was declared. Refused if large."""
    spec = json.loads((attempt_folder / "step.json").read_bytes())
    handed = handed_on(spec, attempt_folder.parents[3])
    moved = translate(spec, asked.root, handed)
    files = load((*_files(spec, step, asked), *_within(handed)), step)
    return compress({str(ATTEMPT / "step.json"): json.dumps(moved).encode(), **files}, step)


def load(files: Iterable[tuple[Path, PurePosixPath]], step: Step) -> dict[str, bytes]:
    """What lies in each file, by its place in the pod. Refused before too much is read."""
    contents, total = {}, 0
    for source, target in files:
        try:
            total += source.stat().st_size
            if total > LARGEST_WHOLE:
                raise _too_large(step, total)
            contents[str(target)] = source.read_bytes()
        except OSError as error:
            raise ConvectError(f"{source.name} cannot be read: {error.strerror}.") from None
    return contents


def compress(contents: Mapping[str, bytes], step: Step) -> bytes:
    """The archive of what lies at each path of the pod. Refused if large."""
    archive = lzma.compress(_tar(contents), preset=6)
    if len(archive) > LARGEST:
        raise _too_large(step, len(archive))
    return archive


def handed_on(spec: Json, runs: Path) -> dict[str, PurePosixPath]:
    """Files of the runs that the step is told of by their path, and their place in the pod."""
    words = [*spec["parameters"].values(), *spec["env"].values(), *spec["command"]]
    found: dict[str, PurePosixPath] = {}
    for word in words:
        begin = word.find(f"{runs}/") if isinstance(word, str) else -1
        path = word[begin:] if begin >= 0 else ""
        if path and ".." not in path.split("/") and Path(path).exists():
            place = PurePosixPath("/convect/handed") / str(len(found)) / Path(path).name
            found.setdefault(path, place)
    return found


def translate(spec: Json, root: Path, handed: Mapping[str, PurePosixPath]) -> Json:
    """`step.json` with its paths as they are in the pod."""

    def there(word: Json) -> Json:
        for path, place in handed.items():
            if isinstance(word, str) and word.endswith(path):
                return word.removesuffix(path) + str(place)
        return word

    moved = {
        **spec,
        "parameters": {name: there(value) for name, value in spec["parameters"].items()},
        "env": {name: there(value) for name, value in spec["env"].items()},
        "command": [there(word) for word in spec["command"]],
    }
    if spec.get("source"):
        moved["source"] = str(inside(Path(spec["source"]), root))
    isolated = Path(spec["folder"]).name == "work" and not _is_below(Path(spec["folder"]), root)
    moved["folder"] = str(ATTEMPT / "work" if isolated else inside(Path(spec["folder"]), root))
    moved["inputs"] = [
        {"from": str(_input(number, item)), "to": item["to"]}
        for number, item in enumerate(spec.get("inputs") or ())
    ]
    return moved


def inside(path: Path, root: Path) -> PurePosixPath:
    """The place of a file of ours in the pod."""
    if not _is_below(path, root):
        raise Refused(f"{path.name} lies outside of {root}, so that the pod cannot have it.")
    return ROOT / path.relative_to(root).as_posix()


def ancestors(plan: Plan, step: Step) -> list[Step]:
    """All that the step comes after, directly or not."""
    known = {item.id: item for item in plan.steps}
    found: dict[str, Step] = {}
    left = list(step.after)
    while left:
        item = known.get(left.pop())
        if item is not None and item.id not in found:
            found[item.id] = item
            left += item.after
    return list(found.values())


def _files(spec: Json, step: Step, asked: Asked) -> Iterator[tuple[Path, PurePosixPath]]:
    """The source, what is declared, what earlier steps left in their folder, the inputs."""
    root, seen = asked.root, set()
    paths = [Path(spec["source"])] if spec.get("source") else []
    paths += [root / item.path for item in step.dependencies]
    for earlier in ancestors(asked.plan, step):
        if earlier.working_folder != "isolated":
            paths += _left_by(earlier, asked)
    for path in paths:
        if path not in seen:
            seen.add(path)
            yield path, inside(path, root)
    for number, item in enumerate(spec.get("inputs") or ()):
        origin = Path(item["from"])
        for file in below(origin):
            yield file, _input(number, item) / file.relative_to(origin).as_posix()


def _within(handed: Mapping[str, PurePosixPath]) -> Iterator[tuple[Path, PurePosixPath]]:
    for path, place in handed.items():
        for file in below(Path(path)):
            yield file, place / file.relative_to(path).as_posix()


def _left_by(step: Step, asked: Asked) -> Iterable[Path]:
    home = (asked.root / (step.path or asked.plan.path or "x")).parent
    if step.working_folder != "source":
        home = asked.root / step.working_folder
    for pattern in step.outputs:
        literal = home / pattern
        for path in [literal] if literal.exists() else home.glob(pattern):
            yield from below(path)


def below(path: Path) -> Iterator[Path]:
    """The file itself, or every file in the folder."""
    if path.is_dir():
        for place, _, files in os.walk(path):
            yield from (Path(place, name) for name in sorted(files))
    else:
        yield path


def _input(number: int, item: Json) -> PurePosixPath:
    return PurePosixPath("/convect/inputs") / str(number)


def _is_below(path: Path, root: Path) -> bool:
    return path.is_relative_to(root)


def _tar(contents: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(contents):
            entry = tarfile.TarInfo(name.removeprefix("/convect/"))
            entry.size, entry.mode = len(contents[name]), 0o644
            archive.addfile(entry, io.BytesIO(contents[name]))
    return buffer.getvalue()


def _too_large(step: Step, bytes_: int) -> Refused:
    return Refused(
        f"The files of {step.name} are too large to be sent with the run: {size(bytes_)} "
        f"of at most {size(LARGEST)} compressed.",
        code="too-large",
        hint="Put them on a volume, and name it in `volumes` or in c.KubernetesRuntime.volumes.",
    )
