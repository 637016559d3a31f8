"""Web pages and API for models: their providers, and the budgets and costs of model calls."""

from octavo.web.rooms.budgets import api, pages

ROUTERS = (
    pages.router,
    pages.models_router,
    api.router,
    api.usage_router,
    api.models_router,
    api.servers_router,
)
