"""Components run, by the real runner, and hand on values and files."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, until

from jupyterlab_convect.catalog.launch import in_view
from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.read import read
from jupyterlab_convect.errors import ConvectError

pytestmark = pytest.mark.slow

Make = Callable[..., Component]


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


def test_values_go_in_and_come_out(component: Make, tmp_path: Path, attempt_at: Any) -> None:
    attempt = attempt_at(tmp_path, adder(component), a=2, b="3")
    outcome = attempt.run()
    assert outcome["state"] == "succeeded", outcome
    assert outcome["values"] == {"sum": 5}
    assert [item["path"] for item in outcome["files"]] == ["outputs/sum/data"]
    assert "Not contained" in attempt.log


def test_without_a_container_nothing_runs_that_nobody_approved(
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
    attempt = attempt_at(tmp_path, adder(component), a=2, b=3)
    outcome = attempt.run(approved=False)
    assert outcome["state"] == "failed"
    assert "has not been approved to run without a container" in outcome["reason"]
    assert "echo" in outcome["reason"]
    assert "convect component approve" in attempt.log
    assert not outcome["values"]


def test_an_approval_of_one_command_is_none_of_another(
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
    attempt = attempt_at(tmp_path, adder(component), a=2, b=3)
    attempt.approvals.give(component(["x"], command=["true"]))
    assert attempt.run(approved=False)["state"] == "failed"


def test_files_and_folders_go_in_and_come_out(
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
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
    attempt = attempt_at(
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
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
    (tmp_path / "n.txt").write_text("40")
    assert attempt_at(tmp_path, adder(component), a={"file": "n.txt"}, b=2).run()["values"] == {
        "sum": 42
    }


def test_a_large_output_is_a_file_whatever_its_type(
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
    made = shell(
        component,
        'head -c 100000 /dev/zero | tr "\\0" x > "$0"',
        [{"outputPath": "o"}],
        outputs=[{"name": "o", "type": "String"}],
    )
    outcome = attempt_at(tmp_path, made).run()
    assert outcome["values"]["o"]["size"] == 100_000


def test_an_empty_folder_is_an_output_too(component: Make, tmp_path: Path, attempt_at: Any) -> None:
    made = shell(
        component,
        'mkdir "$0"',
        [{"outputPath": "o"}],
        outputs=[{"name": "o", "type": "Directory"}],
    )
    outcome = attempt_at(tmp_path, made).run()
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
def test_what_went_wrong_is_said(
    component: Make, tmp_path: Path, script: str, words: str, attempt_at: Any
) -> None:
    made = shell(component, script, [{"outputPath": "o"}], outputs=[{"name": "o"}])
    outcome = attempt_at(tmp_path, made).run()
    assert outcome["state"] == "failed"
    assert words in outcome["reason"]


def test_what_is_missing_is_said(component: Make, tmp_path: Path, attempt_at: Any) -> None:
    made = component([{"inputPath": "i"}], [{"name": "i"}], command=["no-such-program"])
    for number, (given, words) in enumerate(
        [
            ({}, "The input “i” of “Example” has no value"),
            ({"i": {"file": "nowhere"}}, "nowhere for the input “i” does not exist"),
            ({"i": "x"}, "no-such-program is not installed here"),
        ]
    ):
        outcome = attempt_at(tmp_path / str(number), made, **given).run()
        assert words in outcome["reason"]


def test_what_only_an_image_knows_is_refused(
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
    entry = component(["--x"])
    assert "inside its image" in attempt_at(tmp_path / "a", entry).run()["reason"]
    fixed = component(
        [], outputs=[{"name": "o"}], command=["true"], fileOutputs={"o": "/output.txt"}
    )
    assert "runs only in its container" in attempt_at(tmp_path / "b", fixed).run()["reason"]


def test_packages_are_installed_for_the_step_alone(
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
    script = 'echo "$PIP_TARGET" > "$0"; mkdir -p "$PIP_TARGET"; echo "v=7" > "$PIP_TARGET/mine.py"'
    made = shell(
        component,
        script + '; python3 -c "import mine; print(mine.v)" > "$1"; echo "$ASKED" > "$2"',
        [{"outputPath": name} for name in ("target", "seen", "asked")],
        outputs=[{"name": name, "type": "String"} for name in ("target", "seen", "asked")],
    )
    values = attempt_at(tmp_path, made).run()["values"]
    assert values["seen"] == "7\n"
    assert values["asked"] == "yes\n"
    assert str(tmp_path) in values["target"]
    assert not Path(values["target"].strip()).exists()


def test_it_can_be_stopped(component: Make, tmp_path: Path, attempt_at: Any) -> None:
    made = shell(component, 'echo started; sleep 600; echo "$0"', [""])
    attempt = attempt_at(tmp_path, made)
    attempt.approvals.give(made)
    process = attempt.start()
    log = attempt.folder / "log.txt"
    until(lambda: log.exists() and "started" in attempt.log, "it started")
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE)
    assert attempt.outcome["state"] == "cancelled"


def test_real_components_run(corpus: Path, tmp_path: Path, attempt_at: Any) -> None:
    def attempt(name: str, **given: Any) -> dict[str, Any]:
        component = read((corpus / name).read_bytes(), name).components[0]
        outcome = attempt_at(tmp_path / name, component, **given).run()
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


def test_a_compiled_container_component_runs(tmp_path: Path, attempt_at: Any) -> None:
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
    outcome = attempt_at(tmp_path, component, word="hey").run()
    assert outcome["values"]["loud"] == "hey!\n"
    assert Path(outcome["values"]["copy"]["file"]).read_text() == "hey!\n"


def test_a_compiled_function_reports_by_its_executor_output(
    tmp_path: Path, attempt_at: Any
) -> None:
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
    outcome = attempt_at(tmp_path, component, a="2", b=3).run()
    assert outcome["state"] == "succeeded", outcome
    assert outcome["values"] == {"Output": 5}
    assert outcome["metrics"] == {"score": 0.5}


def test_files_are_those_that_the_run_sees(tmp_path: Path) -> None:
    """The project as it was submitted, and over it what earlier steps made."""
    made, pinned = tmp_path / "made", tmp_path / "pinned"
    for folder, name, text in (
        (pinned, "sub/data/a", "old"),
        (pinned, "sub/data/b", "kept"),
        (pinned, "sub/data/c", "deleted"),
        (pinned, "sub/one", "old"),
        (pinned, "sub/gone", "deleted"),
        (made, "sub/data/a", "new"),
        (made, "sub/two", "new"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    layers = [
        {"folder": str(made), "deleted": ["sub/data/c", "sub/gone"]},
        {"folder": str(pinned)},
    ]
    names = ("data", "one", "two", "../../out", str(tmp_path / "elsewhere"))
    given = {
        "root": "/home/project/sub",
        "view": {"root": "/home/project", "layers": layers},
        "arguments": {name: {"file": name} for name in names} | {"value": 3},
    }
    found = in_view(given, tmp_path / "merged")
    assert found["one"] == {"file": str(pinned / "sub/one")}
    assert found["two"] == {"file": str(made / "sub/two")}
    for name in ("../../out", str(tmp_path / "elsewhere")):
        assert found[name] == {"file": name}
    assert found["value"] == 3
    data = Path(found["data"]["file"])
    assert {file.name: file.read_text() for file in data.iterdir()} == {"a": "new", "b": "kept"}
    assert (pinned / "sub/data/c").exists()
    given["arguments"] = {"text": {"file": "gone"}}
    with pytest.raises(ConvectError, match="earlier step deleted the file gone for the input"):
        in_view(given, tmp_path / "merged")


def write_wheel(folder: Path) -> None:
    facts = "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n"
    kind = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / "tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "value = 'from tiny'")
        wheel.writestr("tiny-1.dist-info/METADATA", facts)
        wheel.writestr("tiny-1.dist-info/WHEEL", kind)
        wheel.writestr("tiny-1.dist-info/RECORD", "")


@pytest.mark.parametrize("pip", ["pip", "python3 -m pip"])
def test_packages_are_installed_as_components_try_to(
    component: Make, tmp_path: Path, attempt_at: Any, pip: str
) -> None:
    """Once without `--user`, then with it; neither touches our own environment."""
    write_wheel(tmp_path)
    script = (
        f"{pip} install -q --no-index missing || {pip} install -q --no-index -f '{tmp_path}' tiny "
        '--user; python3 -c "import tiny; print(tiny.value)" --user > "$0"'
    )
    made = shell(component, script, [{"outputPath": "said"}], outputs=[{"name": "said"}])
    attempt = attempt_at(tmp_path, made)
    outcome = attempt.run()
    assert outcome["state"] == "succeeded", attempt.log
    assert "No matching distribution found for missing" in attempt.log
    assert Path(attempt.folder, "files/outputs/said/data").read_text() == "from tiny\n"
    assert importlib.util.find_spec("tiny") is None


def test_the_sitecustomize_of_the_machine_still_counts(
    component: Make, tmp_path: Path, attempt_at: Any
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.own = 'ours'")
    script = 'python3 -c "print(own)" > "$0"'
    made = shell(component, script, [{"outputPath": "said"}], outputs=[{"name": "said"}])
    attempt = attempt_at(tmp_path, made)
    paths = os.pathsep.join((str(tmp_path / "site"), *filter(None, sys.path)))
    assert attempt.run(PYTHONPATH=paths)["state"] == "succeeded", attempt.log
    assert Path(attempt.folder, "files/outputs/said/data").read_text() == "ours\n"
