"""Connections between documents: the map, the list, their weights, and decisions about them."""

from octavo.web.rooms.connections import api, pages

ROUTERS = (
    pages.router,
    api.router,
)
