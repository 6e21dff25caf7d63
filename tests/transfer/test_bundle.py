"""Files in a bundle, and results through a log: what is sent, and what of it is believed."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import lzma
import random
import tarfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect import json_text
from jupyterlab_convect.pipeline.plan import Plan, SourceFile, Step
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.runner import environment
from jupyterlab_convect.runtimes.base import Attempt
from jupyterlab_convect.transfer import agent, pack
from jupyterlab_convect.transfer.bundle import compress, load
from jupyterlab_convect.transfer.check_results import Unusable, frame_of, outcome_of
from jupyterlab_convect.transfer.receive import LogReceiver


@pytest.fixture
def packed(tmp_path: Path) -> tuple[Path, Path, Step, Plan]:
    """A root folder, an attempt's folder, its step and the plan."""
    root, folder = tmp_path / "root", tmp_path / "runs" / "r" / "steps" / "use" / "1"
    folder.mkdir(parents=True)
    for name, text in {
        "sub/use.py": "1",
        "sub/lib.py": "2",
        "sub/data/x": "3",
        "other": "4",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    make = Step("make", "script", "make", path="sub/make.py", outputs=("data/*",))
    use = Step(
        "use",
        "script",
        "use",
        path="sub/use.py",
        after=("make",),
        dependencies=(SourceFile("sub/lib.py", ""),),
    )
    made = tmp_path / "runs" / "r" / "steps" / "part" / "1" / "files" / "data"
    made.mkdir(parents=True)
    (made / "x").write_text("5")
    spec = {
        "source": str(root / "sub/use.py"),
        "folder": str(root / "sub"),
        "inputs": [],
        "parameters": {"n": 1, "path": str(made), "other": f"{tmp_path}/runs/r/../../x"},
        "env": {"FILE": str(made / "x")},
        "command": [f"--data={made}"],
    }
    (folder / "step.json").write_text(json.dumps(spec))
    return root, folder, use, Plan("p", (make, use))


def test_only_what_is_declared_travels(packed: Any) -> None:
    root, folder, step, plan = packed
    runs = folder.parents[3]
    attempt = Attempt("r", step, 1, folder, root=root, plan=plan, runs=runs)
    package = pack.package_of(attempt)
    archive = compress(load(package.within(0), step), step)
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(archive))) as tar:
        assert sorted(tar.getnames()) == [
            "attempt/step.json",
            "named/0/data/x",
            "named/1/x",
            "root/sub/data/x",
            "root/sub/lib.py",
            "root/sub/use.py",
        ]
        spec = json.loads(tar.extractfile("attempt/step.json").read())
    assert spec["source"] == "/convect/root/sub/use.py"
    assert spec["folder"] == "/convect/root/sub"
    assert spec["parameters"]["path"] == "/convect/named/0/data"
    assert spec["parameters"]["other"].startswith(str(root.parent))
    assert spec["env"] == {"FILE": "/convect/named/1/x"}
    assert spec["command"] == ["--data=/convect/named/0/data"]


def test_links_out_of_the_project_are_said_to_be_missing(packed: Any, tmp_path: Path) -> None:
    root, folder, step, plan = packed
    (tmp_path / "elsewhere").mkdir()
    spec = json.loads((folder / "step.json").read_text())
    outside = {"name": "sub/linked", "path": str(tmp_path / "elsewhere"), "is_link": True}
    around = {"name": "~", "path": str(tmp_path), "is_link": False}
    spec["view"] = {
        "root": str(root),
        "layers": [{"folder": str(root)}],
        "outside": [outside, around],
    }
    (folder / "step.json").write_text(json.dumps(spec))
    runs = folder.parents[3]
    package = pack.package_of(Attempt("r", step, 1, folder, root=root, plan=plan, runs=runs))
    sent = json.loads(package.within(10**6).texts["attempt/step.json"])
    said = "Links that lead out of the project are not sent to the pod: sub/linked."
    assert sent["notices"] == [said]


