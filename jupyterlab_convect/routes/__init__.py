"""The REST API: one file per resource, each with a list `routes` of (pattern, handler)."""

from __future__ import annotations

import importlib
import pkgutil

from tornado.web import RequestHandler

PREFIX = "/jupyterlab-convect/api/v1/"


def all_routes() -> list[tuple[str, type[RequestHandler]]]:
    """The routes of every module in this folder, with the prefix that they share."""
    modules = (
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    )
    return [
        (PREFIX + pattern, handler)
        for module in modules
        for pattern, handler in getattr(module, "routes", ())
    ]
