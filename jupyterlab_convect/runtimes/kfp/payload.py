"""The files of a pipeline as a part of it: the runner, and the sources of the steps."""

from __future__ import annotations

import ast
import base64
import functools
import io
import json
import posixpath
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Protocol

from ...errors import ConvectError
from ...pipeline.plan import Json, Step
from ...runner.one_file import bundle
from ...transfer.bundle import agent_program
from ...transfer.pack import archive

PYTHON = "python3"
ROOMS = (800_000, 300_000, 100_000, 40_000)
"""Bytes of undeclared files to try to send, before they are compressed."""
BUNDLE = "bundle"
"""The artifact that the first task leaves, and its name as an output."""
AUTHORITY = "authority.pem"
"""In the bundle: the certificates to trust when the store is asked."""
BUNDLE_PATH = f"{{{{$.outputs.artifacts['{BUNDLE}'].path}}}}"
LEAVE = (
    "import base64,pathlib,sys\n"
    "path=pathlib.Path(sys.argv[2])\n"
    "path.parent.mkdir(parents=True,exist_ok=True)\n"
    "path.write_bytes(base64.b64decode(sys.argv[1]))\n"
)
FETCH = (
    "import hashlib,pathlib,ssl,sys,time,urllib.request\n"
    "address,digest,authority,target=sys.argv[1:5]\n"
    "context=ssl.create_default_context(cadata=authority) if authority else None\n"
    "host=address.split('/')[2]\n"
    "where=f'object store at {host}' if host else 'shared volume'\n"
    "for pause in (1,2,4,8,None):\n"
    "    try:\n"
    "        data=urllib.request.urlopen(address,timeout=60,context=context).read()\n"
    "        if hashlib.sha256(data).hexdigest()==digest: break\n"
    "        error='the files are damaged'\n"
    "    except OSError as found: error=found\n"
    "    if pause is None: sys.exit(f'The {where} cannot be used: {error}')\n"
    "    time.sleep(pause)\n"
    "path=pathlib.Path(target)\n"
    "path.parent.mkdir(parents=True,exist_ok=True)\n"
    "path.write_bytes(data)\n"
)
HAND_ON = (
    "import base64,pathlib,sys,tempfile\n"
    "data,own=base64.b64decode(sys.argv[1]),tempfile.mktemp()\n"
    "for name in [own,*sys.argv[4:]]:\n"
    "    path=pathlib.Path(name)\n"
    "    path.parent.mkdir(parents=True,exist_ok=True)\n"
    "    path.write_bytes(data)\n"
    "sys.argv[1]=own\n"
)
UNPACK = (
    "import base64,pathlib,sys,tarfile,tempfile\n"
    "folder=tempfile.mkdtemp()\n"
    "tarfile.open(sys.argv[1]).extractall(folder)\n"
    "pathlib.Path(folder,'bind.json').write_bytes(base64.b64decode(sys.argv[2]))\n"
    "sys.path.insert(0,folder)\n"
    "import convect_task\n"
    "sys.exit(convect_task.main(folder,sys.argv[3]))\n"
)


class Sources(Protocol):
    """Where the files of a plan are."""

    def read(self, path: str, digest: str) -> bytes:
        """The content of a file, by its path from the root folder. A ConvectError without it."""


