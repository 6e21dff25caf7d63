"""Files of the store: read with a sentence, written whole."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from ..errors import ConvectError
from ..json_text import loads
from ..pipeline.plan import Json


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
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConvectError(f"{path} cannot be written: {error.strerror}.") from None
