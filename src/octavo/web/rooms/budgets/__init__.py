"""Web pages and API for the budgets and costs of model calls."""

from octavo.web.rooms.budgets import api, pages

ROUTERS = (
    pages.router,
    api.router,
    api.usage_router,
)
