"""Messages of a kernel are read as jupyter_client reads them, and only the kernel's own are."""

from __future__ import annotations

import json

import pytest
from jupyter_client.session import Session

from jupyterlab_convect.runner.kernel_connection import read_message


@pytest.fixture
def session() -> Session:
    return Session(key=b"secret")


def parts_of(session: Session, message: dict[str, object]) -> list[bytes]:
    return session.feed_identities(session.serialize(message))[1]


@pytest.mark.parametrize("key", [b"secret", b""])
def test_a_message_is_what_jupyter_client_reads(key: bytes) -> None:
    session = Session(key=key)
    parent = session.msg("execute_request", {"code": "1"})["header"]
    message = session.msg("stream", {"name": "stdout", "text": "数"}, parent=parent)
    parts = [*parts_of(session, message), b"\x00\xff"]
    read, whole = read_message(session, parts), session.deserialize(parts)
    assert bytes(read.pop("buffers")[0]) == b"\x00\xff" == bytes(whole.pop("buffers")[0])
    assert isinstance(read["header"]["date"], str)
    for header in (read["header"], read["parent_header"], whole["header"], whole["parent_header"]):
        header.pop("date")
    assert read == whole


def test_a_message_of_somebody_else_is_refused(session: Session) -> None:
    parts = parts_of(Session(key=b"other"), session.msg("status", {"execution_state": "idle"}))
    with pytest.raises(ValueError, match="invalid signature"):
        read_message(session, parts)


def test_a_kernel_of_an_older_protocol_is_understood(session: Session) -> None:
    message = session.msg("stream", {"name": "stdout", "data": "told"})
    signature, header, *others = parts_of(session, message)
    header = json.dumps({**json.loads(header), "version": "4.1"}).encode()
    signature = session.sign([header, *others[:3]])
    read = read_message(session, [signature, header, *others])
    assert read["content"] == {"name": "stdout", "text": "told"}
