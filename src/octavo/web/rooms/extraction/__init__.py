"""An API that returns the text of files to programs that use the protocols of docling-serve or Open WebUI."""

from octavo.web.rooms.extraction import protocols

ROUTERS = (
    protocols.router,
    protocols.open_webui_router,
)
