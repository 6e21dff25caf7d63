"""Executes one step in a task of Kubeflow. It stands alone: the task carries it, with the runner.

The folder that it is unpacked into holds the runner, the files of all steps in `project`, and
`bind.json`: what the runner is told, without what is known only now, what the step is given, and
what it gives. What Kubeflow tells is its executor input.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

PAUSE, NOTEBOOK_PAUSE = 0.2, 5.0
SCHEMES = {"gs": "gcs"}
"""Where Kubeflow keeps the files of an address, if not in a folder named like its scheme."""
NOT_GIVEN = "-"
"""In place of a value that a step did not give; one that did not run has left nothing."""
NO_ITEM = "~"
"""The only item of a list that is empty: Kubeflow cannot collect what a loop of nothing gives."""
VALUES, LARGEST_VALUES = "values", 60_000
"""The output with everything that a step gives, for people and for lineage, and its bytes."""
NOTEBOOK, OUTCOME, LOG = "executed.ipynb", "outputs.json", "log.txt"


def main(folder: str, told: str) -> int:
    place = Path(folder)
    bind = json.loads((place / "bind.json").read_text("utf-8"))
    attempt = place / "attempt"
    attempt.mkdir()
    home = None
    if bind.get("home"):
        store, authority = bind.get("store"), place / "authority.pem"
        if store and authority.exists():
            store["ca"] = authority.read_text("utf-8")
        home = ResultSender(attempt, bind["home"], bind.get("keep") or "", store)
    task = ExecutorInput(json.loads(told))
    try:
        if task.has_no_item(bind):
            return task.give_nothing(bind["outputs"])
        if "results" in bind:
            code = tell_results(bind["results"], task, attempt)
        else:
            code = run(place, bind, task, attempt, home)
    except SystemExit as error:
        if home is None:
            raise
        say(str(error.code))
        code = leave_failure(attempt, str(error.code))
    if home is not None:
        home.send(code)
    return code


def run(
    place: Path, bind: Any, task: ExecutorInput, attempt: Path, home: ResultSender | None
) -> int:
    top = place / "work"
    project = top / bind["root"]
    project.mkdir(parents=True)
    step = bind["step"]
    bring_files(place, bind, task, top)
    step.update({key: task.value(node, bind["inputs"]) for key, node in bind["values"].items()})
    step["env"] = {key: as_text(value) for key, value in step["env"].items()}
    step["command"] = [as_text(word) for word in step["command"]]
    step["run"] = bind.get("run") or {
        "id": task.given.get("run-id", ""),
        "name": task.given.get("run-name", ""),
    }
    folder, alone = step["folder"], bind["alone"] is not None
    step["folder"] = str(place / "alone" if alone else project / folder)
    if step.get("source"):
        step["source"] = str(project / step["source"])
    Path(step["folder"]).mkdir(parents=True, exist_ok=True)
    (attempt / "step.json").write_text(json.dumps(step), encoding="utf-8")
    before = dict(stamps(top))
    command = [sys.executable, str(place / "runner.pyz"), str(attempt)]
    code = execute(command, attempt / LOG, home.follow if home else lambda: None)
    try:
        outcome = json.loads((attempt / OUTCOME).read_text("utf-8"))
    except OSError:
        say("The runner ended without a result.")
        return code or 1
    if home is not None and bind["project"] is not None:
        keep_made(attempt, top, bind["project"], before, outcome)
    if outcome["state"] != "succeeded":
        say(outcome.get("reason") or "It failed.")
        return code or 1
    for output in bind["outputs"]:
        task.give(output, outcome.get("values") or {})
    task.leave_values(outcome.get("values") or {})
    task.leave(attempt, outcome.get("metrics") or {})
    task.leave_files(top, before)
    if alone:
        task.leave_declared(attempt / "files", str(Path(bind["root"], folder)))
    return code


def tell_results(outputs: Any, task: ExecutorInput, attempt: Path) -> int:
    """What a component has given, as a step of ours would leave it."""
    values: dict[str, Any] = {}
    facts: list[dict[str, Any]] = []
    for number, output in enumerate(outputs):
        if output["spec"]["kind"] != "file":
            values[output["name"]] = task.input(output["input"], output["spec"])
            continue
        origin = task.file(output["input"])
        if origin is None or not origin.exists():
            continue
        name = f"outputs/{number}/{'folder' if origin.is_dir() else 'data'}"
        target = attempt / "files" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if origin.is_dir() else shutil.copyfile)(origin, target)
        names = sorted(files_in(target)) if origin.is_dir() else [""]
        sizes = {each: (target / each if each else target).stat().st_size for each in names}
        facts += [{"path": f"{name}/{each}".rstrip("/"), "size": sizes[each]} for each in names]
        values[output["name"]] = {"file": f"files/{name}", "size": sum(sizes.values())}
    now = time.time()
    outcome = {"state": "succeeded", "ended": now, "values": values, "files": facts}
    (attempt / OUTCOME).write_text(json.dumps(outcome), encoding="utf-8")
    return 0


def bring_files(place: Path, bind: Any, task: ExecutorInput, top: Path) -> None:
    """The sources of the step, and what earlier ones made, where each belongs."""
    alone: Mapping[str, str] | None = bind["alone"]
    sources, around = place / "project", place / "around"
    if alone is None:
        for origin, target in ((around, bind["project"] or ""), (sources, bind["root"])):
            if origin.is_dir():
                shutil.copytree(origin, top / target, dirs_exist_ok=True)
        for name, _ in bind["files"]:
            task.place(name, top)
        return
    for name in bind["sources"]:
        copy(sources / name, top / bind["root"] / name)
    for name, target in alone.items():
        copy(sources / name, place / "alone" / target)
    for name, folder in bind["files"]:
        made, home = place / "made", Path(bind["root"], folder)
        shutil.rmtree(made, ignore_errors=True)
        task.place(name, made)
        for path in map(Path, sorted(files_in(made))):
            inside = path.relative_to(home) if path.is_relative_to(home) else path
            copy(made / path, place / "alone" / inside)


def copy(origin: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(origin, target)


def leave_failure(attempt: Path, reason: str) -> int:
    now = time.time()
    outcome = {"state": "failed", "reason": reason, "started": now, "ended": now, "exit_code": 1}
    (attempt / OUTCOME).write_text(json.dumps(outcome), encoding="utf-8")
    return 1


def keep_made(
    attempt: Path, project: Path, root: str, before: Mapping[str, Any], outcome: dict[str, Any]
) -> None:
    """What the step made, as a step with its own version of the project leaves it."""
    made: list[dict[str, Any]] = []
    below = "" if root == "." else f"{root}/"
    after = dict(stamps(project))
    for name in sorted({*before, *after}):
        if not name.startswith(below) or before.get(name) == after.get(name) or is_left_over(name):
            continue
        path = name[len(below) :]
        if name not in after:
            made.append({"path": path, "change": "deleted"})
            continue
        target = attempt / "made" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(project / name, target)
        status = (project / name).stat()
        digest = "sha256:" + hashlib.sha256(target.read_bytes()).hexdigest()
        change = "changed" if name in before else "created"
        facts = {"size": status.st_size, "digest": digest, "mode": status.st_mode & 0o7777}
        made.append({"path": path, "change": change, **facts})
    (attempt / "made.json").write_text(json.dumps({"files": made}), encoding="utf-8")
    outcome["made"] = len(made)
    (attempt / OUTCOME).write_text(json.dumps(outcome), encoding="utf-8")


def is_left_over(path: str) -> bool:
    """What programs leave behind for themselves."""
    return bool({"__pycache__", ".ipynb_checkpoints", ".git"}.intersection(path.split("/")))


class ResultSender:
    """Sends what a step leaves to whoever has asked for it: in the log, and what does not fit
    there over a volume or through an object store."""

    def __init__(self, attempt: Path, limit: int, keep: str, store: Any) -> None:
        self._agent = importlib.import_module("convect_agent")
        self._attempt = attempt
        self._keep = keep
        self._store = store
        self._least = limit // 2 if store else None
        self._drafts, self._seen, self._due = limit // 4, 0, 0.0
        self._sender = self._agent.Sender(attempt, limit, self._write)

    def follow(self) -> None:
        """Tell what is new: who stops the task does not let it tell the rest."""
        for name in self._agent.GROWING:
            self._sender.grow(name, self._least)
        try:
            stamp = (self._attempt / NOTEBOOK).stat().st_mtime_ns
        except OSError:
            return
        if stamp != self._seen and time.monotonic() >= self._due and self._drafts > 0:
            before = self._sender.left
            self._sender.whole(NOTEBOOK, most=self._drafts)
            self._drafts -= before - self._sender.left
            self._seen, self._due = stamp, time.monotonic() + NOTEBOOK_PAUSE

    def leave_on_volume(self) -> None:
        """The files that it made, which may be too large for the log."""
        target = Path(self._keep, uuid.uuid4().hex)
        names = [name for name in ("files", "made") if (self._attempt / name).is_dir()]
        try:
            for name in names:
                shutil.copytree(self._attempt / name, target / name)
        except OSError as error:
            shutil.rmtree(target, ignore_errors=True)
            say(f"The shared volume cannot be used: {error}")
            return
        for name in names:
            shutil.rmtree(self._attempt / name)
        if names:
            self._write(self._agent.MARK + json.dumps({"kept": target.name}) + "\n")

    def leave_in_store(self) -> str | None:
        """Everything, if it may not fit into the log; why it was not possible, if it was not."""
        objects = self._agent.FormObjects(self._store)
        try:
            self._agent.store_results(self._attempt, objects)
        except SystemExit as error:
            say(str(error))
            return str(error)
        told = {"stored": objects.name, "digest": objects.digest}
        self._write(self._agent.MARK + json.dumps(told) + "\n")
        return None

    def is_large(self) -> bool:
        """Whether there may be no room in the log for what is left to tell."""
        wanted, others = self._agent.results_in(self._attempt)
        names = [*wanted, *others, OUTCOME, *self._agent.GROWING]
        paths = [path for path in map(self._attempt.joinpath, names) if path.exists()]
        size = sum(path.stat().st_size for path in paths)
        # As text, what cannot be compressed is larger by a third.
        return bool(size * 7 // 5 + 2000 * len(paths) > self._sender.left)

    def send(self, code: int) -> None:
        why: str | None = ""
        if self._keep:
            self.leave_on_volume()
        elif self._store and (self._store["always"] or self.is_large()):
            why = self.leave_in_store()
        if why is not None:
            self._agent.send_results(self._attempt, self._sender, why)
        self._sender.end(code)

    @staticmethod
    def _write(line: str) -> None:
        # What the step itself has said last may not have ended its line.
        sys.stdout.write("\n" + line)
        sys.stdout.flush()


class ExecutorInput:
    """What Kubeflow tells a task, and where it looks for what the task leaves."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        inputs, self._outputs = told.get("inputs") or {}, told.get("outputs") or {}
        self.given: Mapping[str, Any] = inputs.get("parameterValues") or {}
        self._artifacts = inputs.get("artifacts") or {}

    def value(self, node: Any, inputs: Mapping[str, Any]) -> Any:
        """What a template stands for: a value, an input, a text of both, a list or an object."""
        kind, body = node[0], node[1]
        if kind == "value":
            return body
        if kind == "input":
            value = self.input(body, inputs[body])
            for field in node[2]:
                if not isinstance(value, dict) or field not in value:
                    raise SystemExit(f"The item has no “{field}”.")
                value = value[field]
            return value
        if kind == "first":
            for part in body:
                with contextlib.suppress(Absent):
                    return self.value(part, inputs)
            raise Absent("Nothing has run that first(…) names.")
        if kind == "text":
            return "".join(as_text(self.value(part, inputs)) for part in body)
        if kind == "list":
            return [self.value(part, inputs) for part in body]
        return {key: self.value(part, inputs) for key, part in body.items()}

    def file(self, name: str) -> Path | None:
        return self._path(self._artifacts, name)

    def input(self, name: str, spec: Mapping[str, Any]) -> Any:
        if spec["kind"] == "file":
            return str(self.file(name))
        return decode(self.given.get(name), spec["kind"], spec["lists"], spec["words"])

    def place(self, name: str, project: Path) -> None:
        """Put the files that an earlier step made where that step had them."""
        made = self._path(self._artifacts, name)
        if made is not None and made.is_dir():
            shutil.copytree(made, project, dirs_exist_ok=True)

    def give(
        self, output: Mapping[str, Any], values: Mapping[str, Any], text: str | None = None
    ) -> None:
        """Leave a value where later tasks are given it from."""
        told = (self._outputs.get("parameters") or {}).get(output["key"])
        if told is None:
            return
        path = Path(told["outputFile"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(encode(output, values) if text is None else text, encoding="utf-8")

    def has_no_item(self, bind: Any) -> bool:
        """Whether there is nothing to do in a loop of nothing."""
        inputs = (bind.get("inputs") or {}).items()
        return any(self.given.get(name) == NO_ITEM for name, spec in inputs if is_json(spec))

    def give_nothing(self, outputs: Any) -> int:
        for output in outputs:
            self.give(output, {}, NO_ITEM)
        self.leave_values({})
        return 0

    def leave_values(self, values: Mapping[str, Any]) -> None:
        """All that the step gives, as far as there is room, where Kubeflow shows it."""
        found: dict[str, Any] = {}
        for name, value in values.items():
            longer = {**found, name: readable(value)}
            if len(json.dumps(longer)) <= LARGEST_VALUES:
                found = longer
        self.give({"key": VALUES}, {}, json.dumps(found))

    def leave(self, attempt: Path, metrics: Mapping[str, Any]) -> None:
        """The notebook as it was executed, how it looks, and its metrics."""
        notebook = attempt / NOTEBOOK
        target = self._path(self._outputs.get("artifacts") or {}, "notebook")
        if target is not None and notebook.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(notebook, target)
        target = self._path(self._outputs.get("artifacts") or {}, "html")
        if target is not None and notebook.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(as_html(notebook.read_text("utf-8")), encoding="utf-8")
        numbers = {
            key: readable(value)
            for key, value in metrics.items()
            if isinstance(value, (int, float, dict))
        }
        listed = (self._outputs.get("artifacts") or {}).get("metrics")
        if listed and numbers and self._outputs.get("outputFile"):
            artifact = dict(listed["artifacts"][0], metadata=numbers)
            path = Path(self._outputs["outputFile"])
            path.parent.mkdir(parents=True, exist_ok=True)
            told = {"artifacts": {"metrics": {"artifacts": [artifact]}}}
            path.write_text(json.dumps(told), encoding="utf-8")

    def leave_files(self, project: Path, before: Mapping[str, Any]) -> None:
        """What the step has made, for the steps after it."""
        target = self._path(self._outputs.get("artifacts") or {}, "files")
        if target is None:
            return
        for name, stamp in stamps(project):
            if before.get(name) != stamp:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(project / name, target / name)

    def leave_declared(self, files: Path, folder: str) -> None:
        """The files of a step that has a folder of its own, as if it worked beside its source."""
        target = self._path(self._outputs.get("artifacts") or {}, "files")
        if target is not None and files.is_dir():
            shutil.copytree(files, target / folder, dirs_exist_ok=True)

    def _path(self, artifacts: Mapping[str, Any], name: str) -> Path | None:
        listed = (artifacts.get(name) or {}).get("artifacts") or []
        if not listed:
            return None
        scheme, _, rest = listed[0]["uri"].partition("://")
        return Path("/" + SCHEMES.get(scheme, scheme), rest) if rest else Path(scheme)


def is_json(spec: Mapping[str, Any]) -> bool:
    return bool(spec["kind"] == "json" and not spec["lists"])


class Absent(SystemExit):
    """The step did not run whose value it is."""


def decode(value: Any, kind: str, lists: int, words: str) -> Any:
    """A value as it was before Kubeflow handed it on; `words` say that there is none."""
    if lists:
        items = (item for item in value or () if item != NO_ITEM)
        return [decode(item, kind, lists - 1, words) for item in items]
    if kind == "branch" and not value:
        raise Absent(words)
    if value is None or (kind in ("json", "branch") and value in ("", NOT_GIVEN)):
        raise SystemExit(words)
    if kind in ("json", "branch"):
        return json.loads(value)
    if kind == "integer":
        return int(value)
    return float(value) if kind == "number" else value


def encode(output: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """A value as a later task, a loop or a component takes it."""
    name, kind = output["name"], output["kind"]
    if name not in values:
        if kind in ("json", "branch"):
            return NOT_GIVEN if kind == "branch" else ""
        raise SystemExit(f"The step produced no output “{name}”.")
    value = values[name]
    if kind in ("json", "branch"):
        return json.dumps(value)
    fitting = {
        "items": isinstance(value, list),
        "some": isinstance(value, list),
        "LIST": isinstance(value, list),
        "STRUCT": isinstance(value, dict),
        "BOOLEAN": isinstance(value, bool),
        "NUMBER_INTEGER": isinstance(value, int) and not isinstance(value, bool),
        "NUMBER_DOUBLE": isinstance(value, (int, float)) and not isinstance(value, bool),
    }
    if not fitting.get(kind, True):
        raise SystemExit(f"The output “{name}” is not of the type that is needed: {kind}.")
    if kind in ("items", "some"):
        items = [json.dumps(item) for item in value]
        return json.dumps(items or ([NO_ITEM] if kind == "some" else []))
    return as_text(value)


def readable(value: Any) -> Any:
    """A value as people read it: numbers that JSON has no word for by their names."""
    if isinstance(value, dict):
        if set(value) == {"$numberDouble"}:
            return value["$numberDouble"]
        return {key: readable(item) for key, item in value.items()}
    return [readable(item) for item in value] if isinstance(value, list) else value


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def execute(command: list[str], log: Path, follow_more: Callable[[], None]) -> int:
    """Run it to its end, and say what it prints; a signal to stop reaches it first."""
    process = subprocess.Popen(command)

    def pass_on(number: int, _: object) -> None:
        process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    told = 0
    while True:
        ended = process.poll() is not None
        told += follow(log, told)
        follow_more()
        if ended:
            return process.returncode
        time.sleep(PAUSE)


def follow(log: Path, start: int) -> int:
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(start)
        data = file.read()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return len(data)
    return 0


def files_in(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (os.path.relpath(Path(place, name), folder) for name in names)


def stamps(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """The regular files below a folder, and what tells whether one has changed."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                status = path.stat()
                yield str(path.relative_to(folder)), (status.st_mtime_ns, status.st_size)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def as_html(text: str) -> str:
    """A notebook as a page: by nbconvert where that is installed, else plainly."""
    try:
        nbformat = importlib.import_module("nbformat")
        nbconvert = importlib.import_module("nbconvert")
    except ImportError:
        cells = "".join(_cell(cell) for cell in json.loads(text).get("cells", ()))
        style = "body{font:14px sans-serif;margin:2em}pre{background:#f5f5f5;padding:.6em}"
        return f"<!doctype html><meta charset=utf-8><style>{style}</style>{cells}"
    page: str = nbconvert.HTMLExporter().from_notebook_node(nbformat.reads(text, 4))[0]
    return page


def _cell(cell: Mapping[str, Any]) -> str:
    source = html.escape("".join(cell.get("source", ())))
    if cell.get("cell_type") != "code":
        return f"<p style='white-space:pre-wrap'>{source}</p>"
    return f"<pre>{source}</pre>" + "".join(_output(item) for item in cell.get("outputs", ()))


def _output(output: Mapping[str, Any]) -> str:
    data = output.get("data") or {}
    if "image/png" in data:
        image = base64.b64encode(base64.b64decode("".join(data["image/png"]))).decode()
        return f"<img src='data:image/png;base64,{image}'>"
    text = "".join(output.get("text") or data.get("text/plain") or output.get("traceback") or ())
    return f"<pre>{html.escape(text)}</pre>"