class ProjectFiles:
    """The files of a folder, as they are now."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str, digest: str) -> bytes:
        try:
            return (self._root / path).read_bytes()
        except OSError as error:
            raise ConvectError(f"{path} cannot be read: {error.strerror}.") from None


class FileStore(Protocol):
    """Where files go that are too large for the pipeline."""

    def share(self, data: bytes) -> tuple[str, str]:
        """Keep them; the address where a task finds them, and their digest."""


@dataclass(frozen=True)
class RunPayload:
    """What a run of ours is besides: its results come back through the logs of its tasks."""

    run: Mapping[str, str]
    """Its `id` and `name`, as its steps are told them; empty where only Kubeflow will know."""
    root: str = ""
    """The root folder, below the topmost one of the files that are sent."""
    project: str | None = None
    """The folder that steps have their own version of, below the same."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """What is in it, by path, what matters most first: steps may want what they do not name."""
    limit: int = 8_000_000
    """Bytes that a task may tell."""
    store: FileStore | None = None
    authority: str = ""
    """Certificates to trust when the store is asked."""
    room: int = 100_000_000
    """Bytes of files that may go through the store, before they are compressed."""
    always_store: bool = False
    """Whether files go through the store that would fit into the pipeline."""
    keep: str = ""
    """The folder of a volume that tasks leave the files they made in, for us to take."""
    form: Json = None
    """What tasks need to leave results in the store, where there is one."""


def bundle_command(
    steps: Iterable[Step], sources: Sources, home: RunPayload | None, largest: int
) -> list[str]:
    """What the first task executes: it leaves the runner and the files of all steps.

    Whatever is in a task's command is kept several times in the state of the run, which must
    stay below 1 MB; a file in Kubeflow's store is only named there.
    """
    wanted = {path: digest for step in steps for path, digest in _sources(step).items()}
    files = {
        f"project/{path}": sources.read(path, digest) for path, digest in sorted(wanted.items())
    }
    contents = {**_program(), **files}
    if home is not None and home.form and home.authority:
        contents[AUTHORITY] = home.authority.encode()
    others = {} if home is None else home.files
    rooms = (*(ROOMS if others else ()), 0)
    if home is not None and home.store is not None:
        # What is left out for want of room is not left out where there is a store.
        is_all = sum(file.stat().st_size for file in others.values()) <= ROOMS[0]
        rooms = rooms[:1] if is_all and not home.always_store else ()
    for room in rooms:
        word = base64.b64encode(archive({**contents, **_within(others, room)})).decode()
        if len(word) < largest:
            return [PYTHON, "-c", LEAVE, word, BUNDLE_PATH]
    if home is not None and home.store is not None:
        packed = archive({**contents, **_within(others, home.room)}, preset=0)
        address, digest = home.store.share(packed)
        return [PYTHON, "-c", FETCH, address, digest, home.authority, BUNDLE_PATH]
    return [PYTHON, "-c", LEAVE, word, BUNDLE_PATH]


def _within(files: Mapping[str, Path], room: int) -> dict[str, bytes]:
    """As many of the files as there is room for."""
    chosen: dict[str, bytes] = {}
    for path, source in files.items():
        size = source.stat().st_size
        if size <= room:
            room -= size
            chosen[f"around/{path}"] = source.read_bytes()
    return chosen


def inline_bundle(command: list[str]) -> str | None:
    """The files themselves, if what the first task executes has them."""
    return command[3] if command[2] == LEAVE else None


def step_command(
    step: Step,
    bind: Json,
    bundle_name: str,
    home: RunPayload | None,
    *,
    bundle_word: str = "",
    hands_on: bool = False,
) -> list[str]:
    """What the task of a step executes; `bundle_name` is the input that has the files.

    With `bundle_word` it has the files itself, and may leave them for the tasks after it.
    """
    told = {
        **bind,
        "step": _step_file(step),
        "sources": sorted(_sources(step)),
        "alone": _alone(step),
        "root": home.root if home is not None else "",
        "project": home.project if home is not None and step.working_folder != "isolated" else None,
        **({"run": dict(home.run), **_way_home(home)} if home is not None else {}),
    }
    packed = base64.b64encode(json.dumps(told, sort_keys=True).encode()).decode()
    if bundle_word:
        targets = [BUNDLE_PATH] if hands_on else []
        return [PYTHON, "-c", HAND_ON + UNPACK, bundle_word, packed, "{{$}}", *targets]
    path = f"{{{{$.inputs.artifacts['{bundle_name}'].path}}}}"
    return [PYTHON, "-c", UNPACK, path, packed, "{{$}}"]


def results_command(outputs: list[Json], bundle_name: str, home: RunPayload) -> list[str]:
    """What the task executes that tells the outputs of a component."""
    told = {"results": outputs, **_way_home(home)}
    packed = base64.b64encode(json.dumps(told, sort_keys=True).encode()).decode()
    path = f"{{{{$.inputs.artifacts['{bundle_name}'].path}}}}"
    return [PYTHON, "-c", UNPACK, path, packed, "{{$}}"]


def _way_home(home: RunPayload) -> dict[str, Json]:
    """How a task sends back what it leaves."""
    store = {"always": home.always_store, **home.form} if home.form else None
    found = {"home": home.limit, "keep": home.keep, "store": store}
    return {name: value for name, value in found.items() if value}


def _sources(step: Step) -> dict[str, str]:
    wanted = {item.path: item.digest for item in step.dependencies}
    if step.path is not None:
        wanted[step.path] = step.digest or ""
    return wanted


def _alone(step: Step) -> dict[str, str] | None:
    """For a step that has a folder of its own: where its files are in it."""
    if step.working_folder != "isolated":
        return None
    home = posixpath.dirname(step.path or "") or "."
    found: dict[str, str] = {}
    for item in step.dependencies:
        relative = posixpath.relpath(item.path, home)
        found[item.path] = item.path if relative.startswith("..") else relative
    return found


def folder_of(step: Step) -> str:
    """Where a step works, below the root."""
    if step.working_folder not in ("source", "isolated"):
        return step.working_folder
    return posixpath.dirname(step.path or "")


def _step_file(step: Step) -> dict[str, Json]:
    return {
        "step": step.id,
        "attempt": 1,
        "kind": step.kind,
        "source": step.path,
        "folder": folder_of(step),
        "kernel": step.kernel,
        "outputs": list(step.outputs),
        "metrics": dict(step.metrics),
        "timeout": step.timeout,
        "digest": step.digest,
        "computed": sorted(step.computed),
    }


@functools.cache
def _program() -> dict[str, bytes]:
    """The runner, stored plainly so that it is compressed with the rest, and what starts it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(bundle())) as whole, zipfile.ZipFile(buffer, "w") as stored:
        for entry in whole.infolist():
            plain = zipfile.ZipInfo(entry.filename, entry.date_time)
            stored.writestr(plain, _without_words(whole.read(entry)))
    task = resources.files(__package__).joinpath("task.py").read_bytes()
    return {
        "runner.pyz": buffer.getvalue(),
        "convect_task.py": _without_words(task),
        "convect_agent.py": _without_words(agent_program()),
    }


def _without_words(source: bytes) -> bytes:
    """A program without comments and docstrings, for which there is no room."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kept = [each for each in node.body if not _is_words(each)]
            node.body = kept or [ast.Pass()]
    return ast.unparse(tree).encode()


def _is_words(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
