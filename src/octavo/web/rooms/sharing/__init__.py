"""Sharing a document or a collection by a link: the API, the settings page, and the pages that a link opens."""

from octavo.web.rooms.sharing import api, pages, shared_pages

ROUTERS = (api.router, pages.router, shared_pages.router)
