"""What ML Metadata holds of the tasks of a run: values and artifacts, as JSON.

Usage: python metadata_read.py HOST:PORT RUN
"""

from __future__ import annotations

import json
import sys
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from ml_metadata.proto import metadata_store_service_pb2 as service
from ml_metadata.proto import metadata_store_service_pb2_grpc as stubs


def main(address: str, run: str) -> None:
    store = stubs.MetadataStoreServiceStub(grpc.insecure_channel(address))
    wanted = service.GetContextByTypeAndNameRequest(
        type_name="system.PipelineRun", context_name=run
    )
    context = store.GetContextByTypeAndName(wanted).context
    executions = store.GetExecutionsByContext(
        service.GetExecutionsByContextRequest(context_id=context.id)
    ).executions
    artifacts = {
        artifact.id: artifact
        for artifact in store.GetArtifactsByContext(
            service.GetArtifactsByContextRequest(context_id=context.id)
        ).artifacts
    }
    events = store.GetEventsByExecutionIDs(
        service.GetEventsByExecutionIDsRequest(execution_ids=[each.id for each in executions])
    ).events
    tasks: dict[int, dict[str, Any]] = {
        each.id: {
            "task": each.custom_properties["task_name"].string_value,
            "outputs": MessageToDict(each.custom_properties["outputs"].struct_value),
            "given": {},
            "left": {},
        }
        for each in executions
    }
    for event in events:
        artifact = artifacts.get(event.artifact_id)
        if artifact is not None:
            kind = "left" if event.type == event.OUTPUT else "given"
            facts = {name: _value(each) for name, each in artifact.custom_properties.items()}
            told = {"uri": artifact.uri, "facts": facts}
            tasks[event.execution_id][kind][event.path.steps[0].key] = told
    json.dump(list(tasks.values()), sys.stdout)


def _value(told: Any) -> Any:
    kind = told.WhichOneof("value")
    return MessageToDict(told.struct_value) if kind == "struct_value" else getattr(told, kind)


if __name__ == "__main__":
    main(*sys.argv[1:3])
