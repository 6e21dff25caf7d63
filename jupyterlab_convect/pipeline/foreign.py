"""Files of other programs as pipelines: Elyra's, Kubeflow's training jobs, and those of DLC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ConvectError
from .problems import Problem

if TYPE_CHECKING:
    from .types import Document


def import_file(
    data: bytes, name: str, *, path: str | None = None
) -> tuple[Document, list[Problem]]:
    """The document that a file becomes, and what the user should know about it.

    `path` is where the file lies, relative to the root folder. A ConvectError says why it cannot
    be imported.
    """
    ending = name.lower().rpartition(".")[2]
    if ending == "params":
        from .dlc import read_params

        job = read_params(_text(data, name), name)
        notes = [Problem("info", "dlc-key", note, node="job") for note in job.notes]
        return job.document, notes
    if ending in ("yaml", "yml"):
        from .training.job_convert import import_job

        return import_job(_text(data, name))
    from .elyra import import_elyra  # Seldom used, and not small.

    return import_elyra(data, path=path)


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConvectError(f"“{name}” is not text in UTF-8.") from None
