"""The package's own translations, which JupyterLab finds through two entry points.

`jupyterlab.locale` adds them to an installed language. JupyterLab offers a language
only when a language pack brings it, so `jupyterlab.languagepack` offers Chinese as
well. Of two packs for one language JupyterLab takes either, so the real one, when
it is installed, is what ours points to.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType


def _language_pack() -> ModuleType:
    try:
        return importlib.import_module("jupyterlab_language_pack_zh_CN")
    except ImportError:
        return sys.modules[__name__]


language_pack = _language_pack()
