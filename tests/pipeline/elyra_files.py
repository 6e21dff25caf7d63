"""Pipelines in Elyra's format, and their import with the checks that hold for every one."""

import json
from pathlib import Path

from jupyterlab_convect.pipeline.document import dumps, parse
from jupyterlab_convect.pipeline.elyra import import_elyra
from jupyterlab_convect.pipeline.validate import validate

FILES = Path(__file__).parents[1] / "golden" / "elyra"


def load(name):
    """One of our own files in Elyra's format."""
    return json.loads((FILES / f"{name}.pipeline").read_bytes())


def node(node_id, parameters=None, *, op="execute-notebook-node", after=(), **app_data):
    parameters = {"filename": f"{node_id}.ipynb"} if parameters is None else parameters
    return {
        "id": node_id,
        "type": "execution_node",
        "op": op,
        "app_data": {"component_parameters": parameters, "ui_data": {}, **app_data},
        "inputs": [{"id": "inPort", "links": [link(source) for source in after]}],
        "outputs": [{"id": "outPort"}],
    }


def link(source, port="outPort"):
    return {"id": f"link from {source}", "node_id_ref": source, "port_id_ref": port}


def pipeline(*nodes, version=8, comments=(), flows=(), **properties):
    main = {
        "id": "main",
        "nodes": list(nodes),
        "app_data": {
            "version": version,
            "properties": {"name": "test", **properties},
            "ui_data": {"comments": list(comments)},
        },
    }
    return {
        "doc_type": "pipeline",
        "version": "3.0",
        "id": "a pipeline",
        "primary_pipeline": "main",
        "pipelines": [main, *flows],
    }


def supernode(node_id, flow):
    return {"id": node_id, "type": "super_node", "subflow_ref": {"pipeline_id_ref": flow}}


def flow(flow_id, *nodes):
    return {"id": flow_id, "nodes": list(nodes)}


def convert(value, path=None):
    """The document and the problems, after the checks that hold for every import."""
    text = json.dumps(value)
    document, problems = import_elyra(text, path=path)
    assert import_elyra(text, path=path) == (document, problems)
    written = dumps(document)
    assert dumps(parse(written)) == written
    shape = [problem for problem in validate(document) if problem.code in ("wrong-type", "unknown")]
    assert shape == []
    return document, problems


def convert_node(parameters, version=8, **others):
    document, problems = convert(pipeline(node("a", parameters, **others), version=version))
    (found,) = document["nodes"].values()
    return found, problems


def codes(problems):
    return [problem.code for problem in problems]
