from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyterlab_convect.catalog.model import Component
from jupyterlab_convect.catalog.read import read

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus" / "components"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real specs, which lies beside the project where there is one."""
    if not CORPUS.is_dir():
        pytest.skip("the folder with real component specs is not beside the project")
    return CORPUS


@pytest.fixture
def component() -> Callable[..., Component]:
    """Makes a v1 component from its inputs, outputs and arguments."""

    def make(
        args: list[Any],
        inputs: list[dict[str, Any]] | None = None,
        outputs: list[dict[str, Any]] | None = None,
        **container: Any,
    ) -> Component:
        spec = {
            "name": "Example",
            "inputs": inputs or [],
            "outputs": outputs or [],
            "implementation": {"container": {"image": "alpine", "args": args, **container}},
        }
        reading = read(yaml.safe_dump(spec).encode(), "example.yaml")
        if reading.errors:
            raise reading.errors[0]
        return reading.components[0]

    return make
