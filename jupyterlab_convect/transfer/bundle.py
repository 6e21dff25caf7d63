"""Files in one small archive that goes with the pod; results come back through its log."""

from __future__ import annotations

import contextlib
import errno
import stat
from abc import abstractmethod
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from ..errors import ConvectError, Refused
from ..pipeline.plan import Step
from ..runner.one_file import bundle
from ..runner.outcome import INTERRUPTED
from ..runtimes.base import Attempt
from ..text import size_text
from . import pack
from .agent import BUNDLE
from .base import INBOX, PYTHON, Mounts, Sent, SharedVolume, Transfer
from .pack import Contents, Package
from .receive import LogReceiver
from .shared_volume import stop_record

ROOMS = (8_000_000, 2_000_000, 500_000)
"""Bytes of undeclared files to try to send, before they are compressed."""
LARGEST = 900_000
"""Bytes that fit into a Secret beside the runner."""
LARGEST_WHOLE = 64 * LARGEST
"""Bytes that are worth the try to make them small."""


class SendingTransfer(Transfer):
    """A way without a shared volume: an agent in the pod brings files there, and results back."""

    def __init__(self, volumes: tuple[SharedVolume, ...], limit: int) -> None:
        self._volumes = volumes
        self.limit = limit
        """Bytes that a pod may say in its log."""

    @abstractmethod
    def send(self, attempt: Attempt, package: Package) -> dict[str, bytes]:
        """Send it; what the agent must find in its inbox."""

    @abstractmethod
    def fetch(self, attempt: Attempt, folder: Path, *, outputs_only: bool = False) -> LogReceiver:
        """It has always something to fetch."""

    def env(self) -> dict[str, str]:
        """What the runner has to keep to."""
        return {}

    def mounts(self) -> Mounts:
        return Mounts(self._volumes, (str(pack.FOLDER),), inbox=True)

    def put(self, attempt: Attempt) -> Sent:
        package = pack.package_of(attempt)
        inbox = {
            **self.send(attempt, package),
            "runner.pyz": bundle(),
            "agent.py": agent_program(),
            "stop.json": stop_record("failed", INTERRUPTED),
        }
        return Sent(self.agent("run"), self.env(), inbox)

    def agent(self, task: str) -> tuple[str, ...]:
        """The command of the agent."""
        return (PYTHON, f"{INBOX}/agent.py", task, INBOX, str(self.limit))


class BundleTransfer(SendingTransfer):
    way = "bundle"

    def send(self, attempt: Attempt, package: Package) -> dict[str, bytes]:
        """With as much of what is optional as there is room for."""
        for room in ROOMS if package.optional else ():
            with contextlib.suppress(Refused):
                return {BUNDLE: _archive(package.within(room), attempt.step)}
        return {BUNDLE: _archive(package.within(0), attempt.step)}

    def env(self) -> dict[str, str]:
        return {
            "CONVECT_LOG_LIMIT": str(self.limit // 4),
            "CONVECT_OUTPUT_LIMIT": str(self.limit // 8),
        }

    def fetch(self, attempt: Attempt, folder: Path, *, outputs_only: bool = False) -> LogReceiver:
        return LogReceiver(folder, outputs_only=outputs_only)


def agent_program() -> bytes:
    """The program that runs in the pod, which stands alone."""
    return resources.files(__package__).joinpath("agent.py").read_bytes()


def _archive(contents: Contents, step: Step) -> bytes:
    return compress(load(contents, step), step)


def load(contents: Contents, step: Step) -> dict[str, bytes]:
    """What lies in each file, by its path in the pod. Refused before too much is read."""
    loaded, total = dict(contents.texts), 0
    for target, source in contents.files.items():
        try:
            status = source.stat()
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "Not a regular file")
            total += status.st_size
            if total > LARGEST_WHOLE:
                raise too_large(step, total)
            loaded[target] = source.read_bytes()
        except OSError as error:
            raise ConvectError(f"{source.name} cannot be read: {error.strerror}.") from None
    return loaded


def compress(contents: Mapping[str, bytes], step: Step) -> bytes:
    """The archive of what lies at each path of the pod. Refused if large."""
    packed = pack.archive(contents)
    if len(packed) > LARGEST:
        raise too_large(step, len(packed))
    return packed


def too_large(step: Step, count: int) -> Refused:
    return Refused(
        f"The files of “{step.name}” are too large to be sent with the run: {size_text(count)} "
        f"of at most {size_text(LARGEST)} compressed.",
        code="too-large",
        hint="Put them on a volume, and name it in `volumes` or in c.KubernetesRuntime.volumes.",
    )
