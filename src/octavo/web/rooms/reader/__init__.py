"""The reader: the text of a document with its pages, outline, connections and activity."""

from octavo.web.rooms.reader import api, beside, highlights, pages

ROUTERS = (
    pages.router,
    highlights.router,
    beside.router,
    api.router,
    api.marking,
)
