"""Documents that arrive and sort themselves: sources, custom fields and rules."""

from octavo.web.rooms.automation import api, pages

ROUTERS = (pages.router, api.router)
