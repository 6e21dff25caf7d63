"""A plan: a pipeline resolved for one run, with nothing left to look up.

Plans are made by `resolve` and read by the engine and the runtimes. They are
immutable, they turn into JSON and back without loss, and their digest is the
same on every machine: no absolute path, time or host name is part of them.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Any
"""What JSON can say: None, bool, int, float, str, and lists and string-keyed dicts of them."""

T = typing.TypeVar("T")

LARGEST = 2**63 - 1

StepKind = Literal["notebook", "script", "command", "component"]
RunIf = Literal["succeeded", "failed", "always"]

DISABLED = "${{ false }}"
"""The condition of what its document disables; one that comes to false is bound to `False`."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A Kubernetes quantity to ask for and one not to exceed, as canonical text (`500m`, `2Gi`)."""

    request: str | None = None
    limit: str | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    count: float
    type: str | None = None
    resource: str | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    cpu: Amount | None = None
    memory: Amount | None = None
    ephemeral_storage: Amount | None = None
    shared_memory: str | None = None
    gpu: Gpu | None = None


@dataclass(frozen=True, slots=True)
class Secret:
    """A value put into the environment variable `env` when the step starts, never before.

    `name` and `key` name a Kubernetes Secret and its key, or a keyring service and user.
    """

    env: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Volume:
    claim: str
    path: str
    sub_path: str | None = None
    read_only: bool = False
    size: str | None = None
    """The claim is made for the run, of this size; without it, it is there already."""
    mode: str = "ReadWriteOnce"
    storage_class: str | None = None


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file the step needs, relative to the root folder, with the sha256 of its bytes."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class Retries:
    """Try again `count` times, waiting `delay` seconds, then `delay * factor`, and so on."""

    count: int = 0
    delay: float = 1.0
    factor: float = 2.0


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str | None = None
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str | None = None
    effect: str | None = None
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Kubernetes:
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    priority: str | None = None
    service_account: str | None = None
    pull_secrets: tuple[str, ...] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    """Amounts of what only some clusters have, by the name that it has there."""


@dataclass(frozen=True, slots=True)
class Distributed:
    """Several processes that work together: `processes` on each of `nodes` machines."""

    nodes: int = 1
    processes: int | Literal["cpu"] = 1
    """`cpu`: one per processor that there is."""
    launcher: Literal["plain", "torchrun", "mpi"] = "plain"
    restarts: int = 0
    outputs_from: int = 0
    """The rank whose values and metrics are those of the step."""
    hang_after: float | None = None
    """Seconds of silence and idleness after which it hangs; None if nobody looks."""
    on_hang: Literal["report", "stop"] = "report"
    gang: bool = False
    """On a cluster: none of its pods is created before there is room for all of them."""
    operator: str = "auto"
    """Of a cluster: the kind of the object that runs it; `auto` for what there is, or `none`."""
    min_nodes: int | None = None
    """So many nodes are enough; None if all are needed."""

    @property
    def least(self) -> int:
        return self.nodes if self.min_nodes is None else self.min_nodes

    @property
    def is_elastic(self) -> bool:
        return self.least < self.nodes

    @property
    def outputs_node(self) -> int:
        """The node with that rank: its files are those of the step."""
        return 0 if self.processes == "cpu" else self.outputs_from // self.processes


@dataclass(frozen=True, slots=True)
class DaskNeeds:
    """A Dask cluster that is made for each attempt."""

    workers: int = 1
    options: Mapping[str, Json] = field(default_factory=dict)
    """What the gateway lets one choose."""
    wait: float = 600.0
    """Seconds within which all workers have to come."""


