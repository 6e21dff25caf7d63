"""What is wrong with a training job in YAML, line by line, and the text without it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from ..problems import did_you_mean
from .job_kinds import AMOUNT, ANY, CONTAINER, FLAG, IMAGE, KINDS, WHOLE, JobKind, Shape, job_shape
from .yaml_nodes import MAX_NODES, NotYaml, documents, entries, fields, tag_of, text_of

MOST_REPAIRS = 50
_PATIENCE = 10
"""Lines before an error in which its cause is looked for."""
_LINE = re.compile(r"(?P<indent> *)(?P<items>(?:- +)*)(?P<text>[^\s#].*)")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_AMOUNT = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_KIND = re.compile(rf"^kind:\s*[\"']?({'|'.join(KINDS)})\b", re.MULTILINE)
_ONLY_CONTAINER = frozenset(key.rstrip("!") for key in CONTAINER) - {
    *("name", "restartPolicy", "securityContext", "resources")
}


@dataclass(frozen=True, slots=True)
class YamlFault:
    line: int
    message: str
    hint: str | None = None
    is_mended: bool = False
    """The text that `mend` gives is without it."""


def is_training_job(text: str) -> bool:
    """Whether it is worth a look: it may still be full of faults."""
    return _KIND.search(text) is not None


def check(text: str) -> list[YamlFault]:
    """Everything that is wrong, by line."""
    return mend(text)[1]


def mend(text: str) -> tuple[str, list[YamlFault]]:
    """The text without the faults that have one remedy, and all faults."""
    try:
        indented, faults = _indent(text)
        jobs = documents(indented)
    except NotYaml as error:
        return text, [YamlFault(error.line, error.message)]
    except _StillNotYaml as error:
        return error.text, [*error.faults, YamlFault(error.line, error.message)]
    if not jobs:
        return indented, [*faults, YamlFault(1, "There is no job in this file.")]
    training = [job for job in jobs if text_of(fields(job).get("kind")) in KINDS]
    checking = _Checking()
    found = {*faults, *(fault for job in training or jobs for fault in checking.job(job))}
    return checking.quoted(indented), sorted(found, key=lambda each: (each.line, each.message))


class _StillNotYaml(Exception):
    def __init__(self, text: str, faults: list[YamlFault], error: NotYaml) -> None:
        super().__init__(error.message)
        self.text = text
        self.faults = faults
        self.line = error.line
        self.message = error.message


def _indent(text: str) -> tuple[str, list[YamlFault]]:
    """The text with lines indented as those around them, and which those are."""
    lines, faults = text.split("\n"), list[YamlFault]()
    for number, line in enumerate(lines):
        before = line[: len(line) - len(line.lstrip())]
        if "\t" in before:
            faults.append(YamlFault(number + 1, "Tabs cannot indent a line.", "Use spaces.", True))
            lines[number] = before.replace("\t", "  ") + line.lstrip()
    for _ in range(MOST_REPAIRS):
        try:
            documents("\n".join(lines))
        except NotYaml as error:
            culprit = _misplaced(lines, error.line - 1)
            if culprit is None:
                raise _StillNotYaml("\n".join(lines), faults, error) from None
        else:
            break
        number, indent = culprit
        was = len(lines[number]) - len(lines[number].lstrip())
        key = lines[number].strip().partition(":")[0][:40]
        faults.append(
            YamlFault(
                number + 1,
                f"“{key}” is indented by {was} spaces, but the lines around it by {indent}.",
                f"Indent it by {indent} spaces.",
                True,
            )
        )
        lines[number] = " " * indent + lines[number].lstrip()
    return "\n".join(lines), faults


def _misplaced(lines: list[str], error_line: int) -> tuple[int, int] | None:
    """A line that stands alone between lines of another indent, and that indent."""
    for number in range(min(error_line, len(lines) - 1), max(0, error_line - _PATIENCE), -1):
        own = _depth(lines[number])
        before = next((d for n in range(number - 1, -1, -1) if (d := _depth(lines[n]))), None)
        after = next((d for n in range(number + 1, len(lines)) if (d := _depth(lines[n]))), None)
        if own and before and after and before[1] == after[0] != own[0]:
            return number, before[1]
    return None


def _depth(line: str) -> tuple[int, int] | None:
    """Where a line begins, and where its key does, behind the dashes of a list."""
    match = _LINE.fullmatch(line.rstrip())
    if match is None:
        return None
    begin = len(match["indent"])
    return begin, begin + len(match["items"])


@dataclass(slots=True)
class _Checking:
    """Compares jobs with their shapes, and remembers what is to be put in quotes."""

    quotes: dict[tuple[int, int], str] = field(default_factory=dict)
    seen: int = 0

    def quoted(self, text: str) -> str:
        for (start, end), value in sorted(self.quotes.items(), reverse=True):
            text = text[:start] + json.dumps(value, ensure_ascii=False) + text[end:]
        return text

    def job(self, job: yaml.Node) -> Iterator[YamlFault]:
        found = fields(job)
        kind = text_of(found.get("kind"))
        if kind not in KINDS:
            known = ", ".join(KINDS)
            hint = did_you_mean(kind or "", list(KINDS))
            if kind:
                message = f"“{kind[:60]}” is not a training job; known are {known}."
            else:
                message = f"The job has no “kind”; known are {known}."
            yield _fault(found.get("kind", job), message, hint)
            return
        about = KINDS[kind]
        version = text_of(found.get("apiVersion"))
        if version not in about.versions:
            wanted = " or ".join(about.versions)
            message = f"The “apiVersion” of a {kind} is {wanted}, not “{(version or '')[:60]}”."
            yield _fault(found.get("apiVersion", job), message)
        newest = next(iter(about.versions.values()))
        yield from self.node(job, job_shape(about.versions.get(version or "", newest)), "")
        yield from _name(found.get("metadata"))
        if about.replicas is not None:
            yield from _roles(fields(found.get("spec")).get(about.replicas), about)

    def node(self, node: yaml.Node, shape: Shape, name: str) -> Iterator[YamlFault]:
        self.seen += 1
        if self.seen > MAX_NODES:
            if self.seen == MAX_NODES + 1:
                yield _fault(node, "It unfolds to more values than a job can have.")
            return
        if shape == ANY or tag_of(node) == "null":
            return
        if isinstance(shape, dict):
            yield from self._mapping(node, shape, name)
        elif isinstance(shape, list):
            if not isinstance(node, yaml.SequenceNode):
                yield _fault(node, f"“{name}” must be a list.", "Begin each item with “- ”.")
                return
            for number, item in enumerate(node.value):
                yield from self.node(item, shape[0], f"{name}[{number}]")
        else:
            yield from self._scalar(node, shape, name)

    def _mapping(self, node: yaml.Node, shape: dict[str, Shape], name: str) -> Iterator[YamlFault]:
        if not isinstance(node, yaml.MappingNode):
            what = f"“{name}” must have properties." if name else "A job must have properties."
            yield _fault(node, what, "Write each as “name: value” in a line of its own.")
            return
        known = {key.rstrip("!"): value for key, value in shape.items()}
        meant, seen = set[str](), set[str]()
        for key, value in entries(node).items():
            word = str(key.value)
            if word in seen:
                yield _fault(key, f"“{word[:60]}” appears twice.")
            seen.add(word)
            if word in known or "*" in known:
                yield from self.node(value, known.get(word, known.get("*")), word)
                continue
            hint = did_you_mean(word, list(known))
            meant |= {each for each in known if hint and f"“{each}”" in hint}
            if word in _ONLY_CONTAINER and "containers" in known:
                yield _fault(key, f"“{word}” belongs to a container.", "Indent it further.")
            elif name:
                yield _fault(key, f"“{name}” has no property “{word[:60]}”.", hint)
            else:
                yield _fault(key, f"The job has no property “{word[:60]}”.", hint)
        for key in shape:
            word = key[:-1]
            has_value = word in seen and tag_of(fields(node)[word]) != "null"
            if key.endswith("!") and not has_value and word not in meant:
                what = f"“{name}” has no “{word}”." if name else f"The job has no “{word}”."
                yield _fault(node, what)

    def _scalar(self, node: yaml.Node, shape: Shape, name: str) -> Iterator[YamlFault]:
        text, tag = text_of(node), tag_of(node)
        if text is None:
            yield _fault(node, f"“{name}” must be a single value.")
        elif isinstance(shape, tuple):
            if text not in shape:
                choices = ", ".join(each for each in shape if each)
                hint = did_you_mean(text, [each for each in shape if each])
                yield _fault(node, f"“{name}” must be one of {choices}.", hint)
        elif shape == WHOLE:
            if tag != "int":
                hint = "Write it without quotes." if text.isdigit() else None
                yield _fault(node, f"“{name}” must be a whole number.", hint)
            elif text.startswith("-"):
                yield _fault(node, f"“{name}” must not be negative.")
        elif shape == FLAG:
            if tag != "bool":
                yield _fault(node, f"“{name}” must be true or false.")
        elif shape == AMOUNT:
            if tag not in ("int", "float", "str") or not _AMOUNT.fullmatch(text):
                hint = "Amounts are written as 2, 500m or 4Gi."
                yield _fault(node, f"“{text[:40]}” is not an amount of “{name}”.", hint)
        elif tag in ("int", "float", "bool"):
            self.quotes[node.start_mark.index, node.end_mark.index] = text
            yield _fault(node, f"“{name}” must be text.", f'Write "{text[:40]}".', True)
        elif shape == IMAGE and not _IMAGE.fullmatch(text):
            yield _fault(node, f"“{text[:80]}” is not the name of an image.")


def _name(metadata: yaml.Node | None) -> Iterator[YamlFault]:
    if metadata is None:
        return
    found = fields(metadata)
    name = found.get("name")
    if not text_of(name) and not text_of(found.get("generateName")):
        yield _fault(metadata, "The job has no name in “metadata”.")
    elif name is not None and not _NAME.fullmatch(text_of(name) or ""):
        yield _fault(
            name,
            f"“{(text_of(name) or '')[:80]}” cannot be the name of a job.",
            "Use a letter, then up to 62 lowercase letters, digits and hyphens.",
        )


def _roles(node: yaml.Node | None, about: JobKind) -> Iterator[YamlFault]:
    """What shapes do not say."""
    roles = fields(node)
    if node is not None and tag_of(node) == "map":
        for role in about.needed:
            if role not in roles:
                yield _fault(node, f"“{about.replicas}” has no “{role}”.")
    for role in about.roles:
        found = fields(roles.get(role))
        count = text_of(found.get("replicas"))
        if role in about.single and count is not None and count.isdigit() and count != "1":
            yield _fault(found["replicas"], f"There is one “{role}”, not {count}.")
        containers = fields(fields(found.get("template")).get("spec")).get("containers")
        if not isinstance(containers, yaml.SequenceNode):
            continue
        names = [text_of(fields(item).get("name")) for item in containers.value]
        if not names:
            yield _fault(containers, f"“{role}” has no containers.")
        elif about.container and about.container not in names:
            message = f"One container of “{role}” must be called “{about.container}”."
            yield _fault(containers, message)


def _fault(node: Any, message: str, hint: str | None = None, is_mended: bool = False) -> YamlFault:
    return YamlFault(node.start_mark.line + 1, message, hint, is_mended)
