"""Connections between documents: a map, a list, weights for each type, and decisions made by people."""

from octavo.web.rooms.connections import api, pages

ROUTERS = (
    pages.router,
    api.router,
)
