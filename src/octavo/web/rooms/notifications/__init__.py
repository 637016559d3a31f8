"""Notifications in Octavo, and recipients outside it: webhooks, mail and chats."""

from octavo.web.rooms.notifications import api, pages, webhook_pages

ROUTERS = (
    pages.router,
    webhook_pages.router,
    api.webhooks_router,
    api.router,
)