class Wire:
    """What an agent in a pod says, heard here."""

    def __init__(self, there: Path, home: Path, limit: int = 1_000_000) -> None:
        self.lines: list[str] = []
        self.sender = agent.Sender(there, limit, self.lines.append)
        self.home = home

    def hear(self, lines: list[str] | None = None) -> LogReceiver:
        heard = LogReceiver(self.home)
        for line in self.lines if lines is None else lines:
            heard.take(line.rstrip("\n").encode() + b"\n")
        return heard


@pytest.fixture
def wire(tmp_path: Path) -> Wire:
    there, home, work = tmp_path / "there", tmp_path / "home", tmp_path / "work"
    for folder in (there / "files" / "data", home, work):
        folder.mkdir(parents=True)
    (home / "step.json").write_text(json.dumps({"folder": str(work)}))
    (there / "log.txt").write_bytes("日志\n".encode() * 30_000)
    (there / "executed.ipynb").write_text("{}")
    (there / "files" / "data" / "x").write_bytes(bytes(range(256)) * 500)
    fact = {"path": "data/x", "size": 128_000, "digest": "…"}
    (there / "outputs.json").write_text(json.dumps({"state": "succeeded", "files": [fact]}))
    return Wire(there, home)


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("step.json", "outputs.json")
    }


def test_all_comes_home(wire: Wire, tmp_path: Path) -> None:
    agent.send_results(tmp_path / "there", wire.sender)
    wire.sender.end(0)
    assert wire.hear().ended
    assert everything(wire.home) == everything(tmp_path / "there")
    assert json.loads((wire.home / "outputs.json").read_text())["state"] == "succeeded"
    assert (tmp_path / "work" / "data" / "x").exists()


def test_the_environment_comes_home_and_is_kept_among_the_runs(tmp_path: Path) -> None:
    there, home = tmp_path / "there", tmp_path / "runs" / "r" / "steps" / "s" / "1"
    for folder in (there, home):
        folder.mkdir(parents=True)
    (home.parents[2] / "run.json").touch()
    facts = {"python": "3.12.3", "implementation": "CPython", "platform": "linux-x86_64"}
    content = {**facts, "packages": {"pandas": "2.1.0"}}
    sent = {"digest": None, "host": {"name": "pod"}, "content": content}
    (there / environment.FILE).write_text(json.dumps(sent))
    lines: list[str] = []
    agent.send_results(there, agent.Sender(there, 1_000_000, lines.append))
    LogReceiver(home).take("".join(lines).encode())
    recorded = json.loads((home / environment.FILE).read_text())
    assert recorded["host"] == {"name": "pod"}
    assert environment.read(tmp_path / "runs" / environment.FOLDER, recorded["digest"]) == content


def test_a_log_can_be_read_again_and_from_anywhere(wire: Wire, tmp_path: Path) -> None:
    agent.send_results(tmp_path / "there", wire.sender)
    wire.hear(wire.lines[:3])
    wire.hear(wire.lines[:5])
    wire.hear()
    wire.hear()
    assert everything(wire.home) == everything(tmp_path / "there")


def test_a_log_that_lost_its_beginning_does_not_pretend(wire: Wire, tmp_path: Path) -> None:
    agent.send_results(tmp_path / "there", wire.sender)
    wire.hear([line for line in wire.lines if '"files/data/x"' not in line])
    outcome = json.loads((wire.home / "outputs.json").read_text())
    assert outcome["state"] == "failed"
    assert "was not copied back" in outcome["reason"]


def test_too_much_is_said_and_the_rest_comes(wire: Wire, tmp_path: Path) -> None:
    import os

    (tmp_path / "there" / "files" / "data" / "x").write_bytes(os.urandom(2_000_000))
    agent.send_results(tmp_path / "there", wire.sender)
    wire.hear()
    outcome = json.loads((wire.home / "outputs.json").read_text())
    assert outcome["state"] == "failed"
    assert "too large to be copied back without a shared volume: data/x." in outcome["reason"]
    assert (wire.home / "executed.ipynb").exists()


