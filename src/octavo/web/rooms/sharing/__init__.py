"""Sharing a document or a collection by a link: the API, the settings page, and the pages that a link opens."""

from octavo.web.rooms.sharing import links, shared_pages

ROUTERS = (links.router, links.pages_router, shared_pages.router)
