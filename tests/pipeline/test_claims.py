"""Volume claims that a run makes for itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyterlab_convect.errors import Refused
from jupyterlab_convect.pipeline.claims import run_claims
from jupyterlab_convect.pipeline.plan import Plan, Volume
from jupyterlab_convect.pipeline.resolve import resolve
from jupyterlab_convect.pipeline.validate import validate

SCRATCH = {"claim": "scratch", "path": "/scratch", "size": "2048Mi", "mode": "ReadWriteMany"}


def command(*volumes: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "command", "command": ["true"], "volumes": list(volumes)}


def document(**nodes: Any) -> Any:
    return {"convect": 1, "nodes": nodes}


def plan(root: Path, **nodes: Any) -> Plan:
    return resolve(document(**nodes), root=root)


def test_whoever_names_a_claim_that_the_run_makes_shares_it(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        a=command(SCRATCH),
        b=command({"claim": "scratch", "path": "/in", "read_only": True}),
        c=command({"claim": "data", "path": "/data"}),
    )
    made = Volume("scratch", "/scratch", size="2Gi", mode="ReadWriteMany")
    assert found.step("a").volumes == (made,)
    assert found.step("b").volumes == (
        Volume("scratch", "/in", read_only=True, size="2Gi", mode="ReadWriteMany"),
    )
    assert found.step("c").volumes == (Volume("data", "/data"),)
    assert run_claims(found.steps) == {"scratch": made}


def test_a_claim_cannot_be_made_in_two_ways(tmp_path: Path) -> None:
    asked = document(a=command(SCRATCH), b=command({**SCRATCH, "size": "1Gi"}))
    (problem,) = validate(asked)
    assert problem.message == "The volume claim “scratch” is made in two different ways."
    assert (problem.node, problem.path) == ("b", ("volumes", 0, "size"))
    same = document(a=command(SCRATCH), b=command({**SCRATCH, "size": "2Gi"}))
    assert validate(same) == []


def test_settings_of_a_run_cannot_make_it_otherwise(tmp_path: Path) -> None:
    other = {**SCRATCH, "path": "/other", "size": "1Gi"}
    with pytest.raises(Refused, match="is made in two different ways"):
        resolve(document(a=command(SCRATCH)), root=tmp_path, settings={"volumes": [other]})


@pytest.mark.parametrize(
    ("volume", "severity", "words", "path"),
    [
        ({"size": 0}, "error", "A volume needs a size above 0.", "size"),
        ({"size": "much"}, "error", "“much” is not a quantity.", "size"),
        ({"mode": "ReadWriteMany"}, "warning", "“mode” means nothing", "mode"),
        ({"size": "1Gi", "storage_class": "A b"}, "error", "storage class", "storage_class"),
    ],
)
def test_what_is_wrong_with_a_claim_is_said(
    volume: Any, severity: str, words: str, path: str
) -> None:
    (problem,) = validate(document(a=command({"claim": "x", "path": "/x", **volume})))
    assert problem.severity == severity
    assert words in problem.message
    assert problem.path == ("volumes", 0, path)
