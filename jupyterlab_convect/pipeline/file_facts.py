"""What a plan looked up of files, kept so that it can be made again from the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What was looked up of the files below a folder, by their paths or patterns."""

    kinds: Mapping[str, str | None]
    digests: Mapping[str, str]
    matches: Mapping[str, list[str]]
