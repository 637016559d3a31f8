"""Web pages and API for notifications inside Octavo, and for recipients outside it: webhooks, mail and chats."""

from octavo.web.rooms.notifications import api, pages

ROUTERS = (
    pages.router,
    pages.webhooks_router,
    api.webhooks_router,
    api.router,
)