@pytest.mark.parametrize(
    "line",
    [
        "anything",
        "convect:1:",
        "convect:1:{}",
        'convect:1:{"file": "../x", "at": 0, "generation": 1, "data": "eJwDAAAAAAE="}',
        'convect:1:{"file": "files/../../x", "at": 0, "generation": 1, "data": "!", "digest": ""}',
        'convect:1:{"file": "run.json", "at": 0, "generation": 1, "data": "eJwDAAAAAAE="}',
        'convect:1:{"file": "files/x", "at": "a", "generation": [], "data": "eJwDAAAAAAE="}',
        "convect:1:[1]",
        'convect:1:{"end": "x"}',
        'convect:1:{"end": 0, "missing": ["../x"]}',
        'convect:1:{"file": "log.txt", "at": 99999999999, "data": "eJwDAAAAAAE="}',
        'convect:1:{"file": "files/\\ud800", "at": 0, "generation": 1, "data": "eJwDAAAAAAE="}',
        "convect:1:" + "[" * 100_000,
        "convect:1:" + '{"a":' * 100 + "1" + "}" * 100,
        "convect:1:" + "1" * 10_000,
        "convect:1:" + "x" * 1_000_000,
    ],
)
def test_lines_of_others_do_no_harm(wire: Wire, line: str) -> None:
    before = everything(wire.home.parent)
    assert not wire.hear([line]).ended
    assert everything(wire.home.parent) == before


def sent(name: str, content: bytes, **more: Any) -> str:
    """A file in one piece, as an agent would say it."""
    frame = {"file": name, "at": 0, "generation": 1, "data": agent._packed(content)}
    frame["digest"] = hashlib.sha256(content).hexdigest()
    return agent.MARK + json.dumps({**frame, **more})


@pytest.mark.parametrize(
    "outcome",
    [
        {"state": "succeeded", "files": [{"path": "../log.txt", "size": 3}]},
        {"state": "succeeded", "files": [{"path": "/etc/passwd", "size": 3}]},
        {"state": "succeeded", "files": [{"path": "a//b", "size": 3}]},
        {"state": "succeeded", "files": [{"path": "x", "size": "3"}]},
        {"state": "succeeded", "files": 7},
        {"state": "running"},
        {"state": "succeeded", "metrics": {"loss": "low"}},
        {"state": "succeeded", "values": []},
        {"state": "failed", "reason": {"a": 1}},
        [],
    ],
)
def test_an_outcome_that_no_runner_writes_is_a_failure(wire: Wire, outcome: Any) -> None:
    before = everything(wire.home.parent)
    wire.hear([sent("outputs.json", json.dumps(outcome).encode())])
    kept = json.loads((wire.home / "outputs.json").read_text())
    assert kept["state"] == "failed"
    assert kept["reason"].startswith("What came back from the pod cannot be used: ")
    assert everything(wire.home.parent) == before


@pytest.mark.parametrize("told", [[], 7, {"content": 7}, {"content": {"packages": 7}}, "x"])
def test_a_record_of_an_environment_that_is_none_is_left(wire: Wire, told: Any) -> None:
    wire.hear([sent(environment.FILE, json.dumps(told).encode())])
    wire.hear([sent("executed.ipynb", b"{}")])
    assert (wire.home / "executed.ipynb").exists()


def test_what_a_runner_tells_of_an_error_comes_back_whole(wire: Wire) -> None:
    error = {"cell": 2, "name": "ValueError", "value": "no", "traceback": ["a", "b"]}
    outcome = {"state": "failed", "reason": "Cell 2 raised ValueError", "error": error}
    wire.hear([sent("outputs.json", json.dumps(outcome).encode())])
    assert json.loads((wire.home / "outputs.json").read_text()) == outcome


def test_numbers_that_json_has_not_come_back_as_they_are(wire: Wire) -> None:
    outcome = {"state": "succeeded", "metrics": {"loss": float("nan"), "n": 1}}
    wire.hear([sent("outputs.json", json_text.dumps(outcome).encode())])
    kept = json_text.loads((wire.home / "outputs.json").read_text())
    assert (kept["state"], kept["metrics"]["n"]) == ("succeeded", 1)
    assert kept["metrics"]["loss"] != kept["metrics"]["loss"]


