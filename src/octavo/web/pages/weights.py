"""How much each kind of connection matters: the order of all lists, changed here for all documents at once."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request, Response

from octavo.connect.connections import DEFAULT_WEIGHTS, read_weights
from octavo.web.pages.connections_map import ENGINES
from octavo.web.pages.settings import SettingsFrame, show
from octavo.web.parts import PartsOf

router = APIRouter(include_in_schema=False, prefix="/settings/weights")


@router.get("")
async def weights_page(request: Request, parts: PartsOf, frame: SettingsFrame, said: str = "") -> Response:
    async with parts.database.connection() as connection:
        weights = asdict(await read_weights(connection, frame.caller.owner_id))
    return show(request, "weights", frame, said=said, weights=weights, usual=DEFAULT_WEIGHTS, engines=ENGINES)
