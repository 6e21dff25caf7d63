"""The documentation, built by Sphinx in English and in Chinese (`scripts/docs.py`).

Every page is a Markdown file of its name. Where there is one called `<page>.zh.md`, it takes
the place of the page in the Chinese build; the others stay English.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
CHINESE = "zh_CN"
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)

project = "jupyterlab-convect"
project_copyright = "The jupyterlab-convect contributors"
language = "en"
extensions = ["myst_parser"]
exclude_patterns = ["*.zh.md"]
myst_heading_anchors = 3
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = project
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navbar_end": ["language", "theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}


def setup(app: Sphinx) -> None:
    app.connect("source-read", take_translation)
    app.connect("source-read", list_other_pages)


def take_translation(app: Sphinx, page: str, content: list[str]) -> None:
    if (file := file_of(app, page)) != HERE / f"{page}.md":
        app.env.note_dependency(str(file))
        content[0] = file.read_text("utf-8")


def list_other_pages(app: Sphinx, page: str, content: list[str]) -> None:
    """Pages that no other one lists are found under Project, whoever has added them."""
    if page == "project":
        texts = (file_of(app, each).read_text("utf-8") for each in app.env.found_docs)
        listings = (listing for text in texts for listing in TOCTREE.findall(text))
        listed = {line for listing in listings for line in listing.split()}
        unlisted = sorted(app.env.found_docs - listed - {"index"})
        content[0] += "\n```{toctree}\n" + "\n".join(unlisted) + "\n```\n"


def file_of(app: Sphinx, page: str) -> Path:
    """The file of a page in the language that is built."""
    translation = HERE / f"{page}.zh.md"
    is_translated = app.config.language == CHINESE and translation.exists()
    return translation if is_translated else HERE / f"{page}.md"
