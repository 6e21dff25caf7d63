"""Training jobs of Kubeflow in YAML: what is wrong with one, line by line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from ..pipeline.problems import did_you_mean

MOST_REPAIRS = 50
_PATIENCE = 10
"""Lines before an error in which its cause is looked for."""
_LINE = re.compile(r"(?P<indent> *)(?P<items>(?:- +)*)(?P<text>[^\s#].*)")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")

_REPLICA = ("replicas", "restartPolicy", "template")
_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
_CONTAINER = (
    *("name", "image", "imagePullPolicy", "command", "args", "workingDir", "env", "envFrom"),
    *("ports", "resources", "volumeMounts", "volumeDevices", "securityContext", "lifecycle"),
    *("livenessProbe", "readinessProbe", "startupProbe", "restartPolicy", "resizePolicy"),
    *("stdin", "stdinOnce", "tty", "terminationMessagePath", "terminationMessagePolicy"),
)
_ONLY_CONTAINER = frozenset(_CONTAINER) - {"name", "restartPolicy", "securityContext", "resources"}


@dataclass(frozen=True, slots=True)
class _JobKind:
    versions: tuple[str, ...]
    spec: tuple[str, ...]
    replicas: str | None = None
    roles: tuple[str, ...] = ()
    container: str | None = None
    """What one of the containers has to be called."""


KINDS = {
    "PyTorchJob": _JobKind(
        ("kubeflow.org/v1",),
        ("pytorchReplicaSpecs", "runPolicy", "elasticPolicy", "nprocPerNode"),
        "pytorchReplicaSpecs",
        ("Master", "Worker"),
        "pytorch",
    ),
    "TFJob": _JobKind(
        ("kubeflow.org/v1",),
        ("tfReplicaSpecs", "runPolicy", "successPolicy", "enableDynamicWorker"),
        "tfReplicaSpecs",
        ("Chief", "Master", "PS", "Worker", "Evaluator"),
        "tensorflow",
    ),
    "MPIJob": _JobKind(
        ("kubeflow.org/v2beta1", "kubeflow.org/v1"),
        (
            *("mpiReplicaSpecs", "runPolicy", "slotsPerWorker", "runLauncherAsWorker"),
            *("sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation"),
            *("mainContainer", "cleanPodPolicy"),
        ),
        "mpiReplicaSpecs",
        ("Launcher", "Worker"),
    ),
    "TrainJob": _JobKind(
        ("trainer.kubeflow.org/v1alpha1",),
        (
            *("runtimeRef", "initializer", "trainer", "labels", "annotations", "suspend"),
            *("runtimePatches", "podTemplateOverrides", "activeDeadlineSeconds", "managedBy"),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class YamlFault:
    line: int
    message: str
    hint: str | None = None


def check(text: str) -> list[YamlFault]:
    """Everything that is wrong, by line."""
    mended, faults = repair(text)
    try:
        documents = list(yaml.compose_all(mended, yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return [*faults, YamlFault(line, f"This is not YAML: {error.problem}.")]
    except yaml.YAMLError as error:
        return [*faults, YamlFault(1, f"This is not YAML: {error}.")]
    jobs = [job for job in documents if job is not None]
    if not jobs:
        return [*faults, YamlFault(1, "There is no job in this file.")]
    found = {*faults, *(fault for job in jobs for fault in _check_job(job))}
    return sorted(found, key=lambda fault: (fault.line, fault.message))


def repair(text: str) -> tuple[str, list[YamlFault]]:
    """The text with lines indented as those around them, and which those are."""
    lines, faults = text.split("\n"), list[YamlFault]()
    for number, line in enumerate(lines):
        before = line[: len(line) - len(line.lstrip())]
        if "\t" in before:
            faults.append(YamlFault(number + 1, "Tabs cannot indent a line.", "Use spaces."))
            lines[number] = before.replace("\t", "  ") + line.lstrip()
    for _ in range(MOST_REPAIRS):
        error_line = _error_line("\n".join(lines))
        culprit = None if error_line is None else _misplaced(lines, error_line)
        if culprit is None:
            break
        number, indent = culprit
        was = len(lines[number]) - len(lines[number].lstrip())
        key = lines[number].strip().partition(":")[0][:40]
        faults.append(
            YamlFault(
                number + 1,
                f"“{key}” is indented by {was} spaces, but the lines around it by {indent}.",
                f"Indent it by {indent} spaces.",
            )
        )
        lines[number] = " " * indent + lines[number].lstrip()
    return "\n".join(lines), faults


def _error_line(text: str) -> int | None:
    """Where reading stops, from 0."""
    try:
        for _ in yaml.compose_all(text, yaml.SafeLoader):
            pass
    except yaml.MarkedYAMLError as error:
        return error.problem_mark.line if error.problem_mark else 0
    except yaml.YAMLError:
        return None
    return None


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


def _check_job(job: yaml.Node) -> Iterator[YamlFault]:
    fields = _fields(job)
    kind = _text(fields.get("kind"))
    if kind not in KINDS:
        known = ", ".join(KINDS)
        at = fields.get("kind", job)
        what = f"“{kind}” is not a training job" if kind else "The job has no “kind”"
        yield _fault(at, f"{what}; known are {known}.", did_you_mean(kind or "", list(KINDS)))
        return
    about = KINDS[kind]
    version = _text(fields.get("apiVersion"))
    if version not in about.versions:
        wanted = " or ".join(about.versions)
        at = fields.get("apiVersion", job)
        yield _fault(at, f"The “apiVersion” of a {kind} is {wanted}, not “{version or ''}”.")
    name = _fields(fields.get("metadata"))
    if not _text(name.get("name")) and not _text(name.get("generateName")):
        yield _fault(fields.get("metadata", job), "The job has no name in “metadata”.")
    yield from _unknown(fields, ("apiVersion", "kind", "metadata", "spec", "status"), "The job")
    if "spec" not in fields:
        yield _fault(job, "The job has no “spec”.")
        return
    spec = _fields(fields["spec"])
    yield from _unknown(spec, about.spec, "The “spec”")
    if about.replicas is None:
        if "runtimeRef" not in spec:
            yield _fault(fields["spec"], "A TrainJob needs a “runtimeRef”.")
        return
    if about.replicas not in spec:
        yield _fault(fields["spec"], f"A {kind} needs “{about.replicas}”.")
        return
    replicas = _fields(spec[about.replicas])
    yield from _unknown(replicas, about.roles, f"“{about.replicas}”")
    for role in about.roles:
        if role in replicas:
            yield from _check_role(role, replicas[role], about)


def _check_role(role: str, node: yaml.Node, about: _JobKind) -> Iterator[YamlFault]:
    fields = _fields(node)
    yield from _unknown(fields, _REPLICA, f"“{role}”")
    count = fields.get("replicas")
    if count is not None and not (_text(count) or "").isdigit():
        yield _fault(count, f"“replicas” of “{role}” must be a whole number.")
    elif role in ("Master", "Launcher") and count is not None and _text(count) != "1":
        yield _fault(count, f"There is one “{role}”, not {_text(count)}.")
    policy = fields.get("restartPolicy")
    if policy is not None and _text(policy) not in _POLICIES:
        hint = did_you_mean(_text(policy) or "", _POLICIES)
        yield _fault(policy, f"“restartPolicy” must be one of {', '.join(_POLICIES)}.", hint)
    template = _fields(fields.get("template"))
    yield from _unknown(template, ("metadata", "spec"), "The “template”")
    pod = _fields(template.get("spec"))
    for key, value in pod.items():
        if key in _ONLY_CONTAINER:
            yield _fault(value, f"“{key}” belongs to a container, not to the pod.", "Indent it.")
    containers = pod.get("containers")
    if not isinstance(containers, yaml.SequenceNode) or not containers.value:
        yield _fault(template.get("spec", node), f"“{role}” has no containers.")
        return
    names = [_text(_fields(item).get("name")) for item in containers.value]
    if about.container and about.container not in names:
        yield _fault(containers, f"One container of “{role}” must be called “{about.container}”.")
    for item in containers.value:
        yield from _check_container(item)


def _check_container(node: yaml.Node) -> Iterator[YamlFault]:
    fields = _fields(node)
    yield from _unknown(fields, _CONTAINER, "A container")
    image = fields.get("image")
    if image is None:
        yield _fault(node, "The container has no “image”.")
    elif not _IMAGE.fullmatch(_text(image) or ""):
        yield _fault(image, f"“{(_text(image) or '')[:80]}” is not the name of an image.")


def _unknown(fields: dict[str, Any], known: Collection[str], where: str) -> Iterator[YamlFault]:
    for key, value in fields.items():
        if key not in known:
            hint = did_you_mean(key, list(known))
            if key in _ONLY_CONTAINER:
                hint = "It belongs to a container: indent it."
            yield _fault(value, f"{where} has no property “{key[:60]}”.", hint)


def _fields(node: yaml.Node | None) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): value for key, value in node.value}


def _text(node: yaml.Node | None) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None


def _fault(node: yaml.Node, message: str, hint: str | None = None) -> YamlFault:
    return YamlFault(node.start_mark.line + 1, message, hint)
