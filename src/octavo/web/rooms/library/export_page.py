"""The settings page from which a person exports the library or a collection, and which explains how to import it."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from octavo.library.collections import list_collections
from octavo.web.context.services import ServicesOf
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False)
EXPORT = "/api/v1/export"


@router.get("/settings/export")
async def export_page(request: Request, services: ServicesOf, frame: SettingsFrame) -> Response:
    """Show the library and the collections that can be exported. Each export is a stream that the browser saves while
    it is created.
    """
    async with services.database.connection() as connection:
        found = await list_collections(connection, frame.caller.owner_id)
    rows = [(one, f"{EXPORT}?{urlencode({'collection': one.name})}") for one in found]
    base = (services.settings.public_url or str(request.base_url)).rstrip("/")
    return show(request, "export", frame, library=EXPORT, rows=rows, base=base)
