"""The runner as one file: `python convect-runner.pyz <attempt folder>`.

It needs Python and, for notebooks, papermill. The same bytes come out for the same
sources, so that whoever ships it can tell by a digest whether it changed.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from importlib import resources
from pathlib import Path

_PACKAGE = __package__.rpartition(".")[0]
_FILES = (
    "__init__.py",
    "errors.py",
    "filesystems.py",
    "json_text.py",
    "reporting.py",
    "safe_files.py",
    "text.py",
)
_MAIN = f"import sys\nfrom {__package__}.__main__ import main\nsys.exit(main())\n"


def bundle() -> bytes:
    """The file's content: the runner, what steps report with, and nothing else."""
    package = resources.files(_PACKAGE)
    contents = {f"{_PACKAGE}/{name}": package.joinpath(name).read_bytes() for name in _FILES}
    for file in package.joinpath("runner").iterdir():
        if file.name.endswith(".py"):
            contents[f"{_PACKAGE}/runner/{file.name}"] = file.read_bytes()
    contents["__main__.py"] = _MAIN.encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, contents[name], compresslevel=9)
    return b"#!/usr/bin/env python3\n" + buffer.getvalue()


def bundle_path(folder: Path) -> str:
    """A file from which `jupyterlab_convect` can be imported where it is not installed.

    That is the bundle itself when it runs, else one written into `folder`.
    """
    own = Path(__file__)
    for parent in own.parents:
        if parent.is_file():
            return str(parent)
    target = folder / "convect-runner.pyz"
    target.write_bytes(bundle())
    return str(target)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}.one_file", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("convect-runner.pyz"))
    target: Path = parser.parse_args(arguments).output
    target.write_bytes(bundle())
    return 0


if __name__ == "__main__":
    sys.exit(main())
