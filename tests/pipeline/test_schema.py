"""One source of truth: what is generated from it is fresh, and our checker reads it rightly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema

from jupyterlab_convect.pipeline.schema import SOURCE

PROJECT = Path(__file__).parent.parent.parent


def test_everything_generated_is_fresh() -> None:
    result = subprocess.run(
        [sys.executable, PROJECT / "scripts/generate_schema.py", "--check"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"{result.stdout}run scripts/generate_schema.py"


def test_the_schema_is_json_schema() -> None:
    schema = json.loads(SOURCE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_golden_pipeline_fits_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SOURCE.read_text()))
    for path in (PROJECT / "tests/golden").glob("*.pipeline"):
        validator.validate(json.loads(path.read_text()))
