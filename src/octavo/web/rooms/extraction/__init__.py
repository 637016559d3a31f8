"""Extraction: the text of files, for programs that speak the protocols of docling-serve and Open WebUI."""

from octavo.web.rooms.extraction import docling, open_webui

ROUTERS = (
    docling.router,
    open_webui.router,
)
