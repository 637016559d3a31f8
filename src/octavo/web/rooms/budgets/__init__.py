"""Budgets for models, and what they have cost."""

from octavo.web.rooms.budgets import api, pages

ROUTERS = (
    pages.router,
    api.router,
    api.usage_router,
)
