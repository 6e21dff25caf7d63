"""Component specs of the first format: one container with placeholders in its command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..pipeline.component_types import value_kind
from ..pipeline.plan import Json
from ..pipeline.problems import did_you_mean
from .model import Component, Container, Input, Output, placeholders
from .text import At

_PLACEHOLDERS = ("inputValue", "inputPath", "inputUri", "outputPath", "outputUri")


def read_container(document: At, container: At, name: str) -> Component:
    """A component whose `implementation` is a container; `name` serves when it has none."""
    component = read_interface(document, name)
    reader = _Commands(
        inputs={item.name for item in component.inputs},
        outputs={item.name for item in component.outputs},
    )
    image = container.need("image", "The container").text("The image")
    command = tuple(reader.arguments(container.get("command"), "The command"))
    args = tuple(reader.arguments(container.get("args"), "“args”"))
    env = {key: reader.argument(item) for key, item in _items(container.get("env"), "“env”")}
    used = set(placeholders([command, args, *env.values()]))
    return replace(
        component,
        inputs=tuple(_with_passing(item, used) for item in component.inputs),
        outputs=tuple(_with_paths(component.outputs, container)),
        container=Container(image=image, command=command, args=args, env=env),
    )


def read_interface(document: At, name: str) -> Component:
    """Name, description, inputs and outputs, which graph components have as well."""
    metadata = document.get("metadata")
    named = document.get("name")
    return Component(
        name=named.text("The name") if named else name,
        format="v1",
        description=_text(document.get("description"), "The description"),
        inputs=tuple(_inputs(document)),
        outputs=tuple(_outputs(document)),
        annotations=_plain(metadata, "annotations"),
        labels=_plain(metadata, "labels"),
    )


def _inputs(document: At) -> Iterator[Input]:
    for item, name in _ends(document, "inputs", "input"):
        optional = item.get("optional")
        default = item.get("default")
        yield Input(
            name=name,
            type=_type(item),
            description=_text(item.get("description"), "The description"),
            default=_default(default, _type(item)) if default else None,
            optional=_truth(optional) if optional else False,
        )


def _default(item: At, kind: Json) -> Json:
    """Text is kept as it was written: `1.10` is not `1.1`."""
    plain = not isinstance(item.value, dict | list)
    return item.scalar("The default") if plain and value_kind(kind) == "text" else item.value


def _outputs(document: At) -> Iterator[Output]:
    for item, name in _ends(document, "outputs", "output"):
        kind = _type(item)
        yield Output(
            name=name,
            type=kind,
            description=_text(item.get("description"), "The description"),
            passed="value" if value_kind(kind) else "file",
        )


def _ends(document: At, key: str, what: str) -> Iterator[tuple[At, str]]:
    listed = document.get(key)
    seen: set[str] = set()
    for item in listed.each(f"“{key}”") if listed else ():
        name = item.need("name", f"An {what}")
        text = name.text(f"The name of an {what}")
        if text in seen:
            raise name.fail(f"Two {what}s are called “{text}”.")
        seen.add(text)
        yield item, text


def _type(item: At) -> Json:
    kind = item.get("type")
    if kind is None:
        return None
    if not isinstance(kind.value, str | dict | list):
        raise kind.fail("A type must be a word, a mapping or a list.")
    return kind.value


def _truth(item: At) -> bool:
    if isinstance(item.value, bool):
        return item.value
    if isinstance(item.value, str) and item.value.lower() in ("true", "false"):
        return item.value.lower() == "true"
    raise item.fail("“optional” must be true or false.")


def _with_passing(item: Input, used: set[tuple[str, str]]) -> Input:
    as_file = ("inputPath", item.name) in used or ("inputUri", item.name) in used
    return replace(item, passed="file" if as_file else "value")


def _with_paths(outputs: tuple[Output, ...], container: At) -> Iterator[Output]:
    paths = dict(_items(container.get("fileOutputs"), "“fileOutputs”"))
    for output in outputs:
        path = paths.pop(output.name, None)
        yield replace(output, path=path.text("The path of an output")) if path else output
    for name, path in paths.items():
        raise path.fail(f"“fileOutputs” names “{name}”, which is not an output.")


class _Commands:
    """Reads the arguments of a command and makes sure that they name what is there."""

    def __init__(self, inputs: set[str], outputs: set[str]) -> None:
        self.inputs = inputs
        self.outputs = outputs

    def arguments(self, listed: At | None, what: str) -> Iterator[Json]:
        if listed is None:
            return
        if isinstance(listed.value, list):
            for item in listed.each(what):
                if item.value is not None:
                    yield self.argument(item)
        else:
            yield self.argument(listed)

    def argument(self, item: At) -> Json:
        if not isinstance(item.value, dict):
            return item.scalar("An argument")
        if len(item.value) != 1:
            raise item.fail("A placeholder must have exactly one key.")
        key = next(iter(item.value))
        body = item.under(key)
        if key in _PLACEHOLDERS:
            return {key: self.name(body, key)}
        if key == "concat":
            return {key: list(self.arguments(body, "“concat”"))}
        if key == "if":
            return {key: self.choice(body)}
        if key == "executorInput":
            return {key: True}
        known = (*_PLACEHOLDERS, "concat", "if", "executorInput")
        raise item.fail(f"“{key}” is not a placeholder.", did_you_mean(key, known))

    def choice(self, body: At) -> Json:
        otherwise = body.get("else")
        return {
            "cond": self.condition(body.need("cond", "“if”")),
            "then": list(self.arguments(body.need("then", "“if”"), "“then”")),
            **({"else": list(self.arguments(otherwise, "“else”"))} if otherwise else {}),
        }

    def condition(self, item: At) -> Json:
        if isinstance(item.value, bool):
            return item.value
        if isinstance(item.value, dict) and set(item.value) == {"isPresent"}:
            return {"isPresent": self.name(item.under("isPresent"), "isPresent")}
        return self.argument(item)

    def name(self, item: At, kind: str) -> str:
        name = item.text(f"The name in “{kind}”")
        known = self.outputs if kind.startswith("output") else self.inputs
        if name not in known:
            what = "output" if kind.startswith("output") else "input"
            words = f"“{kind}” names “{name}”, which is not an {what}."
            raise item.fail(words, did_you_mean(name, known))
        return name


def _items(mapping: At | None, what: str) -> Iterator[tuple[str, At]]:
    return mapping.items(what) if mapping else iter(())


def _text(item: At | None, what: str) -> str:
    return item.scalar(what) if item else ""


def _plain(metadata: At | None, key: str) -> Json:
    found = metadata.mapping("“metadata”").get(key) if metadata else None
    return found.mapping(f"“{key}”").value if found else {}
