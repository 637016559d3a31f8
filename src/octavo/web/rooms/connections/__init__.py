"""Web pages and API for connections between documents: a map, a list, weights for each type, and people's verdicts."""

from octavo.web.rooms.connections import api, pages

ROUTERS = (
    pages.router,
    api.router,
)
