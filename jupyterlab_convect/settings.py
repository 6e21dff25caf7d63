"""The configuration that the server, the command line and the Python API share.

`c.Convect.<name>` in `jupyter_jupyterlab_convect_config.py` (or `.json`) in one of
Jupyter's configuration folders; runtimes are configured by their own class name.
"""

from __future__ import annotations

import os
from pathlib import Path

from jupyter_core.paths import jupyter_config_path, jupyter_data_dir
from traitlets import Dict, Enum, Float, Int, List, TraitError, Unicode, Union, default
from traitlets.config import Config, Configurable

from .errors import ConvectError
from .filesystems import local_folder

FILE = "jupyter_jupyterlab_convect_config"


class Settings(Configurable):
    runs_dir = Unicode(
        help="""The folder of the runs. On a volume that pods see as well, they see the same runs.
        The environment variable CONVECT_RUNS_DIR has the same meaning."""
    ).tag(config=True)

    share_runs = Enum(
        ("", "group"),
        "",
        help="""Who reads the runs beside their owner: nobody, or the group of the runs folder. With
        "group" new run folders are set-group-ID and readable by the group, and a runs folder that
        does not exist yet is made so that the members of its group keep their runs in it. Nobody
        ever executes, stops or deletes the runs of another user.""",
    ).tag(config=True)

    index_dir = Unicode(
        help="""The folder of the index of the runs, on a disk of this machine, never on NFS: the
        user's cache folder, or where that is on a network a private one in the temporary folder.
        It can be deleted at any time. Also CONVECT_INDEX_DIR."""
    ).tag(config=True)

    default_runtime = Unicode("local", help="Where runs run when nobody says where.").tag(
        config=True
    )

    runtimes = List(
        Unicode(), help="The names of the runtimes to offer; empty means all that are installed."
    ).tag(config=True)

    catalog_hosts = List(
        Unicode(),
        help="""Hosts with internal addresses that component catalogs may read, as in
        `gitlab.example.org` or `*.intern`. Without it they read public addresses only.""",
    ).tag(config=True)

    named_runtimes = Dict(
        Dict(),
        help="""Further runtimes by name, each of a kind that is installed and with settings of
        its own: {"team-gpus": {"kind": "kubernetes", "context": "prod", "namespace": "team"}}.""",
    ).tag(config=True)

    url = Unicode(
        help="""The address of this Jupyter server as people reach it, for links in notifications.
        The server finds out its own."""
    ).tag(config=True)

    smtp = Dict(
        help="""The server that mails of notifications are sent by: {"host": "mail.example.org",
        "port": 587, "security": "starttls" (or "tls", "none"), "user": "me", "password":
        "mail/password", "sender": "me@example.org"}. The password is the name and the key of a
        secret, in the keyring or in a variable CONVECT_SECRET_<name>_<key> of the server."""
    ).tag(config=True)

    profiles = List(
        Dict(),
        help="""Sizes to choose from: {"name": "Small GPU", "image": "ghcr.io/team/ds:2026.1",
        "cpu": 4, "memory": "16Gi", "gpu": {"count": 1, "type": "T4"}, "notes": "For tests.",
        "namespaces": ["team-a"]}. All but the name can be left out.""",
    ).tag(config=True)

    images = List(
        Union([Unicode(), Dict()]),
        help="""Container images to choose from: names, or
        {"image": "registry.example.org/ds:2026.1", "notes": "Python 3.12, PyTorch 2.9"}.""",
    ).tag(config=True)

    registries = List(
        Unicode(),
        help="""Where images may come from, as in `ghcr.io`, `ghcr.io/team` or `*.example.org`;
        empty allows every registry.""",
    ).tag(config=True)

    asked_registries = List(
        Unicode(),
        help="""Registries that are asked, before a run, whether they have its images: as in
        `registries`, and `http://registry.example.org:5000` for one without TLS. Those that are
        named without `*` may have internal addresses. Nobody is asked if empty.""",
    ).tag(config=True)

    keep_days = Float(0, min=0, help="Delete ended runs after so many days; 0 keeps them.").tag(
        config=True
    )

    keep_runs = Int(0, min=0, help="Keep so many ended runs, the newest; 0 keeps all.").tag(
        config=True
    )

    keep_bytes = Int(
        0, min=0, help="Delete the oldest ended runs above so many bytes; 0 keeps all."
    ).tag(config=True)

    @classmethod
    def section_names(cls) -> list[str]:
        """`c.Convect`, whatever the class that is configured by it is called."""
        names: list[str] = super().section_names()
        return names if "Convect" in names else [*names, "Convect"]

    @default("runs_dir")
    def _runs_dir_default(self) -> str:
        return os.environ.get("CONVECT_RUNS_DIR") or str(
            Path(jupyter_data_dir(), "convect", "runs")
        )

    @default("index_dir")
    def _index_dir_default(self) -> str:
        chosen = os.environ.get("CONVECT_INDEX_DIR")
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        wanted = Path(caches, "jupyterlab-convect")
        return chosen or str(local_folder(wanted.resolve(), wanted.name))


def load_settings() -> Settings:
    """The settings as the configuration files give them, for use without a server."""
    config = Config()
    for folder in reversed(jupyter_config_path()):
        for suffix in (".json", ".py"):
            if Path(folder, FILE + suffix).is_file():
                config.merge(_load(FILE + suffix, folder))
    try:
        return Settings(config=config)
    except TraitError as error:
        raise ConvectError(f"The configuration is wrong: {error}", code="bad-config") from None


def _load(name: str, folder: str) -> Config:
    from traitlets.config.loader import JSONFileConfigLoader, PyFileConfigLoader

    kind = PyFileConfigLoader if name.endswith(".py") else JSONFileConfigLoader
    try:
        return kind(name, path=folder).load_config()
    except Exception as error:
        # It is a program of somebody else's: anything can go wrong in it.
        raise ConvectError(
            f"The configuration file {Path(folder, name)} cannot be read: {error}.",
            code="bad-config",
        ) from error
