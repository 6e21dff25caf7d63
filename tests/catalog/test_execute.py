"""Components run, by the real runner, and hand on values and files."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.catalog.approvals import Approvals, store_folder
from jupyterlab_convect.catalog.engines import container_engine
from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.read import read
from jupyterlab_convect.pipeline.plan import Plan, Step, to_json
from jupyterlab_convect.runs.attempts import describe
from jupyterlab_convect.runs.model import Request, Run

pytestmark = pytest.mark.slow

Make = Callable[..., Component]


class Attempt:
    """An attempt at one component in a runs folder, described as the engine does it."""

    def __init__(self, tmp_path: Path, component: Component, **arguments: Any) -> None:
        self.runs = tmp_path / "runs"
        self.folder = self.runs / "r1" / "steps" / "s" / "1"
        self.folder.mkdir(parents=True)
        step = Step(
            id="s",
            kind="component",
            name="s",
            component="c",
            parameters=arguments,
            env={"ASKED": "yes"},
            working_folder="isolated",
        )
        plan = Plan("p", (step,), components={"c": to_json(component)})
        run = Run("r1", "my run", 0.0, "local", plan, Request(root=str(tmp_path)))
        described = describe(run, step, 1, self.folder, {}, None)
        (self.folder / "step.json").write_text(json.dumps(described))
        self.approvals = Approvals(store_folder(self.runs))
        self.component = component

    def start(self, **env: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "jupyterlab_convect.runner", str(self.folder)],
            env={**os.environ, "CONVECT_CONTAINER_ENGINE": "", **env},
        )

    def run(self, *, approved: bool = True, **env: str) -> dict[str, Any]:
        if approved:
            self.approvals.give(self.component)
        self.start(**env).wait(60)
        return self.outcome

    @property
    def outcome(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.folder / "outputs.json").read_text())
        return value

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text()


def shell(component: Make, script: str, args: list[Any], **more: Any) -> Component:
    return component(args, command=["sh", "-ec", script], **more)


ADD = 'echo "$(($0+$1))" > "$2"'


def adder(component: Make) -> Component:
    return shell(
        component,
        ADD,
        [{"inputValue": "a"}, {"inputValue": "b"}, {"outputPath": "sum"}],
        inputs=[{"name": "a", "type": "Integer"}, {"name": "b", "type": "Integer"}],
        outputs=[{"name": "sum", "type": "Integer"}],
    )


def test_values_go_in_and_come_out(component: Make, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, adder(component), a=2, b="3")
    outcome = attempt.run()
    assert outcome["state"] == "succeeded", outcome
    assert outcome["values"] == {"sum": 5}
    assert [item["path"] for item in outcome["files"]] == ["outputs/sum/data"]
    assert "Not contained" in attempt.log


def test_without_a_container_nothing_runs_that_nobody_approved(
    component: Make, tmp_path: Path
) -> None:
    attempt = Attempt(tmp_path, adder(component), a=2, b=3)
    outcome = attempt.run(approved=False)
    assert outcome["state"] == "failed"
    assert "has not been approved to run without a container" in outcome["reason"]
    assert "echo" in outcome["reason"]
    assert "convect component approve" in attempt.log
    assert not outcome["values"]


def test_an_approval_of_one_command_is_none_of_another(component: Make, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, adder(component), a=2, b=3)
    attempt.approvals.give(component(["x"], command=["true"]))
    assert attempt.run(approved=False)["state"] == "failed"


def test_files_and_folders_go_in_and_come_out(component: Make, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a b.txt").write_text("hello")
    made = shell(
        component,
        'mkdir "$3"; cp "$0" "$3/copy"; ls -R "$1" > "$2"; echo "$4" >> "$2"',
        [
            {"inputPath": "one"},
            {"inputPath": "all"},
            {"outputPath": "list"},
            {"outputPath": "folder"},
            {"inputPath": "text"},
        ],
        inputs=[{"name": "one"}, {"name": "all"}, {"name": "text"}],
        outputs=[{"name": "list"}, {"name": "folder", "type": "Directory"}],
    )
    attempt = Attempt(
        tmp_path, made, one={"file": "data/a b.txt"}, all={"file": "data"}, text="written"
    )
    outcome = attempt.run()
    assert outcome["state"] == "succeeded", outcome
    kept = Path(outcome["values"]["folder"]["file"])
    assert (kept / "copy").read_text() == "hello"
    assert outcome["values"]["folder"]["size"] == 5
    listing = Path(outcome["values"]["list"]["file"]).read_text().splitlines()
    assert "a b.txt" in listing
    assert Path(listing[-1]).read_text() == "written"


def test_the_content_of_a_file_is_a_value_where_one_is_wanted(
    component: Make, tmp_path: Path
) -> None:
    (tmp_path / "n.txt").write_text("40")
    assert Attempt(tmp_path, adder(component), a={"file": "n.txt"}, b=2).run()["values"] == {
        "sum": 42
    }


def test_a_large_output_is_a_file_whatever_its_type(component: Make, tmp_path: Path) -> None:
    made = shell(
        component,
        'head -c 100000 /dev/zero | tr "\\0" x > "$0"',
        [{"outputPath": "o"}],
        outputs=[{"name": "o", "type": "String"}],
    )
    outcome = Attempt(tmp_path, made).run()
    assert outcome["values"]["o"]["size"] == 100_000


def test_an_empty_folder_is_an_output_too(component: Make, tmp_path: Path) -> None:
    made = shell(
        component,
        'mkdir "$0"',
        [{"outputPath": "o"}],
        outputs=[{"name": "o", "type": "Directory"}],
    )
    outcome = Attempt(tmp_path, made).run()
    assert outcome["state"] == "succeeded", outcome
    assert Path(outcome["values"]["o"]["file"]).is_dir()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "“Example” did not write its output “o”"),
        ("echo bad luck; exit 3", "s exited with code 3: bad luck"),
        ("kill -9 $$", "s exited with code 137"),
    ],
)
def test_what_went_wrong_is_said(component: Make, tmp_path: Path, script: str, words: str) -> None:
    made = shell(component, script, [{"outputPath": "o"}], outputs=[{"name": "o"}])
    outcome = Attempt(tmp_path, made).run()
    assert outcome["state"] == "failed"
    assert words in outcome["reason"]


def test_what_is_missing_is_said(component: Make, tmp_path: Path) -> None:
    made = component([{"inputPath": "i"}], [{"name": "i"}], command=["no-such-program"])
    for number, (given, words) in enumerate(
        [
            ({}, "The input “i” of “Example” has no value"),
            ({"i": {"file": "nowhere"}}, "nowhere for the input “i” is not there"),
            ({"i": "x"}, "no-such-program is not installed here"),
        ]
    ):
        outcome = Attempt(tmp_path / str(number), made, **given).run()
        assert words in outcome["reason"]


def test_what_only_an_image_knows_is_refused(component: Make, tmp_path: Path) -> None:
    entry = component(["--x"])
    assert "inside its image" in Attempt(tmp_path / "a", entry).run()["reason"]
    fixed = component(
        [], outputs=[{"name": "o"}], command=["true"], fileOutputs={"o": "/output.txt"}
    )
    assert "runs only in its container" in Attempt(tmp_path / "b", fixed).run()["reason"]


def test_packages_are_installed_for_the_step_alone(component: Make, tmp_path: Path) -> None:
    script = 'echo "$PIP_TARGET" > "$0"; mkdir -p "$PIP_TARGET"; echo "v=7" > "$PIP_TARGET/mine.py"'
    made = shell(
        component,
        script + '; python3 -c "import mine; print(mine.v)" > "$1"; echo "$ASKED" > "$2"',
        [{"outputPath": name} for name in ("target", "seen", "asked")],
        outputs=[{"name": name, "type": "String"} for name in ("target", "seen", "asked")],
    )
    values = Attempt(tmp_path, made).run()["values"]
    assert values["seen"] == "7\n"
    assert values["asked"] == "yes\n"
    assert str(tmp_path) in values["target"]
    assert not Path(values["target"].strip()).exists()


def test_it_can_be_stopped(component: Make, tmp_path: Path) -> None:
    made = shell(component, 'echo started; sleep 600; echo "$0"', [""])
    attempt = Attempt(tmp_path, made)
    attempt.approvals.give(made)
    process = attempt.start()
    deadline = time.monotonic() + 30
    while "started" not in (attempt.log if (attempt.folder / "log.txt").exists() else ""):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    assert attempt.outcome["state"] == "cancelled"


def test_real_components_run(corpus: Path, tmp_path: Path) -> None:
    def attempt(name: str, **given: Any) -> dict[str, Any]:
        component = read((corpus / name).read_bytes(), name).components[0]
        outcome = Attempt(tmp_path / name, component, **given).run()
        assert outcome["state"] == "succeeded", outcome
        values: dict[str, Any] = outcome["values"]
        return values

    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")
    given = {"file": str(table)}
    hashed = attempt("v1-calculate-hash.yaml", Data=given)["Hash"]["file"]
    assert Path(hashed).read_text().strip() == sha256(table.read_bytes()).hexdigest()
    headless = attempt("v1-remove-header.yaml", table=given)["table"]["file"]
    assert Path(headless).read_text() == "1,2\n"
    listed = attempt("v1-list-items.yaml", Directory={"file": str(tmp_path)})["Items"]["file"]
    assert "table.csv" in Path(listed).read_text()
    built = attempt("v1-build-dict.yaml", key_1="x", value_1={"deep": [1]}, key_2="y", value_2={})
    assert built == {"Output": {"x": {"deep": [1]}, "y": {}}}


def test_a_compiled_container_component_runs(tmp_path: Path) -> None:
    text = """
    pipelineInfo: {name: shout}
    components:
      c: {executorLabel: e, inputDefinitions: {parameters: {word: {parameterType: STRING}}},
          outputDefinitions: {parameters: {loud: {parameterType: STRING}},
                              artifacts: {copy: {artifactType: {schemaTitle: system.Dataset}}}}}
    deploymentSpec:
      executors:
        e:
          container:
            image: alpine
            command: [sh, -ec, 'echo "$0!" | tee "$1" > "$2"',
              "{{$.inputs.parameters['word']}}",
              "{{$.outputs.parameters['loud'].output_file}}",
              "{{$.outputs.artifacts['copy'].path}}"]
    root:
      inputDefinitions: {parameters: {word: {parameterType: STRING}}}
      dag:
        tasks:
          t:
            componentRef: {name: c}
            inputs: {parameters: {word: {componentInputParameter: word}}}
        outputs:
          parameters:
            loud: {valueFromParameter: {outputParameterKey: loud, producerSubtask: t}}
          artifacts:
            copy: {artifactSelectors: [{outputArtifactKey: copy, producerSubtask: t}]}
    """
    (component,) = read(text.encode(), "shout.yaml").components
    assert component.container is not None
    outcome = Attempt(tmp_path, component, word="hey").run()
    assert outcome["values"]["loud"] == "hey!\n"
    assert Path(outcome["values"]["copy"]["file"]).read_text() == "hey!\n"


def test_a_compiled_function_reports_by_its_executor_output(tmp_path: Path) -> None:
    """What Kubeflow's executor does, with an executor of our own."""
    program = (
        "import json, sys; given = json.loads(sys.argv[1]); "
        "total = sum(given['inputs']['parameterValues'].values()); "
        "metrics = {'name': 'm', 'type': {'schemaTitle': 'system.Metrics'}, "
        "'metadata': {'score': 0.5}}; "
        "json.dump({'parameterValues': {'Output': total}, "
        "'artifacts': {'m': {'artifacts': [metrics]}}}, "
        "open(given['outputs']['outputFile'], 'w'))"
    )
    spec = {
        "pipelineInfo": {"name": "add"},
        "components": {
            "c": {
                "executorLabel": "e",
                "inputDefinitions": {
                    "parameters": {key: {"parameterType": "NUMBER_INTEGER"} for key in "ab"}
                },
                "outputDefinitions": {
                    "parameters": {"Output": {"parameterType": "NUMBER_INTEGER"}}
                },
            }
        },
        "deploymentSpec": {
            "executors": {
                "e": {"container": {"image": "a", "command": ["python3", "-c", program, "{{$}}"]}}
            }
        },
        "root": {
            "inputDefinitions": {
                "parameters": {key: {"parameterType": "NUMBER_INTEGER"} for key in "ab"}
            },
            "dag": {
                "tasks": {
                    "t": {
                        "componentRef": {"name": "c"},
                        "inputs": {
                            "parameters": {key: {"componentInputParameter": key} for key in "ab"}
                        },
                    }
                },
                "outputs": {
                    "parameters": {
                        "Output": {
                            "valueFromParameter": {
                                "outputParameterKey": "Output",
                                "producerSubtask": "t",
                            }
                        }
                    }
                },
            },
        },
    }
    (component,) = read(json.dumps(spec).encode(), "add.json").components
    outcome = Attempt(tmp_path, component, a="2", b=3).run()
    assert outcome["state"] == "succeeded", outcome
    assert outcome["values"] == {"Output": 5}
    assert outcome["metrics"] == {"score": 0.5}


