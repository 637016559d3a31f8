"""An API that returns the text of files. Other programs use it with the protocols of docling-serve or Open WebUI."""

from octavo.web.rooms.extraction import protocols

ROUTERS = (
    protocols.router,
    protocols.open_webui_router,
)
