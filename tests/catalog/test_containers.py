"""What a container and a pod are told: the paths that Kubeflow has, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jupyterlab_convect.catalog.engines import container_engine
from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.render import File, Value
from jupyterlab_convect.catalog.run import Folders, as_container, as_distant_pod, as_pod

Make = Callable[..., Component]

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
        *("-v", f"{inputs}:/tmp/inputs", "-v", f"{outputs}:/tmp/outputs"),
        *("-v", "/home/x.csv:/tmp/inputs/file/data:ro"),
        *("-v", f"{outputs}/fixed/data:/output.txt"),
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
