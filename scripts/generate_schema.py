"""Write everything that follows from `pipeline/schema.json`: types, forms and reference page.

python scripts/generate_schema.py           writes what is stale
python scripts/generate_schema.py --check   changes nothing, fails when something is stale
"""

from __future__ import annotations

import argparse
import json
import keyword
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from jupyterlab_convect.pipeline.schema import VERSION, Schema, schema, target  # noqa: E402

NOTICE = "Generated from pipeline/schema.json by scripts/generate_schema.py."
GROUPS: Schema = schema()["x-groups"]
SETTINGS: Schema = schema()["$defs"]["settings"]["properties"]
KINDS = [target(option) for option in schema()["$defs"]["node"]["oneOf"]]
CLASSES = {
    "spot": "GroupPlace",
    "range": "RequestAndLimit",
    "loop": "ForEach",
    **{kind: f"{kind.capitalize()}Node" for kind in KINDS},
}
NODES = [CLASSES[kind] for kind in KINDS]
ANY_NODE: Schema = {
    key: value
    for key, value in schema()["$defs"][KINDS[0]]["properties"].items()
    if all(schema()["$defs"][kind]["properties"].get(key) == value for kind in KINDS)
    and key not in SETTINGS
}
PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
TYPESCRIPT = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}
WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "object",
}
SPREAD = "..."
GUIDE = """# The pipeline document

A pipeline is a JSON file that ends in `.pipeline`. It can be written by hand; the editor and the
command line write it with stable key order, two spaces and a final newline, so that a diff shows
what changed and nothing else. Positions on the canvas are apart from meaning, in `layout`.

```json
{
  "convect": 1,
  "name": "churn",
  "parameters": { "lr": { "type": "number", "default": 0.1 } },
  "defaults": { "image": "registry/ds:2026.1", "resources": { "cpu": "500m", "memory": "2Gi" } },
  "nodes": {
    "prepare": { "kind": "notebook", "path": "prepare.ipynb", "outputs": ["data/*.parquet"] },
    "train": {
      "kind": "notebook",
      "path": "train.ipynb",
      "after": ["prepare"],
      "parameters": { "lr": "${{ parameters.lr }}", "rows": "${{ nodes.prepare.outputs.rows }}" },
      "resources": { "gpu": { "count": 1, "type": "NVIDIA-A100" } },
      "retries": 2,
      "timeout": "2h"
    }
  },
  "layout": { "prepare": [0, 0], "train": [240, 0] }
}
```

## Expressions

| expression | stands for |
|---|---|
| `${{ parameters.NAME }}` | a parameter of the pipeline, with the value of this run |
| `${{ nodes.ID.outputs.NAME }}` | a value that another node gave; the node then comes after it |
| `${{ each.NAME }}` | the item of a loop around the node |
| `${{ nodes.ID.state }}` | how another node ended, for a node with `run_if` |
| `${{ run.id }}`, `${{ run.name }}` | the run |

They can be used in `parameters`, `inputs`, `env` and `command`, and in `when` and `for_each`. A
value that is one expression keeps its type; within a text the value is written out, as JSON unless
it is a text itself.

An expression can compare as well: `== != < <= > >= && || !`, `in`, parentheses, literals (numbers,
texts in quotes, `true`, `false`, `null`, lists of them), and `first(a, b, …)` for the value of
whichever branch ran. This is a small part of [CEL](https://cel.dev), and nothing else is evaluated.
A name with other characters than letters, digits, `_` and `-` is written as
`nodes.ID.outputs["a name"]`.

[Control flow](control-flow.md) has an example of each.

## Paths

`path`, `working_folder` and the files of `inputs` are relative to the folder of the pipeline.
`dependencies` are relative to the folder of the node's own file, `outputs` to the folder in which
it runs. In the editor a declared output is a port: a wire from it gives the next node the path, or
a component the file, and the order. No path leaves the root folder: that of the server, or the one
that the command line names.

## How defaults and nodes are merged

Objects merge key by key, and the node wins. Lists are joined; a secret replaces one for the same
variable, a volume one at the same path. Everything else is replaced. The settings of a run come
between the two. A component does not use image, kernel or parameters of the defaults.

## Problems

Each problem has a severity, a code, the node, the path of the property, a sentence and often a
hint. Errors keep a pipeline from running, warnings do not.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail when stale")
    check = parser.parse_args().check
    stale = {path: text for path, text in generated().items() if read(path) != text}
    for path, text in stale.items():
        name = path.relative_to(ROOT)
        print(f"{name} is stale: run scripts/generate_schema.py" if check else f"{name} written")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


def read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def generated() -> dict[Path, str]:
    return {
        ROOT / "jupyterlab_convect/pipeline/types.py": python_types(),
        ROOT / "src/pipeline/schema.ts": typescript(),
        ROOT / "src/settings/formschema.ts": typescript_for_forms(),
        ROOT / "docs/pipeline.md": reference_page(),
    }


def objects() -> Iterator[tuple[str, Schema]]:
    """Each object of the format with its class name, the document last."""
    for name, item in schema()["$defs"].items():
        if "properties" in item:
            yield class_name(name), item
    yield "Document", schema()


def alternatives() -> Iterator[tuple[str, Schema]]:
    for name, item in schema()["$defs"].items():
        if "oneOf" in item:
            yield class_name(name), item


def class_name(name: str) -> str:
    return CLASSES.get(name, name.capitalize())


def python_types() -> str:
    lines = [
        f'"""The document as types. {NOTICE}"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict",
        "",
        "if TYPE_CHECKING:",
        "    from typing_extensions import Required",
        "",
    ]
    for name, item in objects():
        if any(map(keyword.iskeyword, item["properties"])):
            lines += ["", *python_type_by_call(name, item), ""]
            continue
        bases = ["Settings"] if has_settings(item) else []
        own = own_properties(item)
        if name in NODES:
            bases, own = [*bases, "AnyNode"], {key: own[key] for key in own if key not in ANY_NODE}
        if name == NODES[0]:
            words = "What every kind of node can have."
            lines += python_class("AnyNode", [], {"description": words}, ANY_NODE)
        lines += python_class(name, bases, item, own)
    for name, item in alternatives():
        line = f'{name}: TypeAlias = "{python_type(item)}"'
        if len(line) > 100:
            line = f'{name}: TypeAlias = (\n    "{python_type(item)}"\n)'
        lines += ["", line]
    return "\n".join(lines) + "\n"


