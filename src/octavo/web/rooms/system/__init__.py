"""Routes for programs and monitoring: health, metrics, events, signed downloads and published limits."""

from octavo.web.rooms.system import api

ROUTERS = (
    api.objects_router,
    api.router,
    api.settings_router,
)
# Separate, because monitoring does not sign in.
HEALTH = api.health_router
