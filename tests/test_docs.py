"""The documentation says what is true of the code: commands, settings and imports exist."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
from pathlib import Path

import pytest

from jupyterlab_convect import cli

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CONFIGURABLE = ".tag(config=True)"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]

Classes = dict[str, list[ast.ClassDef]]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks in a language, also those in list items."""
    pattern = rf"^( *)```{language}\n(.*?)^ *```$"
    found = re.findall(pattern, page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [re.sub(f"(?m)^{indent}", "", text) for indent, text in found]


@each_page
def test_the_command_line_knows_every_command(page: Path) -> None:
    for block in blocks(page, "(?:bash|sh)"):
        for line in block.splitlines():
            words = shlex.split(re.split(r" [>|] ", line)[0], comments=True)
            if words[:1] == ["convect"]:
                cli.parser_for(words[1:]).parse_args(words[1:])


@pytest.mark.parametrize("name", ["cli.md", "cli.zh.md"])
def test_the_page_of_the_command_line_has_every_option_and_no_other(name: str) -> None:
    sources = "".join(path.read_text("utf-8") for path in Path(cli.__file__).parent.glob("*.py"))
    known = set(re.findall(r'"(--[a-z-]+)"', sources))
    told = set(re.findall(r"--[a-z][a-z-]+", (DOCS / name).read_text("utf-8")))
    assert told - known == set()
    told_by_letter = set(re.findall(r'"-\w",\s*"(--[a-z-]+)"', sources))
    assert known - told - told_by_letter == set()


@pytest.fixture(scope="module")
def classes() -> Classes:
    """Every class of the package by its name, so that nothing has to be imported."""
    found: Classes = {}
    for file in (ROOT / "jupyterlab_convect").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def settings_of(name: str, classes: Classes) -> set[str]:
    """What can be configured of a class, also by what it derives from."""
    names: set[str] = set()
    for node in classes.get(name, ()):
        for line in node.body:
            if isinstance(line, ast.Assign) and ast.unparse(line.value).endswith(CONFIGURABLE):
                names |= set(map(ast.unparse, line.targets))
        names = names.union(*(settings_of(ast.unparse(base), classes) for base in node.bases))
    return names


@each_page
def test_every_setting_exists(page: Path, classes: Classes) -> None:
    text = page.read_text("utf-8")
    for owner, name in re.findall(r"\bc\.([A-Z]\w+)\.([a-z]\w*)", text):
        assert name in settings_of(owner, classes), f"c.{owner}.{name}"


@each_page
def test_every_import_exists(page: Path) -> None:
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jupyterlab_c"):
                module = importlib.import_module(node.module or "")
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_every_setting_of_jupyterlab_exists() -> None:
    schemas = [json.loads(path.read_text("utf-8")) for path in (ROOT / "schema").glob("*.json")]
    titles = {item["title"] for schema in schemas for item in schema["properties"].values()}
    titles |= {schema["title"] for schema in schemas}
    page = (DOCS / "settings.md").read_text("utf-8").partition("\n## The server\n")[0]
    rows = re.findall(r"^\| ([^|]*)\| ([^|]+) \| [^|]+ \|[^|]*\|$", page, re.MULTILINE)[2:]
    assert len(rows) > 5
    named = {name.strip() for section, names in rows for name in (section, *names.split(", "))}
    # A title may have a comma in it.
    assert named - {""} - titles - {part for title in titles for part in title.split(", ")} == set()


def test_every_page_of_the_user_guide_is_there_in_chinese() -> None:
    guide = (DOCS / "guide.md").read_text("utf-8")
    pages = re.findall(r"^([a-z][a-z-]+)$", guide, re.MULTILINE)
    assert len(pages) > 10
    assert [page for page in pages if not (DOCS / f"{page}.zh.md").exists()] == []
