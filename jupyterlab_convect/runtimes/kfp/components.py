"""Components of a catalog as Kubeflow has them: typed ends, and a command with placeholders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...catalog.model import Component, Input, Output
from ...catalog.render import CommandWords, fitting
from ...errors import Refused
from ...pipeline.component_types import type_name, value_kind
from ...pipeline.plan import Json

TYPES = {
    "text": "STRING",
    "integer": "NUMBER_INTEGER",
    "number": "NUMBER_DOUBLE",
    "boolean": "BOOLEAN",
    "list": "LIST",
    "object": "STRUCT",
    "json": "STRING",
}
OUTPUT_METADATA = "/tmp/kfp_outputs/output_metadata.json"  # noqa: S108
_CONTEXT = {"run.id": "uuid", "run.name": "name"}
_ARGO = {"{{workflow.uid}}": "run.id", "{{workflow.name}}": "run.name"}


@dataclass(frozen=True)
class Ends:
    """The names that the ends of a component have in the compiled pipeline."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


def definition(item: Input | Output) -> tuple[str, dict[str, Json]]:
    """Whether an end is one of the `parameters` or the `artifacts`, and its type."""
    if item.passed == "value":
        return "parameters", {"parameterType": parameter_type(item)}
    title = type_name(item.type)
    known = title if title.startswith(("system.", "google.")) else "system.Artifact"
    return "artifacts", {"artifactType": {"schemaTitle": known, "schemaVersion": "0.0.1"}}


def parameter_type(item: Input | Output) -> str:
    return TYPES[value_kind(item.type) or "text"]


def constant(component: Component, item: Input, value: Json) -> Json:
    """A value as a parameter of its type. Refused when it is none."""
    try:
        found = fitting(value, item.type, "ir")
    except ValueError as error:
        raise Refused(f"The input “{item.name}” takes {error}.", code="wrong-type") from None
    if parameter_type(item) == "STRING" and not isinstance(found, str):
        return json.dumps(found, ensure_ascii=False)
    return found


def words(
    component: Component, arguments: Sequence[Json], given: set[str], ends: Ends, ask: Ask
) -> list[str]:
    """The words of a command; those of inputs that are not given are left out."""
    return list(_Words(component, given, ends, ask).every(arguments))


Ask = Callable[[str], str]
"""Makes a fact of the run an input of the task, and gives its name."""


class _Words(CommandWords):
    def __init__(self, component: Component, given: set[str], ends: Ends, ask: Ask) -> None:
        super().__init__(component, given)
        self.ends = ends
        self.ask = ask

    def other(self, kind: str, body: Json) -> str:
        if kind == "executorInput":
            return "{{$}}"
        if kind == "executorOutput":
            return OUTPUT_METADATA
        if kind == "context" and body in _CONTEXT:
            return _parameter(self.ask(body))
        raise Refused(
            f"The command of “{self.component.name}” asks for what Kubeflow Pipelines does not "
            "tell a task.",
            code="not-on-kfp",
        )

    def literal(self, text: str) -> str:
        for template, name in _ARGO.items():
            if template in text and self.component.format != "ir":
                text = text.replace(template, _parameter(self.ask(name)))
        return text

    def is_true(self, condition: Json) -> bool:
        raise Refused(
            f"The command of “{self.component.name}” depends on a value that Kubeflow Pipelines "
            "knows only when it runs.",
            code="not-on-kfp",
        )

    def input(self, name: str, kind: str) -> str:
        item, key = self.component.input(name), self.ends.inputs[name]
        if item is not None and item.passed == "value":
            if kind == "inputValue":
                return _parameter(key)
            raise Refused(
                f"“{self.component.name}” reads its input “{name}” from a file, which Kubeflow "
                "Pipelines has only for artifacts.",
                code="not-on-kfp",
            )
        if kind == "inputValue":
            raise Refused(
                f"“{self.component.name}” takes the content of the file “{name}” as a word, which "
                "Kubeflow Pipelines cannot give.",
                code="not-on-kfp",
            )
        return f"{{{{$.inputs.artifacts['{key}'].{'path' if kind == 'inputPath' else 'uri'}}}}}"

    def output(self, name: str, kind: str) -> str:
        item, key = self.component.output(name), self.ends.outputs[name]
        if item is not None and item.passed == "value":
            return f"{{{{$.outputs.parameters['{key}'].output_file}}}}"
        return f"{{{{$.outputs.artifacts['{key}'].{'path' if kind == 'outputPath' else 'uri'}}}}}"


def _parameter(key: str) -> str:
    return f"{{{{$.inputs.parameters['{key}']}}}}"
