"""`papermill --engine convect`: papermill's own execution, saved whole and seldom.

Papermill loads this module whenever it is imported, while its own `engines` module
is almost done; so nothing but that module is imported here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from papermill.engines import NBClientEngine, NotebookExecutionManager
from papermill.iorw import LocalHandler, papermill_io

from .masking import Mask
from .notebooks import dump
from .saving import Pace, write_whole


class SparingManager(NotebookExecutionManager):  # type: ignore[misc]
    """Papermill's book-keeping of cells, without a save at every step of every cell."""

    def __init__(self, nb: Any, output_path: str | None = None, **kwargs: Any) -> None:
        super().__init__(nb, output_path=output_path, **kwargs)
        self._pace = Pace()
        self._ended = False
        self._target = _local_target(output_path)

    def save(self, **kwargs: Any) -> None:
        if self._ended or self._pace.due():
            self._pace.save(self._write)

    def autosave_cell(self, **kwargs: Any) -> None:
        self.save()

    def cell_exception(self, cell: Any, cell_index: int | None = None, **kwargs: Any) -> None:
        super().cell_exception(cell, cell_index=cell_index, **kwargs)
        self._pace.save(self._write)

    def notebook_complete(self, **kwargs: Any) -> None:
        self._ended = True
        pending = [c for c in self.nb.cells if c.metadata.papermill["status"] == self.PENDING]
        super().notebook_complete(**kwargs)
        if any(c.cell_type == "code" for c in pending):
            # Papermill calls every cell that never began "completed".
            for cell in pending:
                cell.metadata.papermill["status"] = self.PENDING
            self._pace.save(self._write)

    def _write(self) -> None:
        if self._target is None:
            super().save()
        else:
            write_whole(self._target, dump(self.nb, Mask()))


class ConvectEngine(NBClientEngine):  # type: ignore[misc]
    @classmethod
    def execute_notebook(cls, nb: Any, kernel_name: str, **kwargs: Any) -> Any:
        ours = ("output_path", "progress_bar", "log_output", "autosave_cell_every")
        manager = SparingManager(nb, **{key: kwargs[key] for key in ours if key in kwargs})
        rest = {key: value for key, value in kwargs.items() if key not in ours}
        manager.notebook_start()
        try:
            cls.execute_managed_notebook(
                manager, kernel_name, log_output=kwargs.get("log_output", False), **rest
            )
        finally:
            manager.cleanup_pbar()
            manager.notebook_complete()
        return manager.nb


def _local_target(path: str | None) -> Path | None:
    """Where the notebook goes when that is an ordinary file, which can be replaced whole."""
    handler = papermill_io.get_handler(path) if path else None
    if not isinstance(handler, LocalHandler):
        return None
    return Path(handler._cwd or ".", path or "").absolute()
