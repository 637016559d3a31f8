"""Web pages and API for questions that are answered from documents, with citations."""

from octavo.web.rooms.ask import api, openai_api, pages

ROUTERS = (
    pages.router,
    api.router,
    openai_api.router,
)
