"""What is given as JSON instead of a file: a link, a video, or text."""

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
from octavo.intake.links.sources import GivenSource
from octavo.intake.uploads import Policy
from octavo.web.http.parameters import HowToRead
from octavo.web.http.problems import describe_mistakes

# What is longer than a book is a file.
PASTE_BYTES = 16 << 20
# JSON may write one letter in six bytes where the text has two.
_JSON_FACTOR = 3
_ADDRESS_BYTES = 64 << 10
Line = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
_ANY_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    key: ClassVar[str]

    title: Line | None = None
    duplicates: Policy = "reuse"
    extraction: HowToRead = Extraction.PLAIN
    version_of: Annotated[UUID, Field(strict=False)] | None = None

    def as_source(self, allow: frozenset[str]) -> GivenSource:
        raise NotImplementedError


class LinkGiven(Given):
    """A web page, or a video where the address is one."""

    key = "url"
    url: str = Field(min_length=1)

    def as_source(self, allow: frozenset[str]) -> GivenSource:
        return link_source(self.url, allow=allow, title=self.title, duplicates=self.duplicates)


class VideoGiven(Given):
    """A YouTube video, by its transcript."""

    key = "youtube_url"
    youtube_url: str = Field(min_length=1)

    def as_source(self, allow: frozenset[str]) -> GivenSource:
        del allow
        return video_source(self.youtube_url, title=self.title, duplicates=self.duplicates)


class TextGiven(Given):
    """Pasted text; `source` says where it is from."""

    key = "text"
    text: str
    source: Annotated[str, Field(max_length=2000, pattern=r"^[^\x00-\x1f\x7f]*$")] | None = None

    def as_source(self, allow: frozenset[str]) -> GivenSource:
        del allow
        return paste_source(self.text, title=self.title, attribution=self.source, duplicates=self.duplicates)


_KINDS: dict[str, type[Given]] = {kind.key: kind for kind in (LinkGiven, VideoGiven, TextGiven)}
GIVEN: dict[str, Any] = {"oneOf": [kind.model_json_schema() for kind in _KINDS.values()]}


async def read_given(body: AsyncIterable[bytes], upload_bytes: int, allow: frozenset[str]) -> GivenSource:
    """Read to its end, or until it is certainly too much."""
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


def _read_source(given: Given, allow: frozenset[str]) -> GivenSource:
    source = given.as_source(allow)
    upload = replace(source.upload, version_of=given.version_of)
    if given.extraction is not Extraction.PLAIN:
        upload = replace(upload, given={**upload.given, "extraction": given.extraction})
    return replace(source, upload=upload)


def _parse(body: bytes) -> Given:
    try:
        said = _ANY_OBJECT.validate_json(body)
        present = [name for name in _KINDS if said.get(name) is not None]
        if len(present) != 1:
            raise BadInput("Give exactly one of `url`, `youtube_url` and `text`.")
        return _KINDS[present[0]].model_validate(said)
    except ValidationError as error:
        raise BadInput(describe_mistakes(error.errors())) from None


def _too_long(limit: int) -> TooLarge:
    return TooLarge(f"At most {limit:,} bytes of text can be pasted; add more than that as a file.")
