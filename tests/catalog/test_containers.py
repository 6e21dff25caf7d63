"""Containers and pods: what they are told, and that real ones do it."""

from __future__ import annotations

import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, until

from jupyterlab_convect.catalog.launch import (
    Folders,
    as_container,
    as_distant_pod,
    as_pod,
    container_engine,
    user_in,
)
from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.render import File, Value

Make = Callable[..., Component]


def shell(component: Make, script: str, args: list[Any], **more: Any) -> Component:
    return component(args, command=["sh", "-ec", script], **more)


CONTEXT = dict.fromkeys(("run.id", "run.name", "step.id", "root", "time"), "x") | {"step.uid": "u"}


def test_a_container_sees_kubeflow_paths_and_nothing_else(component: Make, tmp_path: Path) -> None:
    made = component(
        [{"inputPath": "file"}, {"inputPath": "text"}, {"outputPath": "o"}],
        inputs=[{"name": "file"}, {"name": "text"}],
        outputs=[{"name": "o"}, {"name": "fixed"}],
        command=["sh", "-c", "true"],
        env={"A": "1"},
        fileOutputs={"fixed": "/output.txt"},
    )
    folders = Folders(tmp_path / "work")
    launch = as_container(
        made,
        {"file": File("/home/x.csv"), "text": Value("hello")},
        folders,
        CONTEXT,
        program="/usr/bin/docker",
        env={"B": "2"},
        secrets=["TOKEN"],
        gpus="0,1",
    )
    inputs, outputs = folders.inputs, folders.outputs
    assert list(launch.command) == [
        *("/usr/bin/docker", "run", "--rm", "--name", "u"),
        *("--mount", f"type=bind,source={inputs},target=/tmp/inputs"),
        *("--mount", f"type=bind,source={outputs},target=/tmp/outputs"),
        *("--mount", "type=bind,source=/home/x.csv,target=/tmp/inputs/file/data,readonly"),
        *("--mount", f"type=bind,source={outputs}/fixed/data,target=/output.txt"),
        *("-e", "A=1", "-e", "B=2", "-e", "TOKEN"),
        *("--gpus", '"device=0,1"'),
        *("--entrypoint", "sh", "alpine", "-c", "true"),
        *("/tmp/inputs/file/data", "/tmp/inputs/text/data", "/tmp/outputs/o/data"),
    ]
    assert launch.writes == {inputs / "text" / "data": "hello"}
    assert launch.reads == {"o": outputs / "o" / "data", "fixed": outputs / "fixed" / "data"}
    assert launch.mounts == {inputs / "file" / "data": False, outputs / "fixed" / "data": False}


def test_a_pod_keeps_command_and_arguments_apart(component: Make, tmp_path: Path) -> None:
    made = component(
        [{"inputPath": "i"}, {"outputPath": "o"}],
        inputs=[{"name": "i"}],
        outputs=[{"name": "o"}],
        command=["sh", "-c"],
    )
    folders = Folders(tmp_path / "work")
    launch = as_pod(made, {"i": File("/home/x.csv")}, folders, CONTEXT)
    assert (launch.image, launch.command) == ("alpine", ("sh", "-c"))
    assert launch.args == ("/home/x.csv", str(folders.outputs / "o" / "data"))
    fixed = component([], outputs=[{"name": "o"}], fileOutputs={"o": "/output.txt"})
    launch, place = as_pod(fixed, {}, folders, CONTEXT), folders.outputs / "o" / "data"
    assert (launch.binds, launch.reads) == ({"/output.txt": place}, {"o": place})
    assert launch.mounts == {place: False}


