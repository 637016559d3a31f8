"""Pages of what is converted as pictures, to look at beside what was found there."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Path, Query, Response

from octavo.convert.conversions import find_result, show_conversion
from octavo.web.api import problems
from octavo.web.api.pictures import HEADERS, MEDIA_TYPE, PICTURE, UNCHANGED, Width
from octavo.web.downloads import is_known
from octavo.web.parts import PartsOf, Reading
from octavo.web.pictures import WantedOfFile

router = APIRouter(prefix="/api/v1/conversions", tags=["conversions"])


@router.get(
    "/{conversion}/pages/{number}.png",
    response_class=Response,
    responses={**PICTURE, **UNCHANGED, **problems(401, 404, 410, 413, 422)},
)
async def page_picture(
    parts: PartsOf,
    caller: Reading,
    conversion: UUID,
    number: Annotated[int, Path(ge=1, le=1_000_000)],
    width: Annotated[Width, Query(description="Pixels across, at most.")] = Width.MEDIUM,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """A page of the file that is converted, as long as the file is kept."""
    async with parts.database.connection() as connection:
        await show_conversion(connection, caller.owner_id, conversion)
        file = await find_result(connection, caller.owner_id, conversion, "source")
    etag = f'"{sha256(f"{file.sha256} {number} {width}".encode()).hexdigest()}"'
    headers = {"etag": etag, **HEADERS}
    if is_known(etag, if_none_match):
        return Response(status_code=304, headers=headers)
    drawn = await parts.pictures.draw_file(WantedOfFile(file.key, number, width))
    return Response(drawn, headers=headers, media_type=MEDIA_TYPE)
