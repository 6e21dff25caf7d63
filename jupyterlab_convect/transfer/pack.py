"""What a step needs in a pod that shares no volume with us: which files, and their paths there."""

from __future__ import annotations

import io
import json
import lzma
import os
import stat
import tarfile
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import Refused
from ..pipeline.plan import Group, Json, Plan, Step
from ..runner.layers import Layer, is_ignored, walk
from ..runner.view_spec import ViewSpec
from ..runs.snapshots import CODE
from ..runtimes.base import Attempt
from ..safe_files import read_regular
from ..text import some_of

FOLDER = PurePosixPath("/convect")
"""Where files are in a pod that shares no volume with us."""
ROOT, ATTEMPT, BASE, SCRATCH = (FOLDER / name for name in ("root", "attempt", "base", "view"))
"""The sources, the attempt, the project as the step sees it, and what it writes."""


def archive(contents: Mapping[str, bytes], preset: int = 6) -> bytes:
    """What lies at each path, compressed; the same bytes for the same contents."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as file:
        for name in sorted(contents):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(contents[name]), 0o644
            file.addfile(entry, io.BytesIO(contents[name]))
    return lzma.compress(buffer.getvalue(), preset=preset)


@dataclass(frozen=True)
class Contents:
    """What goes to a pod, by its path below `/convect` there."""

    texts: Mapping[str, bytes]
    files: Mapping[str, Path]


@dataclass(frozen=True)
class Package:
    """The files of a step for a pod that shares no volume with us."""

    texts: Mapping[str, bytes]
    """What was written for the pod alone."""
    files: Mapping[str, Path]
    spec: Json = None
    """`step.json` as the pod has it; it tells what was left out."""
    optional: tuple[tuple[str, Path, int], ...] = ()
    """Files that the step may want, with their size; what matters most comes first."""

    def within(self, room: int) -> Contents:
        """With as many bytes of what is optional as there is room for."""
        chosen: dict[str, Path] = {}
        left = []
        for path, source, count in self.optional:
            if count <= room:
                room -= count
                chosen[path] = source
            else:
                left.append(path.partition("/")[2])
        texts = dict(self.texts)
        if self.spec is not None:
            notices = [*(self.spec.get("notices") or ()), *_left_out(left)]
            texts["attempt/step.json"] = json.dumps({**self.spec, "notices": notices}).encode()
        return Contents(texts, {**self.files, **chosen})


def package_of(attempt: Attempt) -> Package:
    """What was declared and, of a view, the whole project."""
    step, root = attempt.step, attempt.root
    spec = json.loads(read_regular(attempt.folder / "step.json"))
    named = named_files(spec, attempt.runs)
    moved = translate(spec, root, named)
    if not spec.get("view"):
        return Package({}, below_root((*_files(spec, attempt), *_within(named))), moved)
    view = ViewSpec.read(spec["view"])
    whole = merged(view.layers)
    made = merged([layer for layer in view.layers if layer.linked is None])
    declared = {_relative(root / item.path, view.root) for item in step.dependencies}
    needed = declared | {*made}
    if spec.get("source"):
        needed.add(_relative(Path(spec["source"]), view.root))
        whole.setdefault(_relative(Path(spec["source"]), view.root), Path(spec["source"]))
    files = (
        *((whole.get(path, view.root / path), BASE / path) for path in sorted(needed)),
        *_within(named),
        *_inputs(spec),
    )
    others = sorted(_sizes(whole, needed).items(), key=lambda item: (_is_data(item[0]), item[1]))
    optional = ((f"{BASE.name}/{path}", whole[path], count) for path, count in others)
    moved["notices"] = [*(moved.get("notices") or ()), *_unsent_links(view)]
    return Package({}, below_root(files), moved, tuple(optional))


def below_root(files: Iterable[tuple[Path, PurePosixPath]]) -> dict[str, Path]:
    """By the path below the folder that a pod has for us."""
    return {target.relative_to(FOLDER).as_posix(): source for source, target in files}


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


def _is_data(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() not in CODE


def _unsent_links(view: ViewSpec) -> list[str]:
    names = [each.name for each in view.outside if each.is_link]
    if not names:
        return []
    return [f"Links that lead out of the project are not sent to the pod: {some_of(names)}."]


def _left_out(paths: list[str]) -> list[str]:
    if not paths:
        return []
    names = some_of(paths)
    return [f"Too large to be sent to the pod, so the step did not see: {names}."]


def _relative(path: Path, root: Path) -> str:
    if not _is_below(path, root):
        raise Refused(f"{path.name} is outside {root}, so the pod cannot have it.")
    return path.relative_to(root).as_posix()


def named_files(spec: Json, runs: Path) -> dict[str, PurePosixPath]:
    """Files of the runs that the step is told of by their path, and their target in the pod."""
    words = [*spec["parameters"].values(), *spec["env"].values(), *spec["command"]]
    found: dict[str, PurePosixPath] = {}
    for word in words:
        begin = word.find(f"{runs}/") if isinstance(word, str) else -1
        path = word[begin:] if begin >= 0 else ""
        if path and ".." not in path.split("/") and Path(path).exists():
            target = PurePosixPath("/convect/named") / str(len(found)) / Path(path).name
            found.setdefault(path, target)
    return found


def translate(spec: Json, root: Path, named: Mapping[str, PurePosixPath]) -> Json:
    """`step.json` with its paths as they are in the pod."""

    def there(word: Json) -> Json:
        for path, target in named.items():
            if isinstance(word, str) and word.endswith(path):
                return word.removesuffix(path) + str(target)
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
    """The target of a file of ours in the pod."""
    if not _is_below(path, root):
        raise Refused(f"{path.name} is outside {root}, so the pod cannot have it.")
    return ROOT / path.relative_to(root).as_posix()


def ancestors(plan: Plan, step: Step) -> list[Step]:
    """All that the step comes after, directly or not."""
    known = {part.id: part for part in plan.parts}
    found: dict[str, Step | Group] = {}
    left, around = list(step.after), step.group
    while around is not None:  # What a group waits for, all that is in it waits for.
        left += known[around].after
        around = known[around].group
    while left:
        item = known.get(left.pop())
        if item is not None and item.id not in found:
            found[item.id] = item
            left += item.after
            left += [part.id for part in plan.parts if part.group == item.id]
    return [item for item in found.values() if isinstance(item, Step)]


def _files(spec: Json, attempt: Attempt) -> Iterator[tuple[Path, PurePosixPath]]:
    """The source, what is declared, what earlier steps left in their folder, the inputs."""
    root, step, seen = attempt.root, attempt.step, set()
    paths = [Path(spec["source"])] if spec.get("source") else []
    paths += [root / item.path for item in step.dependencies]
    for earlier in ancestors(attempt.plan, step):
        if earlier.working_folder != "isolated":
            paths += _left_by(earlier, attempt)
    for path in paths:
        if path not in seen:
            seen.add(path)
            yield path, inside(path, root)
    yield from _inputs(spec)


def _inputs(spec: Json) -> Iterator[tuple[Path, PurePosixPath]]:
    for number, item in enumerate(spec.get("inputs") or ()):
        origin = Path(item["from"])
        for file in files_below(origin):
            yield file, _input(number, item) / file.relative_to(origin).as_posix()


def _within(named: Mapping[str, PurePosixPath]) -> Iterator[tuple[Path, PurePosixPath]]:
    for path, target in named.items():
        for file in files_below(Path(path)):
            yield file, target / file.relative_to(path).as_posix()


def _left_by(step: Step, attempt: Attempt) -> Iterable[Path]:
    home = (attempt.root / (step.path or attempt.plan.path or "x")).parent
    if step.working_folder != "source":
        home = attempt.root / step.working_folder
    for pattern in step.outputs:
        literal = home / pattern
        for path in [literal] if literal.exists() else home.glob(pattern):
            yield from files_below(path)


def files_below(path: Path) -> Iterator[Path]:
    """The file itself, or every file in the folder."""
    if path.is_dir():
        for folder, _, files in os.walk(path):
            yield from (Path(folder, name) for name in sorted(files))
    else:
        yield path


def _input(number: int, item: Json) -> PurePosixPath:
    return PurePosixPath("/convect/inputs") / str(number)


def _is_below(path: Path, root: Path) -> bool:
    return path.is_relative_to(root)
