"""Whole Elyra files, real ones and our own: imported, written, read again, and damaged."""

import copy
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.document import dumps, parse
from jupyterlab_convect.pipeline.elyra import import_elyra
from jupyterlab_convect.pipeline.validate import validate

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "elyra"
OWN = sorted((Path(__file__).parents[1] / "golden" / "elyra").glob("*.pipeline"))
REAL = sorted(CORPUS.glob("v*.pipeline"))
BAD = sorted(CORPUS.glob("bad-*.pipeline"))

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
patient = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.large_base_example]
)
each_file = pytest.mark.parametrize("file", [*OWN, *REAL], ids=lambda file: file.stem)
each_bad_file = pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)


def run_import(*arguments):
    convect = "import sys; from jupyterlab_convect.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", convect, "pipeline", "import", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def test_the_corpus_is_read_where_it_is():
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not here")
    assert len(REAL) >= 15
    assert len(BAD) >= 3


@each_file
def test_a_file_imports_and_validates(file):
    document, problems = import_elyra(file.read_bytes(), path=f"a/b/{file.name}")
    found = validate(document, path=f"a/b/{file.name}")
    # Elyra's files name their components without holding them.
    assert {p.code for p in found if p.severity == "error"} <= {"missing-component"}
    assert "elyra-unreadable" not in [problem.code for problem in problems]


@each_file
def test_every_node_and_comment_arrives(file):
    flows = json.loads(file.read_bytes())["pipelines"]
    boxes = [box["type"] for flow in flows for box in flow["nodes"] if box["type"] != "binding"]
    ui_data = [flow.get("app_data", {}).get("ui_data", {}) for flow in flows]
    document, _ = import_elyra(file.read_bytes())
    groups = [node for node in document["nodes"].values() if node["kind"] == "group"]
    assert len(document["nodes"]) == len(boxes)
    assert len(groups) == boxes.count("super_node")
    notes = sum(len(item.get("comments") or []) for item in ui_data)
    assert len(document.get("comments", {})) == notes
    assert len(document.get("layout", {})) == len(boxes) + notes


@each_file
def test_what_is_imported_is_written_and_read_without_a_change(file):
    text = dumps(import_elyra(file.read_bytes())[0])
    assert dumps(parse(text)) == text
    assert dumps(import_elyra(file.read_bytes())[0]) == text


MACHINERY = {
    *("doc_type", "json_schema", "primary_pipeline", "id", "type", "class_name", "cardinality"),
    *("node_id_ref", "port_id_ref", "node_ref", "pipeline_id_ref", "subflow_node_ref", "widget"),
    *("activeControl", "units", "option", "subflow_ref"),
}
"""What Elyra's canvas and forms need and no pipeline means."""


def words(value, holder=None):
    """Every text that a person wrote or chose in Elyra."""
    if isinstance(value, list):
        for item in value:
            yield from words(item, holder)
    elif isinstance(value, dict):
        if "option" in value:
            return
        for key, item in value.items():
            is_ports = key in ("inputs", "outputs") and holder == "nodes"
            is_drawing = key in ("image", "description") and holder == "ui_data"
            is_generic = key == "op" and item.startswith("execute-")
            if key not in MACHINERY and not (is_ports or is_drawing or is_generic):
                yield from words(item, key)
    elif isinstance(value, str) and value not in ("", "None", "True"):
        yield value


@each_file
def test_no_word_of_a_file_is_lost(file):
    flows = json.loads(file.read_bytes())["pipelines"]
    for flow in flows:
        flow["nodes"] = [node for node in flow["nodes"] if node["type"] != "binding"]
    written = dumps(import_elyra(file.read_bytes())[0])
    parts = {part for word in words(flows) for part in re.split("[=:]", word)}
    lost = {part for part in parts if json.dumps(part, ensure_ascii=False)[1:-1] not in written}
    assert lost == set()


@needs_corpus
@each_bad_file
def test_a_bad_file_is_refused_in_one_sentence(file):
    with pytest.raises(ConvectError) as caught:
        import_elyra(file.read_bytes())
    assert caught.value.sentence.endswith(".")
    assert ". " not in caught.value.sentence


# The command line


@needs_corpus
@each_bad_file
def test_the_command_line_refuses_a_bad_file_and_leaves_it_alone(file, tmp_path):
    copied = shutil.copy(file, tmp_path)
    done = run_import(copied, "--output", str(tmp_path / "new.pipeline"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    assert Path(copied).read_bytes() == file.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_the_command_line_imports_and_leaves_the_source_alone(tmp_path):
    source = next(file for file in OWN if file.stem == "v8-everything")
    copied = Path(shutil.copy(source, tmp_path))
    done = run_import(str(copied), "--output", str(tmp_path / "new.pipeline"))
    assert done.returncode == 0
    assert copied.read_bytes() == source.read_bytes()
    expected = dumps(import_elyra(source.read_bytes())[0])
    assert (tmp_path / "new.pipeline").read_text(encoding="utf-8") == expected


# Damage: whatever happens to a file, an import gives a document or one sentence

junk = st.sampled_from(
    [None, True, 0, -1, 1.5, 1e300, "", "text", "=", ":", "${{", [], [[]], {}, {"a": {}}, [None]]
)


def places(value, path=()):
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from places(item, (*path, key))


def holder_of(value, path):
    for step in path[:-1]:
        value = value[step]
    return value


def damage(draw, value):
    """Replace, remove or copy something, anywhere, a few times."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        everywhere = list(places(value))
        if not everywhere:
            break
        path = draw(st.sampled_from(everywhere))
        holder = holder_of(value, path)
        match draw(st.sampled_from(["replace", "remove", "copy"])):
            case "replace":
                holder[path[-1]] = copy.deepcopy(draw(junk))
            case "remove":
                del holder[path[-1]]
            case "copy":
                other = draw(st.sampled_from(everywhere))
                holder[path[-1]] = copy.deepcopy(holder_of(value, other)[other[-1]])
    return value


def import_or_refuse(text):
    try:
        document, problems = import_elyra(text, path="some/where.pipeline")
    except ConvectError as error:
        return error.sentence
    written = dumps(document)
    assert dumps(parse(written)) == written
    shapes = [p for p in validate(document) if p.code in ("wrong-type", "unknown-property")]
    assert shapes == []
    return all(problem.message.endswith(".") for problem in problems)


@patient
@given(st.data())
def test_damaged_content_makes_no_traceback(data):
    file = data.draw(st.sampled_from([*OWN, *REAL]))
    assert import_or_refuse(json.dumps(damage(data.draw, json.loads(file.read_bytes()))))


@patient
@given(st.data())
def test_damaged_bytes_make_no_traceback(data):
    content = data.draw(st.sampled_from([*OWN, *REAL, *BAD])).read_bytes()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    assert import_or_refuse(content[:start] + data.draw(st.binary(max_size=4)) + content[end:])
