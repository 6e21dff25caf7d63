"""The syntax of expressions: from text to a tree, and back."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import ConvectError
from .plan import Json
from .problems import Path

RUN_FIELDS = ("id", "name")
DEEPEST = 30
"""Levels of parentheses, `!` and `first` in one expression."""
MOST_OPERATORS = 100
"""Operators in one expression."""

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_EXPRESSION = re.compile(rf"\$\{{\{{((?:[^{{}}'\"]|{_QUOTED})*|[^{{}}]*)\}}\}}")
_ALMOST = re.compile(
    r"(?<!\$)\{\{\s*((?:parameters|nodes|run|each)\.[^{}]*)\}\}"
    r"|\$\{\s*((?:parameters|nodes|run|each)\.[^{}]*)\}"
)
_TOKEN = re.compile(
    rf"\s*(?:(?P<text>{_QUOTED})"
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<word>[^\W\d][\w-]*(?:\.[\w-]+)*)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[<>!()\[\],.]))"
)
_SIMPLE = re.compile(r"[\w-]+")
_ORDER = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3}
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None}

Compared = Literal["==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A parameter, an output (or the state) of `node`, the item of a loop, or a fact of the run."""

    kind: Literal["parameters", "nodes", "run", "each"]
    name: str
    node: str | None = None
    of: Literal["outputs", "state"] = "outputs"
    """What of a node it is."""
    fields: tuple[str, ...] = ()
    """The way into an item that is an object."""

    @property
    def path(self) -> str:
        if self.of == "state":
            return f"nodes.{self.node}.state"
        place = self.kind if self.node is None else f"nodes.{self.node}.outputs"
        return ".".join((place, self.name, *self.fields))

    def __str__(self) -> str:
        return f"${{{{ {self.path} }}}}"


@dataclass(frozen=True, slots=True)
class Constant:
    value: Json

    def __hash__(self) -> int:
        return hash(json.dumps(self.value, sort_keys=True))


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression


@dataclass(frozen=True, slots=True)
class Operation:
    operator: Compared
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class First:
    options: tuple[Expression, ...]


Expression: TypeAlias = Reference | Constant | Not | Operation | First


@functools.lru_cache(4096)
def parse(text: str) -> tuple[str | Expression, ...]:
    """The plain parts and the expressions of a text; a ConvectError when one cannot be read."""
    if "${{" not in text:
        return (text,)
    parts: list[str | Expression] = []
    end = 0
    for match in _EXPRESSION.finditer(text):
        parts += [text[end : match.start()], parse_expression(match[1])]
        end = match.end()
    parts.append(text[end:])
    if any(isinstance(part, str) and "${{" in part for part in parts):
        raise _unreadable(f"The expression in “{text[:60]}” has no end.", "It ends with “}}”.")
    return tuple(part for part in parts if part != "")


def parse_one(text: Json) -> Expression | None:
    """The expression that a text is as a whole; None when it is something else."""
    if not isinstance(text, str):
        return None
    parts = parse(text.strip())
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], str) else None


