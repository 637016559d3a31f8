"""Documents that arrive and sort themselves: sources, custom fields and rules."""

from octavo.web.rooms.automation import api, pages, source_api, source_pages

ROUTERS = (source_pages.router, pages.router, source_api.router, api.router)
