"""Downloads by signed link, for buckets that cannot sign links of their own: streamed, saved and never shown."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from octavo.web.downloads import attachment
from octavo.web.parts import PartsOf

router = APIRouter(include_in_schema=False)


@router.get("/objects/{key:path}")
async def download(request: Request, key: str, parts: PartsOf) -> StreamingResponse:
    link = await parts.bucket.verify_link(request.method, key, request.query_params)
    stream = await parts.bucket.stream(link.key)
    return attachment(stream, link.filename, link.content_type)