def parse_expression(source: str) -> Expression:
    """What stands between `${{` and `}}`; a ConvectError when it cannot be read."""
    try:
        return _Parser(source).whole()
    except ConvectError as error:
        # Names of outputs may have any characters, as long as they stand alone.
        found = _reference(source.strip().split("."))
        if found is None or re.search(r"&&|\|\||[=<>!]=|[()\"']", source):
            raise error from None
        return found


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source.strip()
        self._position = 0
        self._depth = 0
        self._operators = 0
        self._kind, self._symbol = self._next()

    def whole(self) -> Expression:
        found = self._operation(1)
        if self._kind is not None:
            raise self._fault()
        return found

    def _operation(self, lowest: int) -> Expression:
        left = self._operand()
        while self._order() >= lowest:
            self._operators += 1
            if self._operators > MOST_OPERATORS:
                raise _unreadable(
                    f"An expression has more than {MOST_OPERATORS} operators.",
                    "Split it over several nodes.",
                )
            operator = self._take()
            order = _ORDER[operator]
            right = self._operation(order + 1)
            left = Operation(operator, left, right)  # type: ignore[arg-type]
            if order == 3 and self._order() == 3:
                raise self._fault()
        return left

    def _order(self) -> int:
        return _ORDER.get(self._symbol, 0) if self._kind in ("sign", "word") else 0

    def _operand(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            raise _unreadable("An expression is nested too deeply.", "Split it over several nodes.")
        try:
            return self._any_operand()
        finally:
            self._depth -= 1

    def _any_operand(self) -> Expression:
        kind, symbol = self._kind, self._symbol
        if kind == "sign" and symbol == "!":
            self._take()
            return Not(self._operand())
        if kind == "sign" and symbol == "(":
            self._take()
            inner = self._operation(1)
            self._expect(")")
            return inner
        if kind == "sign" and symbol == "[":
            return Constant(self._list())
        if kind in ("text", "number"):
            return Constant(self._literal())
        if kind != "word" or symbol == "in":
            raise self._fault()
        self._take()
        if symbol in _WORDS:
            return Constant(_WORDS[symbol])
        if self._symbol == "(":
            return self._call(symbol)
        return self._reference(symbol)

    def _call(self, name: str) -> Expression:
        if name != "first":
            raise _unreadable(
                f"There is no function “{name}” in expressions.",
                "The only function is first(a, b, …).",
            )
        self._take()
        options = [self._operation(1)]
        while self._symbol == ",":
            self._take()
            options.append(self._operation(1))
        self._expect(")")
        return First(tuple(options))

    def _reference(self, path: str) -> Expression:
        words = path.split(".")
        while self._symbol in ("[", ".") and self._kind == "sign":
            if self._take() == "[":
                words.append(str(self._literal()))
                self._expect("]")
            else:
                words += self._take().split(".")
        found = _reference(words)
        if found is None:
            raise self._fault(words)
        return found

    def _list(self) -> list[Json]:
        self._expect("[")
        items: list[Json] = []
        while self._symbol != "]":
            items.append(self._literal())
            if self._symbol != "]":
                self._expect(",")
        self._expect("]")
        return items

    def _literal(self) -> Json:
        kind, symbol = self._kind, self._take()
        if kind == "number":
            return json.loads(symbol)
        if kind == "word" and symbol in _WORDS:
            return _WORDS[symbol]
        if kind != "text":
            raise self._fault()
        body = symbol[1:-1] if symbol[0] == '"' else symbol[1:-1].replace(r"\'", "'")
        if symbol[0] == "'":
            body = re.sub(r'(?<!\\)"', r"\"", body)
        try:
            return json.loads(f'"{body}"', strict=False)
        except ValueError:
            raise self._fault() from None

    def _expect(self, sign: str) -> None:
        if self._symbol != sign or self._kind != "sign":
            raise self._fault()
        self._take()

    def _take(self) -> str:
        symbol = self._symbol
        self._kind, self._symbol = self._next()
        return symbol

    def _next(self) -> tuple[str | None, str]:
        if self._position >= len(self._source):
            return None, ""
        match = _TOKEN.match(self._source, self._position)
        if match is None:
            raise self._fault()
        self._position = match.end()
        kind = match.lastgroup or ""
        return kind, match[kind]

    def _fault(self, words: list[str] | None = None) -> ConvectError:
        words = words if words is not None else self._source.split(".")
        return _unreadable(
            f"“${{{{ {self._source[:60]} }}}}” is not an expression.", _expression_hint(words)
        )


def _reference(words: list[str]) -> Reference | None:
    match words:
        case ["parameters", *name] if _is_name(name):
            return Reference("parameters", ".".join(name))
        case ["nodes", *rest] if "outputs" in rest[1:]:
            # The parts of an unfolded graph have ids with dots.
            split = rest.index("outputs", 1)
            node, name = ".".join(rest[:split]), rest[split + 1 :]
            if node.strip() and _is_name(name):
                return Reference("nodes", ".".join(name), node)
        case ["nodes", *node, "state"] if _is_name(node):
            return Reference("nodes", "state", ".".join(node), "state")
        case ["each", name, *fields] if _is_name([name, *fields]):
            return Reference("each", name, fields=tuple(fields))
        case ["run", field] if field in RUN_FIELDS:
            return Reference("run", field)
    return None


def _expression_hint(words: list[str]) -> str:
    match words:
        case ["nodes" | "node", node, *name] if name and "outputs" not in name:
            return f"Did you mean nodes.{node}.outputs.{'.'.join(name)}?"
        case ["parameter" | "params" | "param", *name] if _is_name(name):
            return f"Did you mean parameters.{'.'.join(name)}?"
        case ["item" | "items", *name] if _is_name(name):
            return f"Did you mean each.{'.'.join(name)}?"
    return (
        "Expressions can use parameters.NAME, nodes.ID.outputs.NAME, nodes.ID.state, each.NAME, "
        "run.id, run.name, == != < <= > >= && || ! in and first(…)."
    )


def almost(text: str) -> tuple[str, str] | None:
    """What looks like an expression in a text and is none, and how it is written rightly."""
    found = _ALMOST.search(text)
    return None if found is None else (found[0], f"${{{{ {(found[1] or found[2]).strip()} }}}}")


def _is_name(words: list[str]) -> bool:
    return bool(words) and all(word and not any(c in "${}" for c in word) for word in words)


def _unreadable(sentence: str, hint: str) -> ConvectError:
    return ConvectError(sentence, code="bad-expression", hint=hint)


def references(value: Json) -> Iterator[Reference]:
    """Every reference in a value, however deep."""
    for _, text in texts(value):
        for part in parse(text):
            if not isinstance(part, str):
                yield from references_in(part)


def references_in(expression: Expression) -> Iterator[Reference]:
    return (reference for reference, _ in weighed_references(expression))


def weighed_references(
    expression: Expression, is_weak: bool = False
) -> Iterator[tuple[Reference, bool]]:
    """Every reference, and whether it does without its value, being an option of `first`."""
    match expression:
        case Reference():
            yield expression, is_weak
        case Not(operand):
            yield from weighed_references(operand, is_weak)
        case Operation(_, left, right):
            yield from weighed_references(left, is_weak)
            yield from weighed_references(right, is_weak)
        case First(options):
            for option in options:
                yield from weighed_references(option, True)


def texts(value: Json, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text in a value, however deep, and where it is."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from texts(item, (*path, index))


def write(expression: Expression) -> str:
    """The text that `parse` reads as this expression, without `${{` and `}}`."""
    return spell(expression, 0, _written_path)


def spell(expression: Expression, outer: int, name: Callable[[Reference], str]) -> str:
    match expression:
        case Reference():
            return name(expression)
        case Constant(value):
            return json.dumps(value, ensure_ascii=False)
        case Not(operand):
            return f"!{spell(operand, 4, name)}"
        case First(options):
            return f"first({', '.join(spell(option, 0, name) for option in options)})"
        case Operation(operator, left, right):
            own = _ORDER[operator]
            # Comparisons do not chain, so that those inside of another have parentheses.
            sides = (own + (own == 3), own + 1)
            spelled = [spell(s, o, name) for s, o in zip((left, right), sides, strict=True)]
            text = f"{spelled[0]} {operator} {spelled[1]}"
            return f"({text})" if own < outer else text


def _written_path(reference: Reference) -> str:
    if _SIMPLE.fullmatch(reference.name) and all(map(_SIMPLE.fullmatch, reference.fields)):
        return reference.path
    place = f"nodes.{reference.node}.outputs" if reference.node is not None else reference.kind
    quoted = (f"[{json.dumps(part, ensure_ascii=False)}]" for part in reference.fields)
    return f"{place}[{json.dumps(reference.name, ensure_ascii=False)}]{''.join(quoted)}"
