"""Reads an exported pipeline with Kubeflow's own SDK and definitions, and compiles it again.

`<environment with the SDK>/bin/python check_with_sdk.py FILE`
"""

import json
import sys
import tempfile
from pathlib import Path

import yaml
from google.protobuf import json_format
from kfp import compiler, components
from kfp.kubernetes import kubernetes_executor_config_pb2 as kubernetes
from kfp.pipeline_spec import pipeline_spec_pb2 as ir

path = Path(sys.argv[1])
pipeline, *others = yaml.safe_load_all(path.read_text("utf-8"))
spec = json_format.ParseDict(pipeline, ir.PipelineSpec())
for other in others:
    executors = other["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    for settings in executors.values():
        json_format.ParseDict(settings, kubernetes.KubernetesExecutorConfig())
deployment = json_format.ParseDict(pipeline["deploymentSpec"], ir.PipelineDeploymentConfig())
labels = {item.executor_label for item in spec.components.values() if item.executor_label}
assert labels == set(deployment.executors), labels ^ set(deployment.executors)

loaded = components.load_component_from_file(str(path))
assert loaded.pipeline_spec == spec
with tempfile.TemporaryDirectory() as folder:
    again = Path(folder, "again.yaml")
    compiler.Compiler().compile(loaded, str(again))
    first, *_ = yaml.safe_load_all(again.read_text("utf-8"))
written = json_format.ParseDict(first, ir.PipelineSpec())
for each in (written, spec):
    each.sdk_version = ""
print(json.dumps({"same": written == spec, "tasks": len(spec.components)}))
