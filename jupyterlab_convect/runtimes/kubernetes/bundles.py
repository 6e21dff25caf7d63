"""Files of a step on their way to a pod that shares no volume with us: one small archive.

The pod sees `/convect/root` (the tree of the sources) and `/convect/attempt`.
"""

from __future__ import annotations

import errno
import io
import json
import lzma
import os
import stat
import tarfile
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ...errors import ConvectError, Refused
from ...pipeline.plan import Json, Plan, Step, from_json
from ...run_files import read_regular
from ...runner.layers import Layer, is_ignored, walk
from ...runner.outcome import size
from ...runner.view_spec import ViewSpec
from ...runs.snapshots import CODE

ROOT, ATTEMPT = PurePosixPath("/convect/root"), PurePosixPath("/convect/attempt")
BASE, SCRATCH = PurePosixPath("/convect/base"), PurePosixPath("/convect/view")
"""The project as the step sees it, and what it writes."""
ROOMS = (8_000_000, 2_000_000, 500_000)
"""Bytes of undeclared files to try to send, before they are compressed."""
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
    data = json.loads(read_regular(attempt_folder.parents[2] / "run.json"))
    return Asked(Path(data["request"]["root"]), from_json(Plan, data["plan"]))


def pack(attempt_folder: Path, step: Step, asked: Asked) -> bytes:
    """The archive: `step.json` for the pod, and every file that was declared. Refused if large."""
    spec = json.loads(read_regular(attempt_folder / "step.json"))
    handed = handed_on(spec, attempt_folder.parents[3])
    moved = translate(spec, asked.root, handed)
    if not spec.get("view"):
        files = load((*_files(spec, step, asked), *_within(handed)), step)
        return compress({str(ATTEMPT / "step.json"): json.dumps(moved).encode(), **files}, step)
    return _pack_view(spec, moved, step, asked, handed)


def _pack_view(
    spec: Json, moved: Json, step: Step, asked: Asked, handed: Mapping[str, PurePosixPath]
) -> bytes:
    """With what the step needs for sure, and as much of the project as there is room for."""
    view = ViewSpec.read(spec["view"])
    whole = merged(view.layers)
    made = merged([layer for layer in view.layers if layer.linked is None])
    needed = {_relative(asked.root / item.path, view.root) for item in step.dependencies} | {*made}
    if spec.get("source"):
        needed.add(_relative(Path(spec["source"]), view.root))
        whole.setdefault(_relative(Path(spec["source"]), view.root), Path(spec["source"]))
    always = load(
        (
            *((whole.get(path, view.root / path), BASE / path) for path in sorted(needed)),
            *_within(handed),
            *_inputs(spec),
        ),
        step,
    )
    others = sorted(_sizes(whole, needed).items(), key=lambda item: (_is_data(item[0]), item[1]))
    room = ROOMS[0]
    while True:
        chosen = _as_many_as_fit(others, room)
        files = load(((whole[path], BASE / path) for path in chosen), step)
        left = [path for path, _ in others if path not in chosen]
        told = {**moved, "notices": [*(spec.get("notices") or ()), *_left_out(left)]}
        contents = {str(ATTEMPT / "step.json"): json.dumps(told).encode(), **always, **files}
        try:
            return compress(contents, step)
        except Refused:
            if not room:
                raise
            room = next((smaller for smaller in ROOMS if smaller < room), 0)


def merged(layers: Iterable[Layer]) -> dict[str, Path]:
    """Every file of layers of which the topmost comes first, by its path."""
    found: dict[str, Path] = {}
    hidden: list[str] = []
    for layer in layers:
        for path, status in walk(layer.folder):
            gone = any(path == each or path.startswith(f"{each}/") for each in hidden)
            if stat.S_ISREG(status.st_mode) and not gone:
                found.setdefault(path, layer.folder / path)
        hidden += layer.deleted
    return found


def _sizes(files: Mapping[str, Path], without: Container[str]) -> dict[str, int]:
    return {
        path: source.stat().st_size
        for path, source in files.items()
        if path not in without and not is_ignored(path)
    }


def _as_many_as_fit(files: Iterable[tuple[str, int]], room: int) -> list[str]:
    chosen = []
    for path, count in files:
        if count <= room:
            room -= count
            chosen.append(path)
    return chosen


def _is_data(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() not in CODE


def _left_out(paths: list[str]) -> list[str]:
    if not paths:
        return []
    names = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return [f"Too large to be sent to the pod, so the step did not see: {names}."]


def _relative(path: Path, root: Path) -> str:
    if not _is_below(path, root):
        raise Refused(f"{path.name} lies outside of {root}, so that the pod cannot have it.")
    return path.relative_to(root).as_posix()


def load(files: Iterable[tuple[Path, PurePosixPath]], step: Step) -> dict[str, bytes]:
    """What lies in each file, by its place in the pod. Refused before too much is read."""
    contents, total = {}, 0
    for source, target in files:
        try:
            status = source.stat()
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "Not a regular file")
            total += status.st_size
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
    if view := spec.get("view"):
        root = Path(view["root"])
        moved["view"] = {
            "root": str(ROOT),
            "layers": [{"folder": str(BASE)}],
            "scratch": [str(SCRATCH)],
        }
    if spec.get("source"):
        moved["source"] = str(inside(Path(spec["source"]), root))
        moved["copy"] = str(BASE / _relative(Path(spec["source"]), root)) if view else None
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
    yield from _inputs(spec)


def _inputs(spec: Json) -> Iterator[tuple[Path, PurePosixPath]]:
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
