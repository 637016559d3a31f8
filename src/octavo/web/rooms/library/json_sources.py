"""Documents that are added as JSON instead of a file: a link, a video or text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from dataclasses import replace
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from octavo.core.errors import BadInput, TooLarge
from octavo.core.types import Extraction
from octavo.intake.links import link_source, paste_source, video_source
from octavo.intake.links.sources import NewSource
from octavo.intake.upload_rows import Policy, with_details
from octavo.web.http.parameters import ExtractionField
from octavo.web.http.problems import describe_validation_errors

# Longer texts are added as a file.
PASTE_BYTES = 16 << 20
# JSON may escape a two-byte character as six bytes.
_JSON_FACTOR = 3
_ADDRESS_BYTES = 64 << 10
Line = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Origin = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00-\x1f\x7f]*$")]
_ANY_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class JsonSource(BaseModel):
    """A document sent as JSON. `source` says where the document comes from: a description or a URL."""

    model_config = ConfigDict(extra="forbid", strict=True)
    key: ClassVar[str]

    title: Line | None = None
    source: Origin | None = None
    duplicates: Policy = "reuse"
    extraction: ExtractionField = Extraction.PLAIN
    version_of: Annotated[UUID, Field(strict=False)] | None = None

    def as_source(self, allow: frozenset[str]) -> NewSource:
        raise NotImplementedError


class LinkSource(JsonSource):
    """A web page, or the transcript of a video if `url` is the address of a YouTube video."""

    key = "url"
    url: str = Field(min_length=1)

    def as_source(self, allow: frozenset[str]) -> NewSource:
        return link_source(self.url, allow=allow, title=self.title, duplicates=self.duplicates)


class VideoSource(JsonSource):
    """The transcript of a YouTube video."""

    key = "youtube_url"
    youtube_url: str = Field(min_length=1)

    def as_source(self, allow: frozenset[str]) -> NewSource:
        del allow
        return video_source(self.youtube_url, title=self.title, duplicates=self.duplicates)


class TextSource(JsonSource):
    """Pasted text."""

    key = "text"
    text: str

    def as_source(self, allow: frozenset[str]) -> NewSource:
        del allow
        return paste_source(self.text, title=self.title, attribution=self.source, duplicates=self.duplicates)


_KINDS: dict[str, type[JsonSource]] = {kind.key: kind for kind in (LinkSource, VideoSource, TextSource)}
# Refers to the types in the OpenAPI description.
SOURCES = tuple(_KINDS.values())
SCHEMA: dict[str, Any] = {"oneOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in SOURCES]}


async def read_json_source(body: AsyncIterable[bytes], upload_bytes: int, allow: frozenset[str]) -> NewSource:
    """Read a source from a JSON body. Stops reading as soon as the body is longer than any valid source."""
    limit = min(upload_bytes, PASTE_BYTES)
    read = bytearray()
    async for chunk in body:
        read += chunk
        if len(read) > _JSON_FACTOR * limit + _ADDRESS_BYTES:
            raise _too_long(limit)
    source = await asyncio.to_thread(lambda: _read_source(_parse(bytes(read)), allow))
    if len(source.body) > limit:
        raise _too_long(limit)
    return source


def _read_source(given: JsonSource, allow: frozenset[str]) -> NewSource:
    source = given.as_source(allow)
    extraction = None if given.extraction is Extraction.PLAIN else given.extraction
    upload = with_details(source.upload, source=given.source, extraction=extraction)
    return replace(source, upload=replace(upload, version_of=given.version_of))


def _parse(body: bytes) -> JsonSource:
    try:
        fields = _ANY_OBJECT.validate_json(body)
        present = [name for name in _KINDS if fields.get(name) is not None]
        if len(present) != 1:
            raise BadInput("Send exactly one of `url`, `youtube_url` and `text`.")
        return _KINDS[present[0]].model_validate(fields)
    except ValidationError as error:
        raise BadInput(describe_validation_errors(error.errors())) from None


def _too_long(limit: int) -> TooLarge:
    return TooLarge(f"Pasted text is limited to {limit:,} bytes. Add longer text as a file.")
