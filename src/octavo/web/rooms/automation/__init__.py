"""Web pages and API for sources (such as watched folders), custom fields, and rules that change documents
automatically.
"""

from octavo.web.rooms.automation import api, pages, sources

ROUTERS = (sources.pages_router, pages.router, sources.router, api.router)
