"""Ask: questions answered from documents, with citations."""

from octavo.web.rooms.ask import api, pages

ROUTERS = (
    pages.router,
    api.router,
)