def test_a_small_line_does_not_become_a_large_file(wire: Wire) -> None:
    bomb = base64.b64encode(zlib.compress(b"0" * 50_000_000)).decode()
    wire.hear([sent("files/x", b"", data=bomb), sent("executed.ipynb", b"", data=bomb)])
    assert not (wire.home / "files" / "x").exists()
    assert not (wire.home / "executed.ipynb").exists()


def test_a_name_is_a_file_or_a_folder(wire: Wire) -> None:
    wire.hear([sent("files/a", b"1"), sent("files/a/b", b"2"), sent("files/c/d", b"3")])
    wire.hear([sent("files/c", b"4"), sent("files/e", b"5")])
    assert (wire.home / "files" / "a").read_bytes() == b"1"
    assert (wire.home / "files" / "c" / "d").read_bytes() == b"3"
    assert (wire.home / "files" / "e").read_bytes() == b"5"


def test_a_link_of_the_user_is_not_followed_out_of_the_folder(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "work" / "x").symlink_to(tmp_path / "elsewhere")
    outcome = {"state": "succeeded", "files": [{"path": "x", "size": 3}]}
    wire.hear([sent("files/x", b"new"), sent("outputs.json", json.dumps(outcome).encode())])
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert (wire.home / "files" / "x").read_bytes() == b"new"


WORDS = [
    *(None, True, -1, 0, 1, 10**30, 0.5, "", "..", "a/../../b", "/x", "files/x", "outputs.json"),
    *(
        "log.txt",
        "\0",
        "\ud800",
        "x" * 5000,
        [],
        [[]],
        {},
        {"path": "../y", "size": 0},
        "eJwDAAAAAAE=",
    ),
]


def test_whatever_a_pod_says_nothing_is_written_outside_and_nothing_breaks(wire: Wire) -> None:
    """Thousands of lines that are nearly right, in any order, cut anywhere."""
    chance = random.Random(7)
    keys = ["file", "at", "generation", "data", "digest", "end", "missing"]
    outcome_keys = ["state", "reason", "files", "values", "metrics", "error", "exit_code"]
    before = everything(wire.home.parent)
    inside = (wire.home / "files", wire.home)
    for _ in range(3000):
        frame = {key: chance.choice(WORDS) for key in chance.sample(keys, chance.randint(0, 7))}
        told = {key: chance.choice(WORDS) for key in chance.sample(outcome_keys, 4)}
        told["state"] = chance.choice(["succeeded", "failed", None])
        lines = [
            agent.MARK + json.dumps(frame),
            sent("outputs.json", json.dumps(told).encode(), **chance.choice([{}, frame])),
        ]
        data = "\n".join(lines).encode()
        at = chance.randint(0, len(data))
        heard = LogReceiver(wire.home)
        heard.take(data[:at])
        heard.take(data[at:] + b"\n")
    after = everything(wire.home.parent)
    new = {name for name in after if after[name] != before.get(name)}
    assert all(Path(wire.home.parent, name).is_relative_to(inside[1]) for name in new), new
    assert {name.partition("/")[0] for name in new} <= {"home"}


@pytest.mark.parametrize("check", [frame_of, outcome_of])
def test_no_bytes_get_past_the_check_with_another_error(check: Any) -> None:
    chance = random.Random(11)
    good = sent("files/x", b"1").encode() if check is frame_of else b'{"state": "failed"}'
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with contextlib.suppress(Unusable):
            check(bytes(data))


def test_a_step_in_a_group_has_what_is_before_the_group() -> None:
    run = {"kind": "command", "command": ["true"]}
    loop = {"name": "n", "in": [1, 2]}
    nodes = {
        "first": run,
        "outer": {"kind": "group", "members": ["inner"], "when": "${{ true }}", "after": ["first"]},
        "inner": {"kind": "group", "members": ["a", "b"], "for_each": loop},
        "a": run,
        "b": {**run, "after": ["a"]},
        "last": {**run, "after": ["outer"]},
    }
    plan = resolve({"convect": 1, "nodes": nodes}, root=Path())
    found = {step.id: {each.id for each in pack.ancestors(plan, step)} for step in plan.steps}
    assert found == {
        "first": set(),
        "a": {"first"},
        "b": {"first", "a"},
        "last": {"first", "a", "b"},
    }
