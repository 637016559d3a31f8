"""Web pages and API for connections between documents: a map, a list, a weight for each type, and the decisions of
people.
"""

from octavo.web.rooms.connections import api, pages

ROUTERS = (
    pages.router,
    api.router,
)