def python_class(name: str, bases: list[str], item: Schema, properties: Schema) -> list[str]:
    lines = ["", f"class {name}({', '.join(bases or ['TypedDict'])}, total=False):"]
    if "description" in item:
        lines += [f'    """{item["description"]}"""', ""]
    for key, value in properties.items():
        kind = python_type(value)
        lines.append(f"    {key}: {f'Required[{kind}]' if is_required(key, item) else kind}")
    return [*lines, ""]


def python_type_by_call(name: str, item: Schema) -> list[str]:
    """A class cannot have a field whose name is a word of the language."""
    lines = [f"{name} = TypedDict(", f'    "{name}",', "    {"]
    for key, value in item["properties"].items():
        kind = python_type(value)
        kind = f"Required[{kind}]" if is_required(key, item) else kind
        lines.append(f'        "{key}": "{kind}",')
    return [*lines, "    },", "    total=False,", ")"]


def has_settings(item: Schema) -> bool:
    """Whether it is an object that has all settings beside properties of its own."""
    return bool(item["properties"].keys() > SETTINGS.keys())


def own_properties(item: Schema) -> Schema:
    """The properties that are not settings, unless it is the settings themselves."""
    if not has_settings(item):
        return cast(Schema, item["properties"])
    return {key: value for key, value in item["properties"].items() if key not in SETTINGS}


def is_required(key: str, item: Schema) -> bool:
    return key in item.get("required", ())


def python_type(item: Schema) -> str:
    if "$ref" in item:
        return "dict[str, Any]" if target(item) == "free" else class_name(target(item))
    if "const" in item:
        return f"Literal[{json.dumps(item['const'])}]"
    if "enum" in item:
        return f"Literal[{', '.join(map(json.dumps, item['enum']))}]"
    if "oneOf" in item:
        return " | ".join(map(python_type, item["oneOf"]))
    match item.get("type"):
        case "array":
            return f"list[{python_type(item['items'])}]"
        case "object":
            others = item.get("additionalProperties")
            return f"dict[str, {python_type(others) if isinstance(others, dict) else 'Any'}]"
        case kind:
            return PYTHON.get(kind or "", "Any")


