"""Extraction: returns the text of files to programs that use the protocols of docling-serve or Open WebUI."""

from octavo.web.rooms.extraction import docling, open_webui

ROUTERS = (
    docling.router,
    open_webui.router,
)
