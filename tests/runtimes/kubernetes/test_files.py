"""Files on their way: what is shared, what travels, and how it comes home."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.plan import Plan, SourceFile, Step
from jupyterlab_convect.runner import environment
from jupyterlab_convect.runtimes.kubernetes import bundles, carrier
from jupyterlab_convect.runtimes.kubernetes.homecoming import Homecoming, PlainLog
from jupyterlab_convect.runtimes.kubernetes.shares import covering, share_from_config, take_over

CLAIM = {"persistentVolumeClaim": {"claimName": "home"}}


def own_pod(*mounts: Any, **volumes: Any) -> Any:
    return {
        "spec": {
            "nodeName": "n7",
            "volumes": [{"name": name, **source} for name, source in volumes.items()],
            "containers": [{"image": "hub/lab:1", "volumeMounts": list(mounts)}],
            "securityContext": {"fsGroup": 100},
            "imagePullSecrets": [{"name": "registry"}],
            "tolerations": [{"key": "hub", "operator": "Exists"}, {"key": "node.kubernetes.io/x"}],
        }
    }


def test_the_server_s_volume_is_found_and_its_habits_are_taken_over() -> None:
    pod = own_pod(
        {"name": "home", "mountPath": "/home/ana", "subPath": "ana"},
        {"name": "tmp", "mountPath": "/scratch"},
        {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        home=CLAIM,
        tmp={"emptyDir": {}},
        token={"projected": {}},
    )
    own = take_over(pod, {"home": ["ReadWriteMany"]})
    assert [(share.path, share.volume, share.sub_path, share.node) for share in own.shares] == [
        ("/home/ana", CLAIM, "ana", None)
    ]
    assert own.image == "hub/lab:1"
    assert own.pull_secrets == ("registry",)
    assert own.tolerations == ({"key": "hub", "operator": "Exists"},)
    assert own.pod_security == {"fsGroup": 100}


def test_a_volume_for_one_node_is_pinned_and_said() -> None:
    pod = own_pod({"name": "home", "mountPath": "/home/ana"}, home=CLAIM)
    own = take_over(pod, {"home": ["ReadWriteOnce"]})
    assert own.shares[0].node == "n7"
    assert "steps run on n7" in own.notes[0]
    alone = take_over(pod, {"home": ["ReadWriteOncePod"]})
    assert alone.shares == ()
    assert "one pod alone" in alone.notes[0]


def test_what_is_covered() -> None:
    shares = [share_from_config({"path": "/home/ana/", "claim": "homes"})]
    assert covering(shares, ["/home/ana", "/home/ana/x.ipynb"]) is None
    assert covering(shares, ["/home/ana/x", "/home/anabel/x"]) == "/home/anabel/x"


@pytest.mark.parametrize(
    "entry", [{}, {"path": "home", "claim": "x"}, {"path": "/home"}, {"path": "/a", "clame": "x"}]
)
def test_a_wrong_mapping_is_refused(entry: Any) -> None:
    with pytest.raises(Refused, match="is wrong"):
        share_from_config(entry)


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
    archive = bundles.pack(folder, step, bundles.Asked(root, plan))
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(archive))) as tar:
        assert sorted(tar.getnames()) == [
            "attempt/step.json",
            "handed/0/data/x",
            "handed/1/x",
            "root/sub/data/x",
            "root/sub/lib.py",
            "root/sub/use.py",
        ]
        spec = json.loads(tar.extractfile("attempt/step.json").read())
    assert spec["source"] == "/convect/root/sub/use.py"
    assert spec["folder"] == "/convect/root/sub"
    assert spec["parameters"]["path"] == "/convect/handed/0/data"
    assert spec["parameters"]["other"].startswith(str(root.parent))
    assert spec["env"] == {"FILE": "/convect/handed/1/x"}
    assert spec["command"] == ["--data=/convect/handed/0/data"]


class Wire:
    """What a carrier in a pod says, heard here."""

    def __init__(self, there: Path, home: Path, limit: int = 1_000_000) -> None:
        self.lines: list[str] = []
        self.sender = carrier.Sender(there, limit, self.lines.append)
        self.home = home

    def hear(self, lines: list[str] | None = None) -> Homecoming:
        heard = Homecoming(self.home)
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
    carrier.bring_home(tmp_path / "there", wire.sender)
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
    carrier.bring_home(there, carrier.Sender(there, 1_000_000, lines.append))
    Homecoming(home).take("".join(lines).encode())
    recorded = json.loads((home / environment.FILE).read_text())
    assert recorded["host"] == {"name": "pod"}
    assert environment.read(tmp_path / "runs" / environment.FOLDER, recorded["digest"]) == content


def test_a_log_can_be_read_again_and_from_anywhere(wire: Wire, tmp_path: Path) -> None:
    carrier.bring_home(tmp_path / "there", wire.sender)
    wire.hear(wire.lines[:3])
    wire.hear(wire.lines[:5])
    wire.hear()
    wire.hear()
    assert everything(wire.home) == everything(tmp_path / "there")


def test_a_log_that_lost_its_beginning_does_not_pretend(wire: Wire, tmp_path: Path) -> None:
    carrier.bring_home(tmp_path / "there", wire.sender)
    wire.hear([line for line in wire.lines if '"files/data/x"' not in line])
    outcome = json.loads((wire.home / "outputs.json").read_text())
    assert outcome["state"] == "failed"
    assert "lost on its way home" in outcome["reason"]


def test_too_much_is_said_and_the_rest_comes(wire: Wire, tmp_path: Path) -> None:
    import os

    (tmp_path / "there" / "files" / "data" / "x").write_bytes(os.urandom(2_000_000))
    carrier.bring_home(tmp_path / "there", wire.sender)
    wire.hear()
    outcome = json.loads((wire.home / "outputs.json").read_text())
    assert outcome["state"] == "failed"
    assert "too large to come home without a shared volume: data/x." in outcome["reason"]
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
    ],
)
def test_lines_of_others_do_no_harm(wire: Wire, line: str) -> None:
    before = everything(wire.home.parent)
    assert not wire.hear([line]).ended
    assert everything(wire.home.parent) == before


def test_a_plain_log_is_read_again_and_only_what_is_new_is_added(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    for pieces in (["one\n"], ["one", "\ntwo\n"], ["one\ntwo\nthr", "ee\n"]):
        log = PlainLog(path)
        for piece in pieces:
            log.take(piece.encode())
    assert path.read_text() == "one\ntwo\nthree\n"


def test_a_plain_log_that_lost_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    PlainLog(path).take(b"one\ntwo\n")
    PlainLog(path).take(b"two\nthree\n")
    head, note, tail = path.read_text().partition("[The beginning of the log was thrown away")
    assert (head.strip(), bool(note)) == ("one\ntwo", True)
    assert tail.endswith("two\nthree\n")
