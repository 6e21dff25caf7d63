"""Files of the catalogs: those of the store, read with a sentence and written whole, and those of
the components that ship with the product."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from ..errors import ConvectError
from ..json_text import loads
from ..pipeline.plan import Json
from ..safe_files import make_folder, write_whole
from .model import executable_digests

INCLUDED = Path(__file__).parent / "components"


def read_json(path: Path) -> Json:
    """None when there is no such file."""
    try:
        return loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ConvectError(f"{path} cannot be read: {error}.", code="damaged") from None


def write_json(path: Path, value: Json) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    write(path, text.encode("utf-8", "backslashreplace"))


def write(path: Path, data: bytes) -> None:
    """Replace a file whole, so that no reader ever sees half of it."""
    try:
        make_folder(path.parent)
        write_whole(path, data)
    except OSError as error:
        raise ConvectError(f"{path} cannot be written: {error.strerror}.") from None


@functools.cache
def included_digests() -> frozenset[str]:
    """What they execute: it needs nobody's approval."""
    from .read import read

    return frozenset(
        digest
        for path in INCLUDED.glob("*.yaml")
        for component in read(path.read_bytes(), path.name).components
        for digest in executable_digests(component)
    )