def test_a_distant_pod_has_the_paths_of_kubeflow(component: Make, tmp_path: Path) -> None:
    made = component(
        [{"inputPath": "i"}, {"inputPath": "t"}, {"outputPath": "o"}],
        inputs=[{"name": "i"}, {"name": "t"}],
        outputs=[{"name": "o"}, {"name": "f"}],
        fileOutputs={"f": "/output.txt"},
    )
    folders = Folders(tmp_path / "work")
    given = {"i": File("/home/x.csv"), "t": Value("hello")}
    launch, files = as_distant_pod(made, given, folders, CONTEXT)
    assert launch.args == ("/tmp/inputs/i/data", "/tmp/inputs/t/data", "/tmp/outputs/o/data")
    assert files == {"/tmp/inputs/i/data": "/home/x.csv"}
    assert launch.writes == {folders.inputs / "t" / "data": "hello"}
    assert launch.binds == {"/output.txt": Path("/tmp/outputs/f/data")}
    assert launch.reads == {
        "o": folders.outputs / "o" / "data",
        "f": folders.outputs / "f" / "data",
    }


def test_a_client_without_its_server_is_no_engine(tmp_path: Path) -> None:
    path = tmp_path / "docker"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    assert container_engine({"PATH": str(tmp_path)}) is None
    path.write_text("#!/bin/sh\nexit 0\n")
    assert container_engine({"PATH": str(tmp_path)}) == str(path)
    assert container_engine({"PATH": str(tmp_path), "CONVECT_CONTAINER_ENGINE": ""}) is None


ENGINE = """#!{python}
import csv, os, subprocess, sys
# Stands in for a container engine: volumes become links, so that the paths are true.
words = sys.argv[1:]
if words[0] != "run":
    sys.exit(0)
mapping, entry, rest = [], [], words[1:]
while rest and rest[0].startswith("-"):
    word = rest.pop(0)
    if word != "--rm":
        value = rest.pop(0)
        print(word, value)
        if word == "--mount":
            fields = dict(field.partition("=")[::2] for field in next(csv.reader([value])))
            mapping.append([fields["source"], fields["target"]])
        if word == "--entrypoint":
            entry = [value]
def real(word):
    for source, target in sorted(mapping, key=lambda pair: -len(pair[1])):
        word = word.replace(target, source)
    return word
sys.exit(subprocess.call([real(word) for word in entry + rest[1:]]))
"""


