"""Pages of documents as pictures, and where on them something stands."""

from __future__ import annotations

from enum import IntEnum
from hashlib import sha256
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from octavo.extract.contract import Box
from octavo.library.pictures import find_boxes
from octavo.web.api import problems
from octavo.web.downloads import is_known
from octavo.web.parts import Parts, PartsOf, Reading
from octavo.web.pictures import Wanted

router = APIRouter(prefix="/api/v1/documents", tags=["documents"])
MOST_BOXES = 100
MEDIA_TYPE = "image/png"
DAY_SECONDS = 24 * 3600
_SIDE = r"[0-9]{1,6}(\.[0-9]{1,3})?"
WrittenBox = Annotated[str, Field(pattern=rf"^({_SIDE},){{3}}{_SIDE}$")]


class Width(IntEnum):
    """For rows of a list, for a column beside a text, and for reading the picture; few, because each is kept."""

    SMALL = 120
    MEDIUM = 800
    LARGE = 1600


Boxes = Annotated[
    list[WrittenBox],
    Query(
        default_factory=list,
        max_length=MOST_BOXES,
        description="A place that is marked: left,top,right,bottom in points from the upper left corner of the page.",
    ),
]
HEADERS = {
    "cache-control": f"private, max-age={DAY_SECONDS}",
    # Only for whoever has the same cookie or key: who signs out leaves nothing that the next one is shown.
    "vary": "cookie, authorization",
    # Instead of the policy of pages, which forbids how browsers lay out a picture that is opened by itself.
    "content-security-policy": "sandbox",
}
PICTURE = {200: {"description": "The picture", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}}
UNCHANGED = {304: {"description": "The picture is the one whose ETag was sent"}}


@router.get(
    "/{document}/pages/{number}.png",
    response_class=Response,
    responses={**PICTURE, **UNCHANGED, **problems(401, 404, 409, 413, 422)},
)
async def page_picture(
    parts: PartsOf,
    caller: Reading,
    document: UUID,
    number: Annotated[int, Path(ge=1, le=1_000_000)],
    box: Boxes,
    width: Annotated[Width, Query(description="Pixels across, at most.")] = Width.LARGE,
    chunk: Annotated[UUID | None, Query(description="A passage whose places on the page are marked.")] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """A page of a PDF or of an image as a picture, with boxes on it if they are asked for."""
    wanted = Wanted(caller.owner_id, document, number, width)
    boxes = [Box(*map(float, one.split(","))) for one in box]
    if chunk:
        async with parts.database.connection() as connection:
            boxes += [Box(*one) for one in await find_boxes(connection, caller.owner_id, document, chunk, number)]
    picture = await parts.pictures.find(wanted)
    etag = f'"{_digest(picture.sha256, boxes)}"'
    headers = {"etag": etag, **HEADERS}
    if is_known(etag, if_none_match):
        return Response(status_code=304, headers=headers)
    return await _answer(parts, wanted, boxes, headers)


async def _answer(parts: Parts, wanted: Wanted, boxes: list[Box], headers: dict[str, str]) -> Response:
    if boxes:
        return Response(await parts.pictures.mark(wanted, boxes), headers=headers, media_type=MEDIA_TYPE)
    _, stream = await parts.pictures.stream(wanted)
    length = {"content-length": str(stream.info.bytes)}
    return StreamingResponse(stream, headers=headers | length, media_type=MEDIA_TYPE)


def _digest(picture: str, boxes: list[Box]) -> str:
    """Names the picture with its boxes, without drawing it."""
    return sha256(f"{picture} {boxes}".encode()).hexdigest() if boxes else picture
