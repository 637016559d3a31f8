"""Web page and API for search, similar documents and tags, and embeddings."""

from octavo.web.rooms.search import api, pages

ROUTERS = (
    pages.router,
    api.router,
    api.embeddings_router,
)
