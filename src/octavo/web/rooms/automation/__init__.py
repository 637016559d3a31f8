"""Web pages and API for watched folders (sources), custom fields, and rules that sort documents."""

from octavo.web.rooms.automation import api, pages, source_api, source_pages

ROUTERS = (source_pages.router, pages.router, source_api.router, api.router)
