"""The map of the code is true: who may import whom, and how a run flows."""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "jupyterlab_convect"
MAP, FLOW = ROOT / "docs" / "architecture.md", ROOT / "docs" / "how-a-run-flows.md"
AS_WRITTEN = "types.py"
"""The document as it is written, generated, in which things are called as in the plan."""
TRANSLATORS = ("routes", "cli")
"""Folders whose modules are called after what they translate."""
SAME_JOB = {"api", "base", "checks", "components", "model", "runtime", "store"}
"""What several folders have: an HTTP client, a contract, checks before a run, a model, a store."""
NAME = re.compile(r"`([\w./]+):([\w.]+)`")


@functools.cache
def parsed(file: Path) -> ast.Module:
    """Python 3.11 cannot parse while it destroys what earlier tests left, if that logs."""
    gc.disable()
    try:
        return ast.parse(file.read_bytes())
    finally:
        gc.enable()


def rules() -> dict[str, set[str]]:
    """What the modules of each folder may import beside their own, as the map says."""
    text = MAP.read_text("utf-8")
    shared = re.search(r"(?m)^Everything may import (.+?):", text)
    assert shared is not None
    for_all = set(re.findall(r"`(\w+)`", shared[1]))
    rows = re.findall(r"(?m)^\| `(\w+)/` \|[^|]*\| ([^|]*) \|$", text.partition("In `src/`")[0])
    return {
        folder: {*re.findall(r"`([\w.]+)`", allowed), *for_all, folder}
        for folder, allowed in rows
        if "all above" not in allowed
    }


def imported(file: Path) -> Iterator[str]:
    """The modules of ours that a module imports while it runs, by their names in the package."""
    tree = parsed(file)
    ignored = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    package = file.relative_to(ROOT).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in ignored:
            above = package[: len(package) - node.level + 1] if node.level else ()
            parts = (*above, *filter(None, (node.module or "").split(".")))
            if parts[:1] == (PACKAGE.name,):
                for name in (alias.name for alias in node.names):
                    whole = (*parts, name)
                    is_module = ROOT.joinpath(*whole).with_suffix(".py").exists()
                    is_folder = ROOT.joinpath(*whole).is_dir()
                    yield ".".join((whole if is_module or is_folder else parts)[1:])


def test_every_module_imports_only_what_its_folder_may():
    found = rules()
    assert {
        "pipeline",
        "catalog",
        "runner",
        "runs",
        "schedules",
        "services",
        "runtimes",
        "transfer",
    } <= found.keys()
    forbidden = {
        f"{file.relative_to(PACKAGE)} imports {module}"
        for folder, allowed in found.items()
        for file in (PACKAGE / folder).rglob("*.py")
        for module in imported(file)
        if module and not any(f"{module}.".startswith(f"{each}.") for each in allowed)
    }
    assert forbidden == set()


def same(names: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    """The names that stand for several things, with the modules that have them."""
    found: dict[str, list[str]] = {}
    for name, file in names:
        found.setdefault(name, []).append(file.relative_to(PACKAGE).as_posix())
    return {name: files for name, files in found.items() if len(files) > 1}


def test_no_two_classes_have_the_same_name():
    files = (file for file in PACKAGE.rglob("*.py") if file.name != AS_WRITTEN)
    classes = (
        (node.name, file)
        for file in files
        for node in parsed(file).body
        if isinstance(node, ast.ClassDef)
    )
    assert same(classes) == {}


def test_modules_of_the_same_name_do_the_same_job():
    files = (file for file in PACKAGE.rglob("*.py") if not file.stem.startswith("__"))
    modules = ((file.stem, file) for file in files if file.parent.name not in TRANSLATORS)
    assert {name: each for name, each in same(modules).items() if name not in SAME_JOB} == {}


def named(suffix: str) -> list[tuple[str, str]]:
    found = NAME.findall(FLOW.read_text("utf-8"))
    return [pair for pair in found if pair[0].endswith((".ts", ".tsx")) == (suffix == "ts")]


def test_every_python_name_in_how_a_run_flows_exists():
    names = named("py")
    assert len(names) > 60
    missing = []
    for module, name in names:
        try:
            value = importlib.import_module(f"{PACKAGE.name}.{module}")
        except ModuleNotFoundError:
            value = None
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is None:
            missing.append(f"{module}:{name}")
    assert missing == []


def test_every_typescript_name_in_how_a_run_flows_exists():
    if not (ROOT / "src").exists():
        pytest.skip("the sources of the front end are not here")
    names = named("ts")
    assert len(names) > 15
    missing = []
    for file, name in names:
        path = ROOT / "src" / file
        text = path.read_text("utf-8") if path.exists() else ""
        if not all(re.search(rf"\b{part}\b", text) for part in name.split(".")):
            missing.append(f"{file}:{name}")
    assert missing == []
