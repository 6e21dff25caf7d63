"""Whatever comes in, only sentences come out."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jupyterlab_convect.catalog.entries import catalog_from_json
from jupyterlab_convect.catalog.expand import expand
from jupyterlab_convect.catalog.fetch import check_url
from jupyterlab_convect.catalog.model import (
    Component,
    component_from_json,
    executable_digests,
    preview,
)
from jupyterlab_convect.catalog.read import name_from, read
from jupyterlab_convect.catalog.render import Paths, Value, render
from jupyterlab_convect.catalog.sources import addresses_in
from jupyterlab_convect.errors import ConvectError
from jupyterlab_convect.pipeline.plan import Plan, Step, to_json

pytestmark = pytest.mark.slow

WORDS = [
    *("name", "inputs", "outputs", "type", "default", "optional", "implementation", "container"),
    *("image", "command", "args", "env", "fileOutputs", "inputValue", "inputPath", "outputPath"),
    *("concat", "if", "cond", "then", "else", "isPresent", "graph", "tasks", "componentRef"),
    *("spec", "url", "digest", "arguments", "graphInput", "taskOutput", "taskId", "outputName"),
    *("outputValues", "pipelineInfo", "root", "dag", "components", "deploymentSpec", "executors"),
    *("executorLabel", "inputDefinitions", "parameters", "artifacts", "platforms", "x", "metadata"),
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
SCALARS = SCALARS | st.sampled_from(["x", "{{$}}", "{{$.inputs.parameters['x']}}", "${{ run.id }}"])
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=25,
)
CONTEXT = dict.fromkeys(("run.id", "run.name", "step.id", "step.uid", "root", "time"), "x")
QUICK = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def use(component: Component) -> None:
    """Do all that can be done with a component that was read."""
    stored = to_json(component)
    assert component_from_json(stored) == component
    preview(component)
    executable_digests(component)
    arguments = {item.name: Value("text") for item in component.inputs}
    with contextlib.suppress(ConvectError):
        render(component, arguments, Paths(), CONTEXT)
    step = Step(id="n", kind="component", name="n", component="c", parameters={})
    with contextlib.suppress(ConvectError):
        expand(Plan("p", (step,), components={"c": stored}))


def try_to_read(data: bytes) -> None:
    reading = read(data, "fuzz.yaml")
    for error in reading.errors:
        assert error.sentence
        assert "\n" not in error.file
    for component in reading.components:
        use(component)


@QUICK
@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    try_to_read(data)
    addresses_in(data, "https://host/list")


@QUICK
@given(st.text(alphabet=st.sampled_from("abc:-{}[]&*!|>'\"#%@,? \n\t0.<="), max_size=200))
def test_any_yaml_like_text(text: str) -> None:
    try_to_read(text.encode())


@QUICK
@given(JSON)
def test_any_structure(value: Any) -> None:
    try_to_read(yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass"))


@QUICK
@given(JSON)
def test_any_definition_in_a_document(value: Any) -> None:
    with contextlib.suppress(ConvectError):
        use(component_from_json(value))
    with contextlib.suppress(ConvectError):
        catalog_from_json(value if isinstance(value, dict) else {})


@QUICK
@given(st.text(max_size=60))
@example("//[")
def test_any_address(text: str) -> None:
    name_from(text)
    for url in (text, f"https://{text}", f"http://host{text}"):
        with contextlib.suppress(ConvectError):
            check_url(url)


@QUICK
@given(seed=st.integers(0, 2**32), other=JSON)
def test_real_specs_with_a_part_of_them_replaced(corpus: Path, seed: int, other: Any) -> None:
    chance = random.Random(seed)
    path = chance.choice(sorted(corpus.glob("*.yaml")))
    document = next(yaml.safe_load_all(path.read_text()))
    place, key = chance.choice(list(places(document)))
    if chance.random() < 0.3:
        del place[key]
    else:
        place[key] = other
    try_to_read(yaml.safe_dump(document).encode("utf-8", "surrogatepass"))


@QUICK
@given(seed=st.integers(0, 2**32), other=JSON)
def test_real_definitions_with_a_part_of_them_replaced(corpus: Path, seed: int, other: Any) -> None:
    chance = random.Random(seed)
    paths = [*corpus.glob("v1*.yaml"), *corpus.glob("ir*.yaml")]
    path = chance.choice(sorted(paths))
    definition = to_json(read(path.read_bytes(), path.name).components[0])
    place, key = chance.choice(list(places(definition)))
    place[key] = other
    with contextlib.suppress(ConvectError):
        use(component_from_json(definition))


@QUICK
@given(seed=st.integers(0, 2**32))
def test_real_specs_with_damaged_bytes(corpus: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(chance.choice(sorted(corpus.glob("*.yaml"))).read_bytes())
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(data))
        data[at : at + chance.randint(0, 20)] = chance.randbytes(chance.randint(0, 5))
    try_to_read(bytes(data))


def places(value: Any) -> Any:
    """Every place in a structure, as its owner and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


@pytest.mark.parametrize("depth", [90, 200, 5000])
def test_deep_placeholders(depth: int) -> None:
    text = "{concat: [" * depth + "x" + "]}" * depth
    try_to_read(f"implementation: {{container: {{image: a, args: [{text}]}}}}".encode())
    compiled = '{"Concat": [' * depth + '"x"' + "]}" * depth
    spec = {
        "pipelineInfo": {"name": "p"},
        "components": {"c": {"executorLabel": "e"}},
        "deploymentSpec": {"executors": {"e": {"container": {"image": "a", "args": [compiled]}}}},
        "root": {"dag": {"tasks": {"t": {"componentRef": {"name": "c"}}}}},
    }
    try_to_read(yaml.safe_dump(spec).encode())
