"""Components as pods: their own image and command, data as on any runtime, in each way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from support import start_document
from traitlets.config import Config
from waiting import eventually

from jupyterlab_convect.catalog.read import read
from jupyterlab_convect.pipeline.plan import to_json


@pytest.fixture(params=["shared", "bundle", "s3"])
async def lab(make_lab: Callable[..., Any], bed: Any, request: pytest.FixtureRequest) -> Any:
    if bed.tools is None:
        pytest.skip("No such image.")
    if request.param != "s3":
        return make_lab(shared=request.param == "shared")
    store = request.getfixturevalue("s3_store")
    return make_lab(shared=False, config=Config({"ObjectStore": store}))


def component(bed: Any, script: str, **spec: Any) -> Any:
    """A component of the image without Python; `args` follow its script as $0, $1, …"""
    container = {"image": bed.tools, "command": ["sh", "-ec", script], "args": spec.pop("args", [])}
    container |= spec.pop("container", {})
    spec = {"name": "Part", **spec, "implementation": {"container": container}}
    (found,) = read(yaml.safe_dump(spec).encode(), "part.yaml").components
    return to_json(found)


def node(definition: Any, **settings: Any) -> dict[str, Any]:
    return {"kind": "component", "component": definition["digest"], **settings}


async def start(lab: Any, nodes: Any, *definitions: Any) -> Any:
    components = {item["digest"]: item for item in definitions}
    return await start_document(
        lab, {"convect": 1, "name": "mixed", "nodes": nodes, "components": components}
    )


async def finish(lab: Any, nodes: Any, *definitions: Any) -> tuple[Any, Any]:
    run = await start(lab, nodes, *definitions)
    return run, await lab.engine.wait(run.id, 90)


async def succeed(lab: Any, nodes: Any, *definitions: Any) -> tuple[Any, Any]:
    run, state = await finish(lab, nodes, *definitions)
    assert state.state == "succeeded", {s.id: (s.state, s.reason) for s in state.steps.values()}
    return run, state


def counter(bed: Any) -> Any:
    return component(
        bed,
        'echo $(($(wc -l < "$0") - $1)) > "$2"; mkdir "$3"; cp "$0" "$3/copy"; id -u',
        inputs=[{"name": "text"}, {"name": "skip", "type": "Integer", "default": "0"}],
        outputs=[{"name": "lines", "type": "Integer"}, {"name": "copy"}],
        args=[
            {"inputPath": "text"},
            {"inputValue": "skip"},
            {"outputPath": "lines"},
            {"outputPath": "copy"},
        ],
    )


async def test_notebooks_and_components_pass_data_both_ways(lab: Any, bed: Any) -> None:
    lab.notebook(
        "make.ipynb",
        "import pathlib; pathlib.Path('made.txt').write_text('one\\ntwo\\nthree\\n')",
        ("outputs", "text = 'a\\nb\\n'\nskip = 1"),
    )
    lab.notebook(
        "use.ipynb",
        ("parameters", "lines = 0\nfolder = ''\nmore = 0"),
        "import pathlib\nseen = pathlib.Path(folder, 'copy').read_text()",
        ("outputs", "told = [lines, seen, more]"),
    )
    count = counter(bed)
    nodes = {
        "make": {"kind": "notebook", "path": "make.ipynb", "outputs": ["made.txt"]},
        "of-value": node(
            count,
            inputs={
                "text": "${{ nodes.make.outputs.text }}",
                "skip": "${{ nodes.make.outputs.skip }}",
            },
        ),
        "of-file": node(count, after=["make"], inputs={"text": {"file": "made.txt"}}),
        "use": {
            "kind": "notebook",
            "path": "use.ipynb",
            "parameters": {
                "lines": "${{ nodes.of-file.outputs.lines }}",
                "folder": "${{ nodes.of-file.outputs.copy }}",
                "more": "${{ nodes.of-value.outputs.lines }}",
            },
        },
    }
    run, state = await succeed(lab, nodes, count)
    assert state.steps["use"].outputs["told"] == [3, "one\ntwo\nthree\n", 1]
    folder = lab.result(run, "of-file")
    assert (folder / "log.txt").read_text() == "1000\n"
    assert (folder / "files" / "outputs" / "copy" / "data" / "copy").read_text().count("\n") == 3
    outcome = json.loads((folder / "outputs.json").read_text())
    assert {fact["path"] for fact in outcome["files"]} == {
        "outputs/lines/data",
        "outputs/copy/data/copy",
    }
    kinds = [json.loads(line)["type"] for line in (folder / "events.ndjson").open()]
    assert kinds == ["step.start", "output", "output", "step.end"]


async def test_one_component_hands_its_folder_to_the_next(lab: Any, bed: Any) -> None:
    count = counter(bed)
    show = component(
        bed, 'cat "$0/copy"', inputs=[{"name": "folder"}], args=[{"inputPath": "folder"}]
    )
    nodes = {
        "first": node(count, inputs={"text": "1\n2\n"}),
        "second": node(show, inputs={"folder": "${{ nodes.first.outputs.copy }}"}),
    }
    run, _ = await succeed(lab, nodes, count, show)
    assert (lab.result(run, "second") / "log.txt").read_text() == "1\n2\n"


async def test_words_reach_the_command_as_they_are(lab: Any, bed: Any) -> None:
    """Neither a shell nor the cluster puts anything in their place."""
    text = "$(HOME) $HOME $$ `id` 'q' \"d\" 数 \\n"
    part = component(
        bed,
        'echo "$0"; echo "$NOTE"',
        inputs=[{"name": "text"}],
        args=[{"inputValue": "text"}],
    )
    run, _ = await succeed(
        lab, {"say": node(part, inputs={"text": text}, env={"NOTE": text})}, part
    )
    assert (lab.result(run, "say") / "log.txt").read_text() == f"{text}\n{text}\n"


async def test_an_image_that_starts_by_itself(lab: Any, bed: Any) -> None:
    part = component(bed, "", container={"command": [], "args": ["and", "more"]})
    run, _ = await succeed(lab, {"say": node(part)}, part)
    assert (lab.result(run, "say") / "log.txt").read_text() == "by itself and more\n"


async def test_an_output_at_a_path_of_the_image(lab: Any, bed: Any) -> None:
    part = component(
        bed,
        "echo 42 > /tmp/answer.txt",
        outputs=[{"name": "answer", "type": "Integer"}],
        container={"fileOutputs": {"answer": "/tmp/answer.txt"}},
    )
    _, state = await succeed(lab, {"ask": node(part)}, part)
    assert state.steps["ask"].outputs == {"answer": 42}


async def test_failure_metrics_and_what_is_missing(lab: Any, bed: Any) -> None:
    fails = component(bed, "echo loss=0.5; echo no luck; exit 3")
    forgets = component(bed, "true", outputs=[{"name": "o"}], args=[{"outputPath": "o"}])
    lacks = component(bed, "", container={"command": ["no-such-program"]})
    nodes = {
        "fails": node(fails, metrics={"loss": "loss=([0-9.]+)"}),
        "forgets": node(forgets),
        "lacks": node(lacks),
    }
    run, state = await finish(lab, nodes, fails, forgets, lacks)
    reasons = {step.id: step.reason for step in state.steps.values()}
    assert {step.state for step in state.steps.values()} == {"failed"}
    assert reasons["fails"] == "fails exited with code 3: no luck"
    assert reasons["forgets"] == "“Part” did not write its output “o”."
    assert reasons["lacks"] == f"The image {bed.tools} has no no-such-program."
    outcome = json.loads(
        (lab.store.attempt_folder(run.id, "fails", 1) / "outputs.json").read_text()
    )
    assert outcome["metrics"] == {"loss": 0.5}


async def test_stop_timeout_and_the_next_server(lab: Any, bed: Any) -> None:
    slow = component(bed, "echo begun; exec sleep 300")
    nodes = {"late": node(slow, timeout="2s"), "stopped": node(slow)}
    run = await start(lab, nodes, slow)
    log = lab.store.attempt_folder(run.id, "stopped", 1) / "log.txt"
    await eventually(lambda: log.exists() and log.read_text() == "begun\n", "it began")
    await lab.close()
    lab.open()
    await lab.engine.resume()
    await lab.engine.stop(run.id, "stopped")
    state = await lab.engine.wait(run.id, 90)
    assert state.steps["late"].reason == "Timed out after 2 s."
    assert {name: state.steps[name].state for name in nodes} == {
        "late": "failed",
        "stopped": "cancelled",
    }
    assert log.read_text() == "begun\n"


async def test_secrets_of_a_component_are_hidden(lab: Any, bed: Any) -> None:
    name = f"s3-{lab.root.parent.name}"
    bed.create("Secret", name, stringData={"key": "hunter2hunter2"})
    part = component(
        bed,
        'echo "it is $TOKEN."; echo "$TOKEN" > "$0"',
        outputs=[{"name": "told", "type": "String"}],
        args=[{"outputPath": "told"}],
    )
    secrets = [{"env": "TOKEN", "name": name, "key": "key"}]
    run, state = await succeed(lab, {"say": node(part, secrets=secrets)}, part)
    folder = lab.result(run, "say")
    assert (folder / "log.txt").read_text() == "it is ***.\n"
    assert state.steps["say"].outputs == {"told": "***\n"}
    told = [folder / name for name in ("log.txt", "events.ndjson", "outputs.json", "step.json")]
    assert not any(b"hunter2" in path.read_bytes() for path in told)
