"""The document as types. Generated from pipeline/schema.json by scripts/generate_schema.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Required


class Parameter(TypedDict, total=False):
    """A value that can be set for each run."""

    type: Literal["string", "integer", "number", "boolean", "array", "object"]
    default: Any
    description: str
    required: bool
    choices: list[Any]
    extra: dict[str, Any]


class Settings(TypedDict, total=False):
    """What a node needs to run. Everything is optional."""

    image: str
    pull_policy: Literal["Always", "IfNotPresent", "Never"]
    kernel: str
    env: dict[str, str]
    secrets: list[Secret]
    resources: Resources
    parameters: dict[str, Any]
    volumes: list[Volume]
    dependencies: list[str]
    outputs: list[str]
    metrics: dict[str, str]
    retries: int | Retries
    timeout: float | str
    cache: bool
    working_folder: str
    distributed: Distributed
    dask: Dask
    kubernetes: Kubernetes
    extra: dict[str, Any]


ForEach = TypedDict(
    "ForEach",
    {
        "name": "Required[str]",
        "in": "Required[list[Any] | str]",
        "parallel": "int",
    },
    total=False,
)


class AnyNode(TypedDict, total=False):
    """What every kind of node can have."""

    name: str
    description: str
    after: list[str]
    when: str
    for_each: ForEach
    run_if: Literal["succeeded", "failed", "always"]
    disabled: bool


class NotebookNode(Settings, AnyNode, total=False):
    """Executes a notebook, in any language that has a kernel."""

    kind: Required[Literal["notebook"]]
    path: Required[str]


class ScriptNode(Settings, AnyNode, total=False):
    """Executes a script: `.py`, `.R` or `.sh`."""

    kind: Required[Literal["script"]]
    path: Required[str]


class CommandNode(Settings, AnyNode, total=False):
    """Executes a program with arguments. There is no shell in between."""

    kind: Required[Literal["command"]]
    command: Required[list[str]]


class ComponentNode(Settings, AnyNode, total=False):
    """Executes a ready-made component, whose definition is in the file."""

    kind: Required[Literal["component"]]
    component: Required[str]
    source: str
    inputs: dict[str, Any]


class PipelineNode(AnyNode, total=False):
    """Runs another pipeline as a part of this one, with its parameters in and its outputs out."""

    kind: Required[Literal["pipeline"]]
    path: Required[str]
    parameters: dict[str, Any]
    extra: dict[str, Any]


class GroupNode(AnyNode, total=False):
    """Nodes that belong together. With a rule they run, or are skipped, as a whole."""

    kind: Required[Literal["group"]]
    members: Required[list[str]]
    extra: dict[str, Any]


class Secret(TypedDict, total=False):
    """An environment variable whose value is looked up when the step starts."""

    env: Required[str]
    name: Required[str]
    key: Required[str]


class RequestAndLimit(TypedDict, total=False):
    request: Quantity
    limit: Quantity


class Resources(TypedDict, total=False):
    cpu: Amount
    memory: Amount
    gpu: float | Gpu
    shared_memory: Quantity
    ephemeral_storage: Amount


class Gpu(TypedDict, total=False):
    count: float
    type: str
    resource: str


class Volume(TypedDict, total=False):
    """A volume claim, mounted at a path."""

    claim: Required[str]
    path: Required[str]
    sub_path: str
    read_only: bool
    size: float | str
    mode: Literal["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"]
    storage_class: str


class Retries(TypedDict, total=False):
    count: int
    delay: float
    factor: float


class Dask(TypedDict, total=False):
    workers: int
    options: dict[str, Any]
    wait: float | str


class Distributed(TypedDict, total=False):
    nodes: int
    min_nodes: int
    processes: int | Literal["gpu", "cpu"]
    launcher: Literal["plain", "torchrun", "mpi"]
    restarts: int
    outputs_from: int
    hang_after: float | str
    on_hang: Literal["report", "stop"]
    operator: Literal["auto", "none", "TrainJob", "PyTorchJob", "TFJob", "MPIJob"]
    gang: bool


class Kubernetes(TypedDict, total=False):
    node_selector: dict[str, str]
    tolerations: list[Toleration]
    labels: dict[str, str]
    annotations: dict[str, str]
    priority: str
    service_account: str
    pull_secrets: list[str]
    resources: dict[str, str]


class Toleration(TypedDict, total=False):
    """A taint that the pod accepts."""

    key: str
    operator: Literal["Equal", "Exists"]
    value: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    seconds: int


class Comment(TypedDict, total=False):
    """A note on the canvas."""

    text: Required[str]
    about: list[str]
    extra: dict[str, Any]


class GroupPlace(TypedDict, total=False):
    at: Required[list[float]]
    folded: bool


class Document(TypedDict, total=False):
    """A pipeline: nodes, how they depend on each other, and what each needs to run."""

    convect: Required[Literal[1]]
    name: str
    description: str
    parameters: dict[str, Parameter]
    defaults: Settings
    nodes: Required[dict[str, Node]]
    outputs: dict[str, str]
    components: dict[str, dict[str, Any]]
    comments: dict[str, Comment]
    layout: dict[str, Place]
    extra: dict[str, Any]


Node: TypeAlias = (
    "NotebookNode | ScriptNode | CommandNode | ComponentNode | PipelineNode | GroupNode"
)

Quantity: TypeAlias = "float | str"

Amount: TypeAlias = "float | str | RequestAndLimit"

Place: TypeAlias = "list[float] | GroupPlace"
