"""Web pages and API for notifications, and for recipients that Octavo sends events to: webhooks, mail and chats."""

from octavo.web.rooms.notifications import api, pages

ROUTERS = (
    pages.router,
    pages.webhooks_router,
    api.webhooks_router,
    api.router,
)
