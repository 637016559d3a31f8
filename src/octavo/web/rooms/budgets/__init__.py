"""Budgets for models, and the costs of model calls."""

from octavo.web.rooms.budgets import api, pages

ROUTERS = (
    pages.router,
    api.router,
    api.usage_router,
)