ENGINE = """#!{python}
import os, subprocess, sys
# Stands in for a container engine: volumes become links, so that the paths are true.
words = sys.argv[1:]
if words[0] != "run":
    sys.exit(0)
mapping, entry, rest = [], [], words[1:]
while rest and rest[0].startswith("-"):
    word = rest.pop(0)
    if word in ("-v", "-e", "--name", "--entrypoint"):
        value = rest.pop(0)
        if word == "-v":
            mapping.append(value.split(":")[:2])
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


def test_with_a_container_engine_no_approval_is_needed(component: Make, tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("hello")
    made = shell(
        component,
        'cat "$0" "$1" > "$2"',
        [{"inputPath": "a"}, {"inputPath": "b"}, {"outputPath": "o"}],
        inputs=[{"name": "a"}, {"name": "b"}],
        outputs=[{"name": "o", "type": "String"}],
    )
    attempt = Attempt(tmp_path, made, a={"file": "n.txt"}, b=" world")
    outcome = attempt.run(approved=False, CONVECT_CONTAINER_ENGINE=engine(tmp_path))
    assert outcome["state"] == "succeeded", outcome
    assert outcome["values"] == {"o": "hello world"}
    assert "Not contained" not in attempt.log


IMAGE = "localhost/jupyterlab-convect-test:1"


@pytest.fixture(scope="module")
def real_engine() -> str:
    """podman or docker, with an image made of nothing but busybox; skipped without them."""
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
        [program, "run", "--rm", "--network", "none", IMAGE, "/bin/sh", "-c", "true"],
        capture_output=True,
    )
    if tried.returncode:
        words = (made.stderr + tried.stderr).decode().strip().splitlines()
        pytest.skip(f"{Path(program).name} runs no containers here: {' '.join(words[-1:])}")
    return program


def test_a_real_container_gets_and_gives_files(
    component: Make, tmp_path: Path, real_engine: str
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
    attempt = Attempt(tmp_path, made, a={"file": "data"}, b=" world")
    outcome = attempt.run(approved=False, CONVECT_CONTAINER_ENGINE=real_engine)
    assert outcome["state"] == "succeeded", (outcome, attempt.log)
    assert outcome["values"]["o"] == "hello world"
    assert outcome["values"]["fixed"] == 7
    assert Path(outcome["values"]["folder"]["file"], "env").read_text() == "yes\n"


def test_a_real_container_is_stopped(component: Make, tmp_path: Path, real_engine: str) -> None:
    attempt = Attempt(tmp_path, shell(component, "echo started; sleep 600", [], image=IMAGE))
    process = attempt.start(CONVECT_CONTAINER_ENGINE=real_engine)
    deadline = time.monotonic() + 60
    while "started" not in (attempt.log if (attempt.folder / "log.txt").exists() else ""):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    assert attempt.outcome["state"] == "cancelled"
    while (
        "convect-r1-s-1"
        in subprocess.run(
            [real_engine, "ps", "--format", "{{.Names}}"], capture_output=True, text=True
        ).stdout
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)
