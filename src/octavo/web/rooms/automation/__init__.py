"""Web pages and API for watched folders (sources), custom fields, and rules that sort documents."""

from octavo.web.rooms.automation import api, pages, sources

ROUTERS = (sources.pages_router, pages.router, sources.router, api.router)
