"""Routes for programs and monitoring (such as health, metrics, live events and AI agents), and the API reference."""

from octavo.web.rooms.system import api, reference

ROUTERS = (
    api.objects_router,
    api.router,
    api.settings_router,
    api.agents_router,
)
# Separate, because monitoring and readers of the API reference do not sign in.
OPEN = (api.health_router, reference.router)