@dataclass(frozen=True, slots=True)
class ForEach:
    """Once per item, of which `parallel` run at a time; as many as there is room for if None."""

    name: str
    items: Json
    """A list, or the text of an expression that gives one."""
    parallel: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One node, ready to be executed.

    `parameters`, `env` and `command` may still hold expressions with `nodes.*`, `each.*` and
    `run.*`: the engine binds them when everything upstream is done. `parameters.*` is already
    bound. `when` is true, false, or the text of an expression.
    """

    id: str
    kind: StepKind
    name: str
    after: tuple[str, ...] = ()
    """Steps and groups of the same group that it waits for."""
    weak: tuple[str, ...] = ()
    """Those of them that may be skipped by a rule, because only `first(…)` names them."""
    group: str | None = None
    when: Json = None
    why_not: str | None = None
    """Why it is skipped, where the parameters alone decide that."""
    run_if: RunIf = "succeeded"
    for_each: ForEach | None = None
    path: str | None = None
    digest: str | None = None
    command: tuple[str, ...] = ()
    component: str | None = None
    parameters: Mapping[str, Json] = field(default_factory=dict)
    """Those that it is given."""
    defaults: Mapping[str, Json] = field(default_factory=dict)
    """What its source says for parameters that it is not given, as far as that is a literal."""
    computed: Mapping[str, str] = field(default_factory=dict)
    """The code behind those defaults that are not."""
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[Secret, ...] = ()
    image: str | None = None
    pull_policy: str | None = None
    kernel: str | None = None
    resources: Resources = Resources()
    volumes: tuple[Volume, ...] = ()
    dependencies: tuple[SourceFile, ...] = ()
    outputs: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    retries: Retries = Retries()
    timeout: float | None = None
    cache: bool = False
    working_folder: str = "source"
    distributed: Distributed | None = None
    dask: DaskNeeds | None = None
    kubernetes: Kubernetes = Kubernetes()


@dataclass(frozen=True, slots=True)
class Group:
    """Steps and groups that begin together, under the same rule: a group, or another pipeline.

    What one of them waits for outside of the group, the whole group waits for.
    """

    id: str
    name: str
    after: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    group: str | None = None
    when: Json = None
    why_not: str | None = None
    """Why it is skipped, where the parameters alone decide that."""
    run_if: RunIf = "succeeded"
    for_each: ForEach | None = None
    outputs: Mapping[str, Json] = field(default_factory=dict)
    """What it gives by name, as expressions over its members."""
    path: str | None = None
    """The pipeline that it is, relative to the root folder."""
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in an order in which they could run one after the other."""

    name: str
    steps: tuple[Step, ...]
    path: str | None = None
    """The pipeline, notebook or script it came from, relative to the root folder."""
    parameters: Mapping[str, Json] = field(default_factory=dict)
    components: Mapping[str, Json] = field(default_factory=dict)
    """Definitions of the components used, by digest."""
    groups: tuple[Group, ...] = ()
    """Those that have a rule, and other pipelines; outer ones before inner ones."""

    @property
    def parts(self) -> list[Step | Group]:
        return [*self.groups, *self.steps]

    def step(self, step_id: str) -> Step:
        return next(step for step in self.steps if step.id == step_id)

    def steps_of(self, node: str) -> list[str]:
        """The ids of the steps that a node has become: its own, or those of its parts."""
        parents = {group.id: group.group for group in self.groups}

        def belongs(step: Step) -> bool:
            above: str | None = step.id
            while above is not None and above != node and not above.startswith(f"{node}."):
                above = step.group if above == step.id else parents.get(above)
            return above is not None

        return [step.id for step in self.steps if belongs(step)]

    @property
    def digest(self) -> str:
        return digest_of(to_json(self))


def digest_of(value: Json) -> str:
    """The sha256 of a JSON value, independent of key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def to_json(value: Any) -> Json:
    """A dataclass as JSON, without the fields that have their default."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            name: to_json(item)
            for name, default in _defaults(type(value))
            if (item := getattr(value, name)) != default
        }
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def from_json(kind: type[T], value: Json) -> T:
    """The dataclass that `to_json` turned into `value`; unknown keys are passed over.

    TypeError when something in it is not of the type that it should be.
    """
    known: Any = kind
    return typing.cast(T, _reader(known)(value))


@functools.cache
def _reader(kind: Any) -> Callable[[Json], Any]:
    """What reads a value of a type."""
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in arguments if option is not type(None)]
        read = _reader(options[0]) if len(options) == 1 else _any_of(options)
        return lambda value: None if value is None else read(value)
    if origin is tuple:
        part = _reader(arguments[0])
        return lambda value: tuple(map(part, _checked((list, tuple), value)))
    if origin in (Sequence, list):
        part = _reader(arguments[0])
        return lambda value: list(map(part, _checked((list, tuple), value)))
    if origin in (Mapping, dict):
        part = _reader(arguments[1])
        return lambda value: {key: part(item) for key, item in _checked(dict, value).items()}
    if origin is Literal:
        return functools.partial(_checked, type(arguments[0]))
    if kind is float:
        return _float
    return functools.partial(_checked, kind) if kind in (str, bool, int) else _as_it_is


def _dataclass_reader(kind: Any) -> Callable[[Json], Any]:
    @functools.cache
    def readers() -> dict[str, Callable[[Json], Any]]:
        hints = typing.get_type_hints(kind)
        return {item.name: _reader(hints[item.name]) for item in dataclasses.fields(kind)}

    def read(value: Json) -> Any:
        known = readers()
        given = _checked(dict, value)
        return kind(**{name: known[name](item) for name, item in given.items() if name in known})

    return read


def _any_of(options: list[Any]) -> Callable[[Json], Any]:
    """What reads a value of one of several plain types."""
    kinds = [
        type(typing.get_args(option)[0]) if typing.get_args(option) else option
        for option in options
    ]
    return functools.partial(_checked, tuple(kinds))


def _as_it_is(value: Json) -> Json:
    return value


def _checked(kind: Any, value: Json) -> Any:
    if not isinstance(value, kind) or (kind is int and not -LARGEST <= value <= LARGEST):
        raise TypeError(f"{str(value)[:80]!r} is not what belongs there")
    return value


def _float(value: Json) -> float:
    """Integers are as good, up to the largest that a database takes."""
    if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        value = float(value) if value.bit_length() < 1024 else None
    checked: float = _checked((int, float), value)
    return checked


@functools.cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Field names with their default (MISSING, which equals no value, where there is none)."""

    def default(item: dataclasses.Field[Any]) -> Any:
        if item.default_factory is not dataclasses.MISSING:
            return item.default_factory()
        return item.default

    return tuple((item.name, default(item)) for item in dataclasses.fields(kind))
