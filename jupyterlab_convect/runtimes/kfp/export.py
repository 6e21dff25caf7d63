"""A plan as a file that Kubeflow takes: IR as YAML, and the platform spec as a second document."""

from __future__ import annotations

from pathlib import Path

import yaml

from ...pipeline.plan import Plan
from ...pipeline.problems import Problem
from ...pipeline.resolve import raise_first_error
from .compile import Compiled, examine
from .executor import TaskDefaults
from .payload import ProjectFiles


def export_plan(
    plan: Plan, root: Path, defaults: TaskDefaults | None = None
) -> tuple[str, list[Problem]]:
    """The text, and what there is to know about it. Refused for what Kubeflow cannot do."""
    compiled, problems = examine(plan, ProjectFiles(root), defaults or TaskDefaults())
    raise_first_error(problems)
    assert compiled is not None
    return as_yaml(compiled), problems


def as_yaml(compiled: Compiled) -> str:
    documents = [compiled.pipeline_spec]
    documents += [compiled.platform_spec] if compiled.platform_spec else []
    text: str = yaml.safe_dump_all(documents, allow_unicode=True, width=1 << 20)
    return text
