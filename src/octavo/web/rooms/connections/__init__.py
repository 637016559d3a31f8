"""Web pages and API for connections between documents: a map, a list, the weight of each type, and the decisions of
people about connections.
"""

from octavo.web.rooms.connections import api, pages

ROUTERS = (
    pages.router,
    api.router,
)
