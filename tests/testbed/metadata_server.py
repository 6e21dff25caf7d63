"""ML Metadata over gRPC, with the store of PyPI's ml-metadata.

Usage: python metadata_server.py HOST:PORT FILE
"""

from __future__ import annotations

import sys
import threading
from concurrent import futures
from typing import Any

import grpc
from ml_metadata.metadata_store.pywrap.metadata_store_extension import metadata_store as store
from ml_metadata.proto import metadata_store_pb2 as proto
from ml_metadata.proto import metadata_store_service_pb2 as service

SERVICE = service.DESCRIPTOR.services_by_name["MetadataStoreService"]
CODES = {code.value[0]: code for code in grpc.StatusCode}


def main(address: str, path: str) -> None:
    config = proto.ConnectionConfig()
    config.sqlite.filename_uri = path
    config.sqlite.connection_mode = proto.SqliteMetadataSourceConfig.READWRITE_OPENCREATE
    options = proto.MigrationOptions().SerializeToString()
    database = store.CreateMetadataStore(config.SerializeToString(), options)
    alone = threading.Lock()
    handlers = {method.name: handler(method, database, alone) for method in SERVICE.methods}
    server = grpc.server(futures.ThreadPoolExecutor(8))
    generic = grpc.method_handlers_generic_handler(SERVICE.full_name, handlers)
    server.add_generic_rpc_handlers((generic,))
    if not server.add_insecure_port(address):
        raise SystemExit(f"It cannot listen on {address}.")
    server.start()
    server.wait_for_termination()


def handler(method: Any, database: Any, alone: threading.Lock) -> Any:
    function = getattr(store, method.name, None)
    reply = getattr(service, method.output_type.name)

    def call(request: Any, context: Any) -> Any:
        if function is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, method.name)
        with alone:
            answer, message, code = function(database, request.SerializeToString())
        if code:
            text = message.decode() if isinstance(message, bytes) else message
            context.abort(CODES[code], text)
        return reply.FromString(answer)

    return grpc.unary_unary_rpc_method_handler(
        call,
        request_deserializer=getattr(service, method.input_type.name).FromString,
        response_serializer=reply.SerializeToString,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
