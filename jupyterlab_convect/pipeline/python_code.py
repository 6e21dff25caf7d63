"""What Python code says about itself, read from its syntax tree without running it."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .expressions import type_of
from .plan import Json

_TYPES = {
    "str": "string",
    "Path": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    **dict.fromkeys(("list", "List", "tuple", "Tuple", "set", "Set", "Sequence"), "array"),
    **dict.fromkeys(("dict", "Dict", "Mapping"), "object"),
}
_MAGIC = re.compile(
    r"^(?P<indent>[ \t]*)(?:\w[\w, ]*=[ \t]*)?[%!?].*$|^(?P<asked>[ \t]*)[\w.]+\?\??$", re.M
)


_TRANSPARENT = re.compile(r"\s*%%(?:time|timeit|capture|prun)\b.*(?:\n|$)")
_OTHER_CODE = re.compile(
    r"^[ \t]*(?:!|%%(?!time|timeit|capture|prun)|%(?:run|load|sx|system)\b)|=[ \t]*!|CONVECT_VALUES"
    r"|(?<![.\w])(?:exec|eval)\(|\b(?:import_module|__import__|runpy|subprocess)\b"
    r"|\bos\.(?:system|popen|exec|spawn)",
    re.M,
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name: annotation = value  # comment`, where all but the name may be missing."""

    name: str
    type: str | None = None
    default: Json = None
    source: str | None = None
    """The value as code; None when there is none."""
    help: str | None = None
    choices: tuple[Json, ...] = ()


def parse(source: str) -> ast.Module | None:
    """The syntax tree of a cell or module, magics passed over; None when it has none."""
    if source.lstrip().startswith("%%"):
        # Some magics execute the cell as it is.
        runs = _TRANSPARENT.match(source)
        source = "\n" * runs[0].count("\n") + source[runs.end() :] if runs else ""
    for text in (
        source,
        _MAGIC.sub(lambda match: f"{match['indent'] or match['asked']}pass", source),
    ):
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


@functools.lru_cache(1024)
def assignments(source: str) -> tuple[Assignment, ...] | None:
    """The names that a cell assigns at its top level, in order; None when it cannot be read."""
    tree = parse(source)
    if tree is None:
        return None
    lines = source.split("\n")
    before = 0
    found: dict[str, Assignment] = {}
    for statement in tree.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                kind, choices = _annotated(annotation)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind, choices = None, ()
            case _:
                before = statement.end_lineno or before
                continue
        typed, comment = _type_comment(_comment_of(statement, before, lines))
        before = statement.end_lineno or before
        default = _literal(value)
        if kind is None and typed is not None:
            kind, choices = _annotated(typed)
        if kind is None and default is not None:
            kind = type_of(default)
        code = None if value is None else _code(value)
        found[name] = Assignment(name, kind, default, code, comment, choices)
    return tuple(found.values())


def assigned_names(source: str) -> list[str]:
    """Every public name that a cell binds at its top level by assignment."""
    tree = parse(source)
    names: dict[str, None] = {}
    for statement in tree.body if tree else ():
        match statement:
            case ast.Assign():
                bound: list[ast.expr] = statement.targets
            case ast.AnnAssign(value=ast.expr()) | ast.AugAssign():
                bound = [statement.target]
            case _:
                continue
        for target in bound:
            for node in ast.walk(target):
                match node:
                    case ast.Name(id=name, ctx=ast.Store()) if not name.startswith("_"):
                        names[name] = None
    return list(names)


