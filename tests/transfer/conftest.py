"""A real S3 server, for the tests that need one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "testbed"))

import s3

from jupyterlab_convect.transfer.s3 import ObjectStore


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Server]:
    if not s3.program().exists():
        pytest.skip("There is no S3 server here: `python tests/testbed/s3.py` builds one.")
    with s3.serving(tmp_path_factory.mktemp("s3") / "buckets") as server:
        yield server


@pytest.fixture
def store(
    s3_server: s3.Server, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> ObjectStore:
    """A bucket of its own for each test; parts are small, so that files have several."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    name = f"b{abs(hash(request.node.nodeid))}"
    s3_server.make_bucket(name)
    return make_store(s3_server, name)


def make_store(server: s3.Server, bucket: str, **more: Any) -> ObjectStore:
    options = {"prefix": "team/ana", "part_size": 1 << 20, **more}
    return ObjectStore(endpoint=server.endpoint, bucket=bucket, **options)
