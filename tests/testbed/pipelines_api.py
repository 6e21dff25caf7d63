"""Go code of two modules of Kubeflow Pipelines, from the descriptors in its Python packages.

Usage: python pipelines_api.py PROTOC-GEN-GO FOLDER

The archive of a Go module leaves out the modules nested in it, and these two are not to be had
by themselves in the version that fits.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.compiler import plugin_pb2
from kfp.kubernetes import kubernetes_executor_config_pb2
from kfp.pipeline_spec import pipeline_spec_pb2

PREFIX = "github.com/kubeflow/pipelines/"


def main(program: str, target: str) -> None:
    for module in (pipeline_spec_pb2, kubernetes_executor_config_pb2):
        files = with_dependencies(module.DESCRIPTOR, {})
        request = plugin_pb2.CodeGeneratorRequest(
            file_to_generate=[module.DESCRIPTOR.name], proto_file=files.values()
        )
        sent = request.SerializeToString()
        done = subprocess.run([program], input=sent, stdout=subprocess.PIPE, check=True)
        answer = plugin_pb2.CodeGeneratorResponse.FromString(done.stdout)
        if answer.error:
            raise SystemExit(answer.error)
        for file in answer.file:
            path = Path(target, file.name.removeprefix(PREFIX))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.content)


def with_dependencies(file: Any, found: dict[str, Any]) -> dict[str, Any]:
    for dependency in file.dependencies:
        with_dependencies(dependency, found)
    if file.name not in found:
        found[file.name] = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(found[file.name])
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
