"""Catalogs of components, and the components in them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from ..catalog.entries import (
    CatalogEntry,
    RefreshProgress,
    Shelf,
    catalog_from_json,
    new_catalog_id,
)
from ..catalog.launch import container_engine
from ..catalog.model import Component, component_from_json, preview
from ..catalog.sources import Catalog, kinds, options_schemas
from ..catalog.store import CatalogStore
from ..errors import ConvectError
from ..pipeline.plan import Json, to_json
from ..pools import run_in
from .base import Handler, PolledHandler
from .requests import inside

RESOURCE = "jupyterlab-convect:catalogs"

T = TypeVar("T")

_refreshing: set[asyncio.Task[None]] = set()
"""Refreshes under way; somebody has to hold on to them."""


class CatalogHandler(Handler):
    async def aside(self, work: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        return await run_in("catalogs", work, *arguments, **keywords)

    @property
    def store(self) -> CatalogStore:
        return self.workspace.catalog

    def view(self, shelf: Shelf) -> dict[str, Json]:
        catalog, entries = shelf.catalog, shelf.entries
        progress = self.store.progress.get(catalog.id)
        return {
            "id": catalog.id,
            "name": catalog.name,
            "kind": catalog.kind,
            "urls": list(catalog.urls),
            "path": self.shown(catalog.path),
            "categories": list(catalog.categories),
            "auth": to_json(catalog.auth) if catalog.auth else None,
            "replacements": dict(catalog.replacements),
            "options": dict(catalog.options),
            "refresh": catalog.refresh,
            "refreshed": shelf.refreshed,
            "error": shelf.error,
            "progress": asdict(progress) if progress else None,
            "counts": {
                "components": sum(bool(entry.digest) for entry in entries),
                "errors": sum(entry.error is not None for entry in entries),
                "updates": sum(entry.update is not None for entry in entries),
            },
        }

    def shown(self, path: str | None) -> str | None:
        """A path as the browser knows it; the whole one for what lies elsewhere."""
        if path is not None and Path(path).is_relative_to(self.root):
            return Path(path).relative_to(self.root).as_posix()
        return path

    def configured(self, body: dict[str, Json], catalog_id: str, before: Catalog | None) -> Catalog:
        """The catalog that a body describes; what it leaves out stays as it was."""
        value = {**(to_json(before) if before else {}), **body, "id": catalog_id}
        path = body.get("path")
        if path is not None:
            value["path"] = str(self.root / inside(self.root, path))
        return catalog_from_json({key: item for key, item in value.items() if item is not None})

    def start_refresh(self, catalog_id: str) -> None:
        """Read the source while the answer is on its way; the catalog shows the progress."""

        async def refresh() -> None:
            try:
                await run_in("refreshing", self.store.refresh, catalog_id)
            except ConvectError as error:
                self.log.warning("The catalog %s: %s", catalog_id, error.sentence)
            finally:
                self.store.progress.pop(catalog_id, None)

        # Said at once, so that nobody who looks meanwhile begins to read it as well.
        self.store.progress.setdefault(catalog_id, RefreshProgress(0, 1))
        task = asyncio.ensure_future(refresh())
        _refreshing.add(task)
        task.add_done_callback(_refreshing.discard)

    def described(self, component: Component) -> dict[str, Json]:
        """All that a preview shows, and the definition that a pipeline embeds."""
        return {
            **preview(component),
            "definition": to_json(component),
            "approved": self.store.approvals.has(component),
            "contained": container_engine(os.environ) is not None,
        }


class CatalogsHandler(CatalogHandler, PolledHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        shelves = await self.aside(self.store.catalogs)
        self.answer(
            {
                "catalogs": [self.view(shelf) for shelf in shelves],
                "kinds": await self.aside(kinds),
                "schemas": await self.aside(options_schemas),
            }
        )

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        body = self.body("CatalogBody")
        shelves = await self.aside(self.store.catalogs)
        catalog_id = new_catalog_id(body["name"], [shelf.catalog.id for shelf in shelves])
        catalog = self.configured(body, catalog_id, None)
        shelf = await self.aside(self.store.add, catalog)
        self.start_refresh(catalog_id)
        self.answer(self.view(shelf), 201)


class OneCatalogHandler(CatalogHandler, PolledHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, catalog_id: str) -> None:
        self.answer(self.view(await self.aside(self.store.catalog, catalog_id)))

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def patch(self, catalog_id: str) -> None:
        body = self.body("CatalogChange")
        shelf = await self.aside(self.store.catalog, catalog_id)
        catalog = self.configured(body, catalog_id, shelf.catalog)
        if "auth" in body and body["auth"] is None:
            catalog = replace(catalog, auth=None)
        if "refresh" in body and body["refresh"] is None:
            catalog = replace(catalog, refresh=None)
        shelf = await self.aside(self.store.configure, catalog)
        self.start_refresh(catalog_id)
        self.answer(self.view(shelf))

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def delete(self, catalog_id: str) -> None:
        await self.aside(self.store.remove, catalog_id)
        self.set_status(204)
        self.finish()


class RefreshHandler(CatalogHandler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, catalog_id: str) -> None:
        shelf = await self.aside(self.store.catalog, catalog_id)
        self.start_refresh(catalog_id)
        self.answer(self.view(shelf), 202)


class TakeHandler(CatalogHandler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, catalog_id: str) -> None:
        digests = self.body("TakeBody").get("digests")
        self.answer(self.view(await self.aside(self.store.take, catalog_id, digests)))


class ComponentsHandler(CatalogHandler, PolledHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        found = await self.aside(
            self.store.entries, self.text("text") or "", self.text("catalog"), self.text("category")
        )
        offset = self.whole("offset", 0)
        page = found[offset : offset + self.whole("limit", 5000, most=5000)]
        everything = await self.aside(self.store.entries)
        categories = sorted({name for entry in everything for name in entry.categories})
        self.answer(
            {
                "components": [_summary(entry) for entry in page],
                "total": len(found),
                "categories": categories,
            }
        )


class OneComponentHandler(CatalogHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, digest: str) -> None:
        component = await self.aside(self.store.component, digest)
        described = await self.aside(self.described, component)
        self.answer({**described, "text": await self.aside(self.store.text, digest)})


class DifferenceHandler(CatalogHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, digest: str, other: str) -> None:
        self.answer({"difference": await self.aside(self.store.difference, digest, other)})


class PreviewHandler(CatalogHandler):
    """For a definition that a pipeline brings along, which no catalog may have."""

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        component = component_from_json(self.body("DefinitionBody")["definition"])
        self.answer(await self.aside(self.described, component))


class ApproveHandler(CatalogHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        body = self.body("ApproveBody")
        component = component_from_json(body["definition"])
        await self.aside(self.approve, component, body.get("approved", True))
        self.answer(await self.aside(self.described, component))

    def approve(self, component: Component, approved: bool) -> None:
        if approved:
            self.store.approvals.give(component, self.user)
        else:
            self.store.approvals.withdraw(component)


def _summary(entry: CatalogEntry) -> dict[str, Json]:
    return {name: getattr(entry, name) for name in CatalogEntry.__slots__}


routes = [
    ("catalogs", CatalogsHandler),
    ("catalogs/([^/]+)", OneCatalogHandler),
    ("catalogs/([^/]+)/refresh", RefreshHandler),
    ("catalogs/([^/]+)/take", TakeHandler),
    ("components", ComponentsHandler),
    ("components/preview", PreviewHandler),
    ("components/approve", ApproveHandler),
    ("components/([^/]+)", OneComponentHandler),
    ("components/([^/]+)/difference/([^/]+)", DifferenceHandler),
]
