"""Expressions refer and never compute; one alone keeps its type."""

from __future__ import annotations

from typing import Any

import pytest

from jupyterlab_convect.errors import ConvectError, Refused
from jupyterlab_convect.pipeline.expressions import (
    Reference,
    bind,
    parse,
    references,
)

OUTPUTS = {"prepare": {"rows": [1, 2], "model path": "m.bin", "n": 3}}
RUN = {"id": "20261116-1", "name": "churn"}


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        ("plain", "plain"),
        (3, 3),
        ("${{ nodes.prepare.outputs.rows }}", [1, 2]),
        ("${{nodes.prepare.outputs.n}}", 3),
        ("n=${{ nodes.prepare.outputs.n }}", "n=3"),
        ("${{ nodes.prepare.outputs.model path }}", "m.bin"),
        ("${{ run.id }}/${{ run.name }}", "20261116-1/churn"),
        ({"a": ["${{ run.id }}", {"b": "${{ nodes.prepare.outputs.rows }}"}]}, None),
    ],
)
def test_values_are_bound_wherever_they_are(value: Any, bound: Any) -> None:
    expected = {"a": ["20261116-1", {"b": [1, 2]}]} if bound is None else bound
    assert bind(value, OUTPUTS, RUN) == expected


def test_a_bound_value_is_not_looked_into_again() -> None:
    outputs = {"a": {"x": "${{ run.id }}"}}
    assert bind("${{ nodes.a.outputs.x }}!", outputs, RUN) == "${{ run.id }}!"


def test_a_missing_output_is_named() -> None:
    with pytest.raises(Refused, match="“prepare” produced no output “cols”"):
        bind("${{ nodes.prepare.outputs.cols }}", OUTPUTS, RUN)


@pytest.mark.parametrize(
    "text",
    [
        "${{",
        "${{ parameters.x",
        "${{ }}",
        "${{ x }}",
        "${{ run.secret }}",
        "${{ run }}",
        "${{ parameters. }}",
        "${{ nodes.a }}",
        "${{ nodes.a.outputs }}",
        "${{ nodes..outputs.x }}",
        "${{ ${{ run.id }} }}",
        "${{ __import__('os') }}",
        "${{ parameters.x + 1 }} ${{",
    ],
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ConvectError) as caught:
        parse(text)
    assert caught.value.code == "bad-expression"


def test_references_are_found_however_deep() -> None:
    value = {"a": ["x ${{ parameters.p }}", {"b": "${{ nodes.训-1.outputs.k }}"}]}
    assert list(references(value)) == [
        Reference("parameters", "p"),
        Reference("nodes", "k", "训-1"),
    ]
