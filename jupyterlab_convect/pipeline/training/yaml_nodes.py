"""YAML as nodes that know where they stand, within limits."""

from __future__ import annotations

from typing import Any

import yaml

MAX_CHARACTERS = 1 << 18
MAX_NODES = 20_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"


class NotYaml(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def documents(text: str) -> list[yaml.Node]:
    """The documents of a file that are not empty. NotYaml says where reading stops."""
    if len(text) > MAX_CHARACTERS:
        raise NotYaml(1, f"A job has at most {MAX_CHARACTERS >> 10} KiB of text.")
    try:
        return [each for each in yaml.compose_all(text, _LOADER) if each is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise NotYaml(line, f"This is not YAML: {error.problem}.") from None
    except RecursionError:
        raise NotYaml(1, "It is nested too deeply.") from None
    except yaml.YAMLError:
        raise NotYaml(1, "This is not YAML: it has characters that text cannot have.") from None


def fields(node: yaml.Node | None) -> dict[str, yaml.Node]:
    """The values of a mapping by key, with what is merged into it."""
    return {str(key.value): value for key, value in entries(node).items()}


def entries(node: yaml.Node | None) -> dict[yaml.Node, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    found: dict[yaml.Node, yaml.Node] = {}
    for key, value in node.value:
        if tag_of(key) == "merge":
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            found = {**{k: v for each in merged for k, v in entries(each).items()}, **found}
        else:
            found[key] = value
    return found


def tag_of(node: yaml.Node) -> str:
    """`str`, `int`, `float`, `bool`, `null` and so on."""
    return str(node.tag).removeprefix(_TAG)


def text_of(node: yaml.Node | None) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None


def value_of(node: yaml.Node | None) -> Any:
    """What it stands for, as JSON. Only of what was checked: aliases are unfolded."""
    if isinstance(node, yaml.MappingNode):
        return {key: value_of(value) for key, value in fields(node).items()}
    if isinstance(node, yaml.SequenceNode):
        return [value_of(item) for item in node.value]
    if node is None or tag_of(node) == "null":
        return None
    loaded = yaml.safe_load(node.value) if tag_of(node) in ("int", "float", "bool") else None
    return node.value if loaded is None else loaded