def reporting_calls(sources: Sequence[str], function: str) -> Iterator[str | None]:
    """Names given to `jupyterlab_convect.output` or `metric` in cells that share their names.

    None where the function is used in a way that does not tell the name.
    """
    if not any("jupyterlab_convect" in source for source in sources):
        return
    modules, functions = set(), set()
    statements = [node for source in sources for node in _walk(source)]
    for node in statements:
        match node:
            case ast.Import(names=names):
                modules |= {a.asname or a.name for a in names if a.name == "jupyterlab_convect"}
            case ast.ImportFrom(module="jupyterlab_convect", names=names):
                functions |= {a.asname or a.name for a in names if a.name == function}
                if any(a.name == "*" for a in names):
                    yield None

    def is_meant(node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                return name in functions
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return name in modules and attribute == function
        return False

    called = set()
    for node in statements:
        if isinstance(node, ast.Call) and is_meant(node.func):
            called.add(node.func)
            named = [word.value for word in node.keywords if word.arg == "name"]
            match [*node.args, *named]:
                case [ast.Constant(value=str(name)), *_]:
                    yield name
                case _:
                    yield None
    if any(node not in called and is_meant(node) for node in statements):
        yield None


def environment_reads(source: str) -> Iterator[str]:
    """Names of the environment variables that the code reads."""
    if "environ" not in source and "getenv" not in source:
        return
    for node in _walk(source):
        match node:
            case ast.Subscript(
                value=holder, slice=ast.Constant(value=str(name)), ctx=ast.Load()
            ) if _is_called(holder, "environ"):
                yield name
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                match function:
                    case ast.Attribute(value=holder, attr="get") if _is_called(holder, "environ"):
                        yield name
                    case _ if _is_called(function, "getenv"):
                        yield name


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Modules that the code imports: how many levels up it starts, and the dotted name."""
    for node in _walk(source):
        match node:
            case ast.Import(names=names):
                yield from ((0, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                if module:
                    yield level, module
                yield from (
                    (level, f"{module}.{alias.name}" if module else alias.name)
                    for alias in names
                    if alias.name != "*"
                )


def other_code(source: str) -> bool:
    """Whether the code executes code that is not in sight."""
    return _OTHER_CODE.search(source) is not None


def foreign_modules(source: str) -> set[str]:
    """Top-level modules that the code imports and that are not Python's own."""
    found = {name.partition(".")[0] for level, name in imports(source) if level == 0}
    return found - sys.stdlib_module_names - {"jupyterlab_convect"}


def _walk(source: str) -> Iterator[ast.AST]:
    tree = parse(source)
    return ast.walk(tree) if tree else iter(())


def _is_called(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Name(id=found) | ast.Attribute(value=ast.Name(), attr=found):
            return found == name
    return False


def _code(value: ast.expr) -> str:
    return repr(value.value) if isinstance(value, ast.Constant) else ast.unparse(value)


def _literal(value: ast.expr | None) -> Json:
    """The JSON value of a literal, None when it is something else."""
    if value is None:
        return None
    try:
        return _as_json(ast.literal_eval(value))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _as_json(value: object) -> Json:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if value != value or value in (float("inf"), float("-inf")):
                raise ValueError
            return value
        case list() | tuple() | set():
            return [_as_json(item) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _as_json(item) for key, item in value.items()}
    raise ValueError


def _annotated(annotation: ast.expr) -> tuple[str | None, tuple[Json, ...]]:
    """The type that an annotation means, and the values it allows when it lists them."""
    match annotation:
        case ast.Constant(value=str(text)):
            tree = parse(text)
            match tree.body if tree else []:
                case [ast.Expr(value=inner)]:
                    return _annotated(inner)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _TYPES.get(name), ()
        case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Constant(value=None)):
            return _annotated(left)
        case ast.BinOp(op=ast.BitOr(), left=ast.Constant(value=None), right=right):
            return _annotated(right)
        case ast.Subscript(value=outer, slice=inner):
            name = outer.attr if isinstance(outer, ast.Attribute) else getattr(outer, "id", "")
            if name == "Optional":
                return _annotated(inner)
            if name == "Literal":
                options = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                choices = tuple(_literal(option) for option in options)
                kinds = {type_of(choice) for choice in choices}
                return (kinds.pop() if len(kinds) == 1 else None), choices
            return _TYPES.get(name), ()
    return None, ()


def _type_comment(comment: str | None) -> tuple[ast.expr | None, str | None]:
    """Split `type: int # what it means`, the way that predates annotations."""
    match = re.fullmatch(r"type:\s*([^#]+?)\s*(?:#\s*(.*))?", comment or "")
    if match is None:
        return None, comment
    tree = parse(match[1])
    match tree.body if tree else []:
        case [ast.Expr(value=annotation)]:
            return annotation, match[2] or None
    return None, comment


def _comment_of(statement: ast.stmt, before: int, lines: list[str]) -> str | None:
    """The comment behind a statement, else the one above it that no other statement owns."""
    end = lines[(statement.end_lineno or statement.lineno) - 1].encode()
    behind = end[statement.end_col_offset :].decode().strip()
    above = lines[statement.lineno - 2].strip() if statement.lineno - 1 > before else ""
    comment = behind if behind.startswith("#") else above if above.startswith("#") else ""
    return comment.lstrip("#: ").strip() or None
