"""Notifications: whom to tell about runs and schedules."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from .base import StoreHandler

RESOURCE = "jupyterlab-convect:notifications"


class NotificationsHandler(StoreHandler):
    @authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self) -> None:
        self.answer({"notifications": await self.aside(self.workspace.notifier.views)})

    @authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self) -> None:
        made = await self.aside(self.workspace.notifier.add, self.body("NotificationBody"))
        views = await self.aside(self.workspace.notifier.views)
        self.answer(next(view for view in views if view["id"] == made), 201)


class UnsavedNotificationHandler(StoreHandler):
    """One that is not saved yet."""

    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self) -> None:
        notifier = self.workspace.notifier
        wanted = await self.aside(notifier.notification_of, self.body("NotificationBody"))
        await self.aside(notifier.test, wanted)
        self.answer({"sent": True})


class OneNotificationHandler(StoreHandler):
    @authenticated
    @authorized("write", resource=RESOURCE)
    async def delete(self, notification_id: str) -> None:
        await self.aside(self.workspace.notifier.outbox.remove, notification_id)
        self.set_status(204)
        self.finish()


class SavedNotificationHandler(StoreHandler):
    @authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, notification_id: str) -> None:
        self.body("TestNotificationBody")
        notifier = self.workspace.notifier
        known = await self.aside(notifier.outbox.read, notification_id)
        await self.aside(notifier.test, known)
        self.answer({"sent": True})


routes = [
    ("notifications", NotificationsHandler),
    ("notifications/test", UnsavedNotificationHandler),
    (r"notifications/([^/]+)", OneNotificationHandler),
    (r"notifications/([^/]+)/test", SavedNotificationHandler),
]
