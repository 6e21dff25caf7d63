"""Builds the documentation into .make/docs, in English and, below `zh`, in Chinese.

Whatever Sphinx warns of, such as a link that leads nowhere, fails it. Nothing is fetched.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / ".make" / "docs"
LANGUAGES = {"en": SITE, "zh_CN": SITE / "zh"}


def main() -> int:
    codes = [build(language, folder) for language, folder in LANGUAGES.items()]
    if any(codes):
        return 1
    print(f"The documentation is in {SITE.relative_to(ROOT)}/index.html.")
    return 0


def build(language: str, folder: Path) -> int:
    pages = ROOT / ".make" / "docs-pages" / language
    return subprocess.call(
        [
            *(sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"),
            "--fresh-env",  # What was warned of before is warned of again.
            *("-D", f"language={language}", "-d", str(pages), str(ROOT / "docs"), str(folder)),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
