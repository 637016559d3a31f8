"""The reader: the text of a document with its pages, outline, connections and activity."""

from octavo.web.rooms.reader import api, pages

ROUTERS = (
    pages.router,
    api.router,
    api.marking,
)
