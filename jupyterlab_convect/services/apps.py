"""An app: any program that serves pages, such as Streamlit, Voilà or Panel with a notebook."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConvectError, Refused
from ..pipeline.plan import Json
from ..runs.store import Store
from .base import Service, ServiceCommand, ServiceKind

PORT = "{port}"


class App(ServiceKind):
    """Its options: `command`, in which `{port}` stands for the port, and `folder` to start in."""

    def prepare(
        self, options: Mapping[str, Json], root: Path, store: Store
    ) -> tuple[str, dict[str, Json]]:
        words, folder = options.get("command"), options.get("folder") or "."
        is_command = isinstance(words, list) and all(isinstance(each, str) for each in words)
        if not is_command or not words or not isinstance(folder, str):
            raise ConvectError("An app has a `command`, a list of words.", code="bad-service")
        if not any(PORT in word for word in words):
            raise ConvectError(
                f"The command of an app must say where {PORT} goes.",
                code="bad-service",
                hint=f"As in: streamlit run app.py --server.headless true --server.port {PORT}",
            )
        if shutil.which(words[0]) is None:
            raise Refused(f"The program {words[0][:80]!r} is not installed.", code="no-program")
        place = (root / folder).resolve()
        if not place.is_relative_to(root.resolve()) or not place.is_dir():
            raise ConvectError(f"There is no folder {folder[:200]!r}.", code="bad-service")
        return words[0], {"command": words, "folder": str(place)}

    def command(self, service: Service, port: int) -> ServiceCommand:
        words = tuple(word.replace(PORT, str(port)) for word in service.options["command"])
        return ServiceCommand(words, Path(service.options["folder"]))
