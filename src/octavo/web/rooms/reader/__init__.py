"""The reader: the text of a document with its pages, outline, connections and activity."""

from octavo.web.rooms.reader import api, connections_panel, pages

ROUTERS = (
    pages.router,
    connections_panel.router,
    api.router,
)
