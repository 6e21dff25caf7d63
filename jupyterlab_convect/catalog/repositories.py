"""Pages of git servers: where the file, or the archive of the folder, that a page shows is."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from ..errors import ConvectError

_FILES = (
    (
        re.compile(r"https://github\.com/([^/]+/[^/]+)/(?:blob|raw)/([^?#]+).*"),
        r"https://raw.githubusercontent.com/\1/\2",
    ),
    # GitLab, wherever it runs.
    (re.compile(r"(https?://[^?#]+)/-/blob/([^?#]+).*"), r"\1/-/raw/\2"),
    # Gitea and Forgejo.
    (
        re.compile(
            r"(https?://[^/?#]+/[^/]+/[^/]+)/src/((?:branch|tag|commit)/[^?#]+\.(?:ya?ml|json)).*"
        ),
        r"\1/raw/\2",
    ),
)
_GITHUB = re.compile(r"https://github\.com/([^/]+)/([^/?#]+)(?:/tree/([^/]+)(/[^?#]*)?)?/?")
_GITLAB = re.compile(r"(https?://[^?#]+/([^/]+))/-/tree/([^/?#]+)(/[^?#]*)?.*")
_GITEA = re.compile(
    r"(https?://[^/?#]+/[^/]+/[^/]+)/src/((?:branch|tag|commit)/([^/?#]+))(/[^?#]*)?.*"
)

MAX_UNPACKED = 256 << 20
"""Bytes of the files of an archive that are looked at."""


@dataclass(frozen=True, slots=True)
class Folder:
    archive: str
    """The address of the whole repository as a zip file."""
    files: str
    """What stands before a path in the address of a file."""
    path: str


def plain_address(url: str) -> str:
    """The address of the file itself where people copy the address of a page that shows it."""
    url = url.strip()
    for page, file in _FILES:
        match = page.fullmatch(url)
        if match:
            return match.expand(file)
    return url


def folder_of(url: str) -> Folder | None:
    """The folder of a repository that a page shows; None for any other address."""
    url = url.strip()
    if plain_address(url) != url:
        return None
    if match := _GITHUB.fullmatch(url):
        owner, name, ref, path = match.groups()
        ref = ref or "HEAD"
        archive = f"https://codeload.github.com/{owner}/{name}/zip/{quote(ref)}"
        files = f"https://raw.githubusercontent.com/{owner}/{name}/{ref}/"
    elif match := _GITLAB.fullmatch(url):
        root, name, ref, path = match.groups()
        archive, files = f"{root}/-/archive/{ref}/{name}-{ref}.zip", f"{root}/-/raw/{ref}/"
    elif match := _GITEA.fullmatch(url):
        root, place, ref, path = match.groups()
        archive, files = f"{root}/archive/{ref}.zip", f"{root}/raw/{place}/"
    else:
        return None
    return Folder(archive, files, (path or "").strip("/"))


def files_in_zip(
    data: bytes, folder: str, limit: int, suffixes: tuple[str, ...] = ("",)
) -> Iterator[tuple[str, bytes]]:
    """The files below a folder of an archive whose content lies in one top folder.

    Files of more than `limit` bytes are left out. An archive that unpacks to more than
    anybody wrote is refused.
    """
    left = MAX_UNPACKED
    prefix = f"{folder}/" if folder else ""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for item in archive.infolist():
                name = item.filename.partition("/")[2]
                if item.is_dir() or item.file_size > limit or not name.startswith(prefix):
                    continue
                if not name.endswith(suffixes):
                    continue
                with archive.open(item) as file:
                    content = file.read(limit + 1)
                left -= len(content)
                if left < 0:
                    raise ConvectError(
                        f"The archive unpacks to more than {MAX_UNPACKED >> 20} MB.",
                        code="too-large",
                    )
                if len(content) <= limit:
                    yield name, content
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ConvectError(f"The archive is damaged: {error}.") from None