def engine(tmp_path: Path) -> str:
    path = tmp_path / "engine"
    path.write_text(ENGINE.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.slow
def test_with_a_container_engine_no_approval_is_needed(
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
    (tmp_path / "n.txt").write_text("hello")
    made = shell(
        component,
        'cat "$0" "$1" > "$2"',
        [{"inputPath": "a"}, {"inputPath": "b"}, {"outputPath": "o"}],
        inputs=[{"name": "a"}, {"name": "b"}],
        outputs=[{"name": "o", "type": "String"}],
    )
    attempt = attempt_at(tmp_path, made, a={"file": "n.txt"}, b=" world")
    outcome = attempt.run(approved=False, CONVECT_CONTAINER_ENGINE=engine(tmp_path))
    assert outcome["state"] == "succeeded", outcome
    assert outcome["values"] == {"o": "hello world"}
    assert "Not contained" not in attempt.log


@pytest.mark.slow
def test_limits_and_odd_names_reach_a_container(
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
    """What the engine starts is not in the control group of the step."""
    odd = tmp_path / 'a:b,c "d"'
    odd.mkdir()
    (odd / "n.txt").write_text("hello")
    made = shell(
        component,
        'cat "$0" > "$1"',
        [{"inputPath": "a"}, {"outputPath": "o"}],
        inputs=[{"name": "a"}],
        outputs=[{"name": "o", "type": "String"}],
    )
    attempt = attempt_at(odd, made, a={"file": "n.txt"})
    limits = {"CONVECT_MEMORY_LIMIT": str(512 << 20), "CONVECT_CPU_LIMIT": "0.5"}
    outcome = attempt.run(approved=False, CONVECT_CONTAINER_ENGINE=engine(tmp_path), **limits)
    assert outcome["state"] == "succeeded", (outcome, attempt.log)
    assert outcome["values"] == {"o": "hello"}
    assert f"--memory {512 << 20}b\n--memory-swap {512 << 20}b\n--cpus 0.5\n" in attempt.log


@pytest.mark.parametrize(
    ("said", "uid", "user"),
    [
        ("[name=seccomp,profile=builtin name=cgroupns]", 1000, "1000:100"),
        ("[name=seccomp name=rootless]", 1000, None),
        ("[name=seccomp]", 0, None),
        (None, 1000, None),
    ],
)
def test_files_of_a_container_belong_to_who_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, uid: int, user: str | None
) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\nexit 1\n" if said is None else f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setattr(os, "getgid", lambda: 100)
    assert user_in(str(program)) == user


def test_a_user_whom_the_image_does_not_know_has_a_home(component: Make, tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    launch = as_container(component([]), {}, folders, CONTEXT, program="docker", user="1000:100")
    words = " ".join(launch.command)
    assert "--user 1000:100" in words
    assert "-e HOME=/tmp" in words


IMAGE = "localhost/jupyterlab-convect-test:1"


MODEST = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
"""
"""Limits that nobody has to raise, and no network that would come and go on the machine."""


@pytest.fixture(scope="module")
def real_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """podman or docker, with an image made of nothing but busybox; skipped without them."""
    modest = tmp_path_factory.mktemp("podman") / "containers.conf"
    modest.write_text(MODEST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", str(modest))
        yield engine_with_image()


def engine_with_image() -> str:
    program, busybox = container_engine(os.environ), shutil.which("busybox")
    if program is None:
        pytest.skip("neither podman nor docker works here")
    if busybox is None:
        pytest.skip("there is no busybox (package busybox-static) to make an image of")
    image = io.BytesIO()
    with tarfile.open(fileobj=image, mode="w") as archive:
        archive.add(Path(busybox).resolve(), "bin/busybox")
        for name in ("sh", "cat", "mkdir", "sleep"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    made = subprocess.run(
        [program, "import", "-", IMAGE], input=image.getvalue(), capture_output=True
    )
    tried = subprocess.run(
        [program, "run", "--rm", IMAGE, "/bin/sh", "-c", "true"], capture_output=True
    )
    if tried.returncode:
        words = (made.stderr + tried.stderr).decode().strip().splitlines()
        pytest.skip(f"{Path(program).name} runs no containers here: {' '.join(words[-1:])}")
    return program


@pytest.mark.slow
def test_a_real_container_gets_and_gives_files(
    component: Make, tmp_path: Path, real_engine: str, attempt_at: Any
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "n.txt").write_text("hello")
    made = shell(
        component,
        'cat "$0/n.txt" "$1" > "$2"; mkdir "$3"; echo "$ASKED" > "$3/env"; echo 7 > /output.txt',
        [{"inputPath": "a"}, {"inputPath": "b"}, {"outputPath": "o"}, {"outputPath": "folder"}],
        inputs=[{"name": "a"}, {"name": "b"}],
        outputs=[
            {"name": "o", "type": "String"},
            {"name": "folder"},
            {"name": "fixed", "type": "Integer"},
        ],
        fileOutputs={"fixed": "/output.txt"},
        image=IMAGE,
    )
    attempt = attempt_at(tmp_path, made, a={"file": "data"}, b=" world")
    outcome = attempt.run(approved=False, CONVECT_CONTAINER_ENGINE=real_engine)
    assert outcome["state"] == "succeeded", (outcome, attempt.log)
    assert outcome["values"]["o"] == "hello world"
    assert outcome["values"]["fixed"] == 7
    assert Path(outcome["values"]["folder"]["file"], "env").read_text() == "yes\n"


@pytest.mark.slow
def test_a_real_container_is_stopped(
    component: Make, tmp_path: Path, real_engine: str, attempt_at: Any
) -> None:
    attempt = attempt_at(tmp_path, shell(component, "echo started; sleep 600", [], image=IMAGE))
    process = attempt.start(CONVECT_CONTAINER_ENGINE=real_engine)
    log = attempt.folder / "log.txt"
    until(lambda: log.exists() and "started" in attempt.log, "it started")
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE)
    assert attempt.outcome["state"] == "cancelled"
    names = [real_engine, "ps", "--format", "{{.Names}}"]
    until(
        lambda: "convect-r1-s-1" not in subprocess.check_output(names, text=True),
        "the container is gone",
    )
