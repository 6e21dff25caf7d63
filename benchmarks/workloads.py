"""Notebooks and pipelines to measure with, made on the spot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def notebook(path: Path, *cells: str, parameters: str | None = None) -> Path:
    sources = [*([parameters] if parameters else []), *cells]
    tags = [["parameters"] if parameters and not index else [] for index in range(len(sources))]
    content = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        },
        "cells": [
            {
                "id": f"c{index}",
                "cell_type": "code",
                "source": source,
                "metadata": {"tags": tags[index]} if tags[index] else {},
                "execution_count": None,
                "outputs": [],
            }
            for index, source in enumerate(sources)
        ],
    }
    path.write_text(json.dumps(content))
    return path


def trivial(folder: Path, name: str = "trivial") -> Path:
    return notebook(folder / f"{name}.ipynb", "print(x + 1)", parameters="x = 1")


def hundred_cells(folder: Path) -> Path:
    return notebook(folder / "hundred.ipynb", *(f"print({n})" for n in range(100)))


def large_output(folder: Path) -> Path:
    cells = ["print('0123456789' * 100_000)"] * 5
    return notebook(folder / "large.ipynb", *cells)


def many_files(folder: Path, count: int, size: int) -> None:
    """Data of `size` bytes together, half of them in ten large files."""
    small = b"0" * (size // 2 // (count - 10))
    for number in range(count - 10):
        place = folder / "data" / str(number % 50)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.csv").write_bytes(small)
    for number in range(10):
        (folder / "data" / f"{number}.bin").write_bytes(b"0" * (size // 20))


def pipeline(path: Path, nodes: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"convect": 1, "name": path.stem, "nodes": nodes}))
    return path


def independent(folder: Path, count: int, *cells: str) -> Path:
    """A pipeline of `count` notebooks that do not wait for each other."""
    nodes = {}
    for number in range(count):
        notebook(folder / f"part{number}.ipynb", *cells)
        nodes[f"part{number}"] = {"kind": "notebook", "path": f"part{number}.ipynb"}
    return pipeline(folder / "independent.pipeline", nodes)


def elyra(folder: Path, count: int) -> Path:
    """The same notebooks as `independent` as an Elyra pipeline."""
    nodes = [
        {
            "id": f"part{number}",
            "type": "execution_node",
            "op": "execute-notebook-node",
            "app_data": {
                "component_parameters": {
                    "filename": f"part{number}.ipynb",
                    "runtime_image": "continuumio/anaconda3:2024.02-1",
                    "dependencies": [],
                    "outputs": [],
                    "env_vars": [],
                    "include_subdirectories": False,
                },
                "label": f"part{number}",
                "ui_data": {"label": f"part{number}", "x_pos": 0, "y_pos": 0},
            },
            "inputs": [{"id": "inPort", "app_data": {}}],
            "outputs": [{"id": "outPort", "app_data": {}}],
        }
        for number in range(count)
    ]
    content = {
        "doc_type": "pipeline",
        "version": "3.0",
        "id": "bench",
        "primary_pipeline": "primary",
        "pipelines": [
            {
                "id": "primary",
                "nodes": nodes,
                "app_data": {
                    "version": 8,
                    "runtime_type": "",
                    "properties": {"name": "bench", "runtime": "Generic"},
                    "ui_data": {"comments": []},
                },
                "runtime_ref": "",
            }
        ],
        "schemas": [],
    }
    path = folder / "elyra.pipeline"
    path.write_text(json.dumps(content))
    return path


def chain(count: int) -> dict[str, Any]:
    """A document of `count` commands in rows of ten, each waiting for two of the row before."""
    nodes: dict[str, Any] = {}
    for number in range(count):
        node: dict[str, Any] = {"kind": "command", "command": ["true"]}
        if number >= 10:
            neighbour = number - number % 10 - 10 + (number + 1) % 10
            node["after"] = [f"n{number - 10}", f"n{neighbour}"]
        nodes[f"n{number}"] = node
    return {"convect": 1, "name": "chain", "nodes": nodes}
