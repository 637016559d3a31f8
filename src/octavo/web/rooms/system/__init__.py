"""Routes for programs and monitoring: health, metrics, events, signed downloads, limits, and AI agents."""

from octavo.web.rooms.system import api

ROUTERS = (
    api.objects_router,
    api.router,
    api.settings_router,
    api.agents_router,
)
# Separate, because monitoring does not sign in.
HEALTH = api.health_router
