"""Budgets for models, and their costs."""

from octavo.web.rooms.budgets import api, pages

ROUTERS = (
    pages.router,
    api.router,
    api.usage_router,
)
