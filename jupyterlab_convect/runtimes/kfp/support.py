"""What Kubeflow Pipelines makes of each property of a document; a test holds it to this."""

from __future__ import annotations

from typing import Literal, NamedTuple

Support = Literal["honoured", "approximated", "refused", "not needed"]


class Property(NamedTuple):
    support: Support
    how: str


PROPERTIES: dict[str, Property] = {
    "convect": Property("not needed", "the version of the document"),
    "name": Property("honoured", "the name of the pipeline, with letters that Kubeflow takes"),
    "description": Property("not needed", "for readers of the document"),
    "parameters": Property("approximated", "bound to their values when the pipeline is made"),
    "defaults": Property("honoured", "merged into every node"),
    "nodes": Property("honoured", "tasks and DAGs"),
    "outputs": Property("honoured", "where the pipeline is a node of another"),
    "components": Property("honoured", "the definitions of component nodes"),
    "comments": Property("not needed", "for readers of the document"),
    "layout": Property("not needed", "for the editor"),
    "extra": Property("not needed", "for other programs"),
    "node.kind": Property("honoured", "steps run our runner, components run as themselves"),
    "node.name": Property("honoured", "the name of the task that Kubeflow shows"),
    "node.description": Property("not needed", "for readers of the document"),
    "node.path": Property(
        "honoured",
        "a part of the pipeline, up to 120 kB with the runner, or through an object store",
    ),
    "node.command": Property("honoured", "executed by our runner"),
    "node.component": Property("honoured", "its image and command, with Kubeflow's placeholders"),
    "node.source": Property("not needed", "where the component came from"),
    "node.inputs": Property("honoured", "values, or outputs of other nodes"),
    "node.members": Property("honoured", "tasks of one DAG"),
    "node.after": Property("honoured", "dependent tasks"),
    "node.when": Property("honoured", "a condition in CEL; the state of a node is refused"),
    "node.for_each.name": Property("honoured", "the input that holds the item"),
    "node.for_each.in": Property("honoured", "a list, or an output of a step that is one"),
    "node.for_each.parallel": Property("honoured", "the limit of the iterator"),
    "node.run_if": Property(
        "approximated",
        "“always” is an exit task, which starts when everything else has ended; "
        "“failed” is refused",
    ),
    "node.disabled": Property("honoured", "a condition that is never true"),
    "node.parameters": Property("honoured", "values, references and texts with references"),
    "node.image": Property("honoured", "the image of the task"),
    "node.pull_policy": Property("honoured", "of the pod"),
    "node.kernel": Property("honoured", "by our runner"),
    "node.env": Property("honoured", "by our runner; of a component, of its container"),
    "node.secrets.env": Property("honoured", "a variable from a Kubernetes Secret"),
    "node.secrets.name": Property("honoured", "the Kubernetes Secret"),
    "node.secrets.key": Property("honoured", "its key"),
    "node.resources.cpu": Property("honoured", "request and limit"),
    "node.resources.memory": Property("honoured", "request and limit"),
    "node.resources.gpu.count": Property("honoured", "a whole number"),
    "node.resources.gpu.type": Property("honoured", "by the label of the nodes, as it is written"),
    "node.resources.gpu.resource": Property("honoured", "the accelerator"),
    "node.resources.shared_memory": Property("honoured", "an empty directory in memory"),
    "node.resources.ephemeral_storage": Property("refused", "Kubeflow has no such field"),
    "node.volumes.claim": Property("honoured", "each claim once per node"),
    "node.volumes.path": Property("honoured", "where it is mounted"),
    "node.volumes.sub_path": Property("refused", "servers up to 2.14 do not take the field"),
    "node.volumes.read_only": Property("refused", "Kubeflow has no such field"),
    "node.volumes.size": Property(
        "honoured", "a claim that is made before the first step and deleted after the last"
    ),
    "node.volumes.mode": Property("honoured", "of the claim that is made"),
    "node.volumes.storage_class": Property(
        "approximated", "of the claim that is made; “standard” where none is written"
    ),
    "node.dependencies": Property("honoured", "a part of the pipeline, as its file is"),
    "node.outputs": Property(
        "honoured", "what a step makes is an artifact that the steps after it get"
    ),
    "node.metrics": Property("honoured", "a metrics artifact"),
    "node.retries.count": Property("honoured", "the retry policy"),
    "node.retries.delay": Property("honoured", "its backoff, in whole seconds"),
    "node.retries.factor": Property("honoured", "its backoff; a whole number"),
    "node.timeout": Property("honoured", "by our runner; of a component, the deadline of its pod"),
    "node.cache": Property(
        "approximated",
        "a run from here reuses results up to the first node that is executed; "
        "an exported pipeline has the cache of Kubeflow, by its own key: image, command and "
        "inputs; not for components with variables, which that key leaves out",
    ),
    "node.working_folder": Property("honoured", "“shared” is refused"),
    "node.distributed": Property("refused", "a task of Kubeflow is one pod"),
    "node.dask": Property("refused", "Kubeflow starts steps by itself, so nobody makes a cluster"),
    "node.kubernetes.node_selector": Property("honoured", "of the pod"),
    "node.kubernetes.tolerations": Property("honoured", "of the pod"),
    "node.kubernetes.labels": Property("honoured", "of the pod"),
    "node.kubernetes.annotations": Property("honoured", "of the pod"),
    "node.kubernetes.priority": Property("refused", "Kubeflow has no such field"),
    "node.kubernetes.service_account": Property("refused", "Kubeflow has one per run"),
    "node.kubernetes.pull_secrets": Property("honoured", "of the pod"),
    "node.kubernetes.resources": Property("refused", "Kubeflow has no such field"),
    "node.extra": Property("not needed", "for other programs"),
}


def table() -> str:
    """The properties in Markdown, as the documentation has them."""
    rows = [f"| `{name}` | {item.support} | {item.how} |" for name, item in PROPERTIES.items()]
    return "\n".join(("| property | support | how |", "|---|---|---|", *rows, ""))