def typescript() -> str:
    lines = [
        "/**",
        " * The document as types, and the order of its keys.",
        f" * {NOTICE}",
        " */",
        "",
        "export type Json =",
        "  null | boolean | number | string | Json[] | { [key: string]: Json };",
        "",
    ]
    for name, item in objects():
        if "description" in item:
            lines += [f"/** {item['description']} */"]
        base = " extends ISettings" if has_settings(item) else ""
        lines += [f"export interface I{name}{base} {{"]
        for key, value in own_properties(item).items():
            if description(value):
                lines.append(f"  /** {description(value)} */")
            lines.append(f"  {key}{'' if is_required(key, item) else '?'}: {ts_type(value)};")
        lines += ["}", ""]
    for name, item in alternatives():
        union = ts_type(item)
        head = f"export type {name} ="
        if len(union) > 76:
            union = "".join(f"\n  | {option}" for option in union.split(" | "))[3:]
        lines += [f"{head} {union};" if len(head + union) < 79 else f"{head}\n  {union};", ""]
    lines += [
        f"export const VERSION = {VERSION};",
        "",
        f"const SETTINGS = {ts_value(shapes(SETTINGS), '')};",
        "",
        "/** What the order of keys in a file follows: the schema without its words. */",
        f"export const SHAPE = {ts_value(shape_of(schema_for_forms()), '')};",
    ]
    return "\n".join(lines) + "\n"


def typescript_for_forms() -> str:
    """Apart from the types: forms are loaded when they are first shown."""
    lines = [
        "/**",
        " * The schema of the document, for forms.",
        f" * {NOTICE}",
        " */",
        "",
        "/* eslint-disable jupyter/no-untranslated-string -- forms translate these words. */",
        "",
        "/** Titles of the parts of a form, in order. */",
        f"export const GROUPS = {ts_value(GROUPS, '')} as const;",
        "",
        f"const SETTINGS = {ts_value(SETTINGS, '')} as const;",
        "",
        "/** What every kind of node can have. */",
        f"const NODE = {ts_value(ANY_NODE, '')} as const;",
        "",
        "/** JSON Schema, with mixins merged in. */",
        f"export const SCHEMA = {ts_value(schema_for_forms(), '')} as const;",
    ]
    return "\n".join(lines) + "\n"


def shapes(items: Schema) -> Schema:
    return {
        key: item if key == SPREAD else shape_of(ANY_NODE[key] if isinstance(item, Name) else item)
        for key, item in items.items()
    }


def shape_of(item: Schema) -> Schema:
    """What of a schema tells the order of keys: which objects lie where, and their keys."""
    shape: Schema = {key: item[key] for key in ("$ref", "const") if key in item}
    if item.get("type") == "object":
        shape["type"] = "object"
    options = [shape for shape in map(shape_of, item.get("oneOf", ())) if shape]
    if options:
        shape["oneOf"] = options
    for key in ("items", "additionalProperties"):
        if isinstance(item.get(key), dict) and shape_of(item[key]):
            shape[key] = shape_of(item[key])
    for key in ("properties", "$defs"):
        if key in item:
            shape[key] = shapes(item[key])
    return shape


def schema_for_forms() -> Schema:
    """The schema, with names for what most nodes have."""
    definitions = dict(schema()["$defs"])
    for name, item in definitions.items():
        if "properties" not in item:
            continue
        own = {} if name == "settings" else dict(own_properties(item))
        if name in KINDS:
            own.update({key: Name(f"NODE.{key}") for key in ANY_NODE})
        if name == "settings" or has_settings(item):
            own[SPREAD] = Name("SETTINGS")
        definitions[name] = {**item, "properties": own}
    shown = {key: item for key, item in schema().items() if key != "x-groups"}
    return {**shown, "$defs": definitions}


def ts_type(item: Schema) -> str:
    if "$ref" in item:
        name = target(item)
        if name == "free":
            return "{ [key: string]: Json }"
        return class_name(name) if "oneOf" in schema()["$defs"][name] else f"I{class_name(name)}"
    if "const" in item:
        return ts_value(item["const"], "")
    if "enum" in item:
        return " | ".join(ts_value(value, "") for value in item["enum"])
    if "oneOf" in item:
        return " | ".join(map(ts_type, item["oneOf"]))
    match item.get("type"):
        case "array":
            inner = ts_type(item["items"])
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        case "object":
            others = item.get("additionalProperties")
            return f"{{ [key: string]: {ts_type(others) if isinstance(others, dict) else 'Json'} }}"
        case kind:
            return TYPESCRIPT.get(kind or "", "Json")


class Name(str):
    """What is written as it is in TypeScript, not as a text."""


