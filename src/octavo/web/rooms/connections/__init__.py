"""Connections between documents: the map, the list, the weights, and the decisions of people."""

from octavo.web.rooms.connections import api, pages

ROUTERS = (
    pages.router,
    api.router,
)
