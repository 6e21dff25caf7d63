"""Ways to sign in to a real Kubeflow Pipelines: through the cluster, and through an nginx that asks
for a password, a token or a cookie before it."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nginx
import pytest

from jupyterlab_convect.runs.model import new_id
from jupyterlab_convect.runtimes.kfp.check import Way, check
from jupyterlab_convect.runtimes.kubernetes.api import Api
from jupyterlab_convect.runtimes.kubernetes.api import connect as connect_to_cluster

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "jupyterlab-convect"
KEYS = {
    "token": nginx.TOKEN,
    "password": nginx.PASSWORD,
    "cookie": f"{nginx.COOKIE}={nginx.SESSION}",
}


@pytest.fixture
def kubeconfig(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    import places

    monkeypatch.setenv("KUBECONFIG", str(places.KUBECONFIG))
    return str(places.KUBECONFIG)


@pytest.fixture(params=["dex", "oauth2-proxy"])
def guarded(request: pytest.FixtureRequest, endpoint: str, tmp_path: Path) -> Iterator[str]:
    program = nginx.program(CACHE)
    if program is None:
        pytest.skip("nginx cannot be had here")
    folder = tmp_path / "nginx"
    folder.mkdir()
    with nginx.before(endpoint, request.param, program, folder) as address:
        yield address


@pytest.fixture
def secret(kubeconfig: str) -> Iterator[str]:
    """The name of a Secret in the cluster with all that opens the door."""
    api = Api(connect_to_cluster(config_file=kubeconfig))
    path, name = api.path("secrets"), f"kfp-{new_id()}"
    data = {key: base64.b64encode(text.encode()).decode() for key, text in KEYS.items()}
    metadata = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    api.create(path, {**metadata, "data": data})
    yield name
    api.delete(f"{path}/{name}")


def test_through_the_cluster_itself(kubeconfig: str) -> None:
    steps = check(Way("", "kubeconfig", server_namespace="kubeflow"))
    assert [(step.step, step.ok) for step in steps] == [
        ("address", True),
        ("sign-in", True),
        ("namespace", True),
    ]
    assert steps[1].message == "Signed in to the cluster."
    (failed,) = check(Way("", "kubeconfig", server_namespace="default"))
    assert not failed.ok
    assert "Traceback" not in failed.message


async def test_with_what_a_secret_of_the_cluster_holds(
    guarded: str,
    secret: str,
    make_lab: Callable[..., Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    said = ""
    for key in KEYS:
        user = nginx.USER if key == "password" else ""
        way = Way(guarded, user=user, secret=f"{secret}/{key}")
        steps = check(way)
        assert [step.ok for step in steps] == [True, True, True], steps
        said += "".join(step.message for step in steps)
    *_, wrong = check(Way(guarded, secret=f"{secret}/none"))
    assert wrong.message == f"The Secret {secret} has no key none."
    lab = make_lab(tmp_path, endpoint=guarded, secret=f"{secret}/token", cluster="never")
    lab.write("a.py", "print('behind the door')")
    run, state = await lab.finish({"a": {"kind": "script", "path": "a.py"}})
    assert state.state == "succeeded", state.steps["a"].reason
    assert (lab.result(run, "a") / "log.txt").read_text() == "behind the door\n"
    said += caplog.text + "".join(
        path.read_text(errors="replace")
        for path in lab.store.run_folder(run.id).rglob("*")
        if path.is_file()
    )
    await lab.close()
    assert not any(text in said for text in (*KEYS.values(), nginx.SESSION))