def ts_value(value: Any, indent: str, before: int = 0) -> str:
    """A literal as prettier writes it; `before` is how much of its line is taken."""
    inner = indent + "  "
    if isinstance(value, Name):
        return value
    if isinstance(value, str):
        quote = '"' if value.count("'") > value.count('"') else "'"
        return quote + value.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote
    if isinstance(value, dict):
        items = [ts_property(key, item, inner) for key, item in value.items()]
        line = f"{{ {', '.join(map(str.strip, items))} }}"
        if items and "\n" not in line and max(before, len(indent)) + len(line) < 80:
            return line
        return "{\n" + ",\n".join(items) + f"\n{indent}}}" if items else "{}"
    if isinstance(value, list):
        items = [ts_value(item, inner) for item in value]
        line = f"[{', '.join(items)}]"
        is_table = len(value) > 1 and all(isinstance(i, dict) and len(i) > 1 for i in value)
        if is_table or "\n" in line or before + len(line) > 79:
            return "[\n" + ",\n".join(inner + item for item in items) + f"\n{indent}]"
        return line
    return json.dumps(value)


def ts_property(key: str, value: Any, indent: str) -> str:
    if key == SPREAD:
        return f"{indent}...{value}"
    label = key if key.replace("$", "_").isidentifier() else f"'{key}'"
    text = ts_value(value, indent, len(indent) + len(label) + 2)
    if isinstance(value, str) and len(indent) + len(label) + len(text) + 3 > 80:
        return f"{indent}{label}:\n{indent}  {text}"
    return f"{indent}{label}: {text}"


def reference_page() -> str:
    definitions = schema()["$defs"]
    parts = [GUIDE, "## Reference", ""]
    parts += [f"{NOTICE}", "", "## Pipeline", "", *property_table(schema())]
    for kind in KINDS:
        own = own_properties(definitions[kind])
        parts += ["", f"## {definitions[kind]['title']}", "", definitions[kind]["description"], ""]
        parts += property_table({**definitions[kind], "properties": own})
        if has_settings(definitions[kind]):
            parts += ["", "And all [settings](#settings)."]
    parts += ["", "## Settings", "", definitions["settings"]["description"]]
    for group, title in GROUPS.items():
        properties = {
            key: item
            for key, item in SETTINGS.items()
            if item.get("x-form", {}).get("group") == group
        }
        if properties:
            parts += ["", f"**{title}**", "", *property_table({"properties": properties})]
    for name, item in definitions.items():
        if name not in (*KINDS, "settings") and "properties" in item:
            parts += ["", f"## {heading(name)}", ""]
            parts += [item["description"], ""] if "description" in item else []
            parts += property_table(item)
    for name, item in alternatives():
        if name != "Node":
            parts += ["", f"## {item['title']}", "", item["description"]]
    return "\n".join(parts) + "\n"


def heading(name: str) -> str:
    return cast(str, schema()["$defs"][name]["title"])


def description(item: Schema) -> str:
    """What a property means: its own words, else those of what it refers to."""
    referred = schema()["$defs"][target(item)] if "$ref" in item else {}
    return cast(str, item.get("description") or referred.get("description", ""))


def property_table(item: Schema) -> list[str]:
    rows = ["| property | type | meaning |", "|---|---|---|"]
    for key, value in item["properties"].items():
        meaning = description(value)
        if is_required(key, item):
            meaning += " Required."
        if "default" in value:
            meaning += f" Default: `{json.dumps(value['default'])}`."
        rows.append(f"| `{key}` | {type_in_words(value)} | {meaning.strip()} |")
    return rows


def type_in_words(item: Schema) -> str:
    if "$ref" in item:
        name = target(item)
        if name == "free":
            return "object"
        title = heading(name)
        return f"[{title}](#{title.lower().replace(' ', '-')})"
    if "const" in item:
        return f"`{json.dumps(item['const'])}`"
    if "enum" in item:
        return ", ".join(f"`{value}`" for value in item["enum"])
    if "oneOf" in item:
        return " or ".join(dict.fromkeys(map(type_in_words, item["oneOf"])))
    match item.get("type"):
        case "array":
            return f"list of {type_in_words(item['items'])}"
        case "object":
            others = item.get("additionalProperties")
            if not isinstance(others, dict):
                return "object"
            if target_is_node(others):
                return "nodes by id"
            return f"object of {type_in_words(others)}"
        case kind:
            return WORDS.get(kind or "", "any")


def target_is_node(item: Schema) -> bool:
    return "$ref" in item and target(item) == "node"


if __name__ == "__main__":
    raise SystemExit(main())
