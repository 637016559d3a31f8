"""Anthropic's Messages API."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from pydantic import BaseModel

from octavo.ai.calls import FileReference, Part, Picture, Quoted, Request, Words
from octavo.ai.faults import ProviderFault, Usage, read_ending
from octavo.ai.providers.http_client import Wire
from octavo.ai.providers.provider import Reply, Sight

FAMILY = "anthropic"
API_VERSION = "2023-06-01"
# What the present models can write at once; who asks for more is refused.
MOST_TOKENS = 64_000


class Counts(BaseModel):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Block(BaseModel):
    type: str
    text: str = ""


class Message(BaseModel):
    content: list[Block]
    stop_reason: str
    usage: Counts


@dataclass(frozen=True, slots=True)
class Anthropic:
    wire: Wire
    url: str
    key: str

    sight: ClassVar[Sight] = Sight(pixels=1568, pages=100)

    async def generate(self, model: str, request: Request, owner: UUID, seconds: float) -> Reply:
        del owner
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": min(request.output_tokens, MOST_TOKENS),
            "system": request.instructions,
            "messages": [{"role": "user", "content": [await _part(part) for part in request.parts]}],
        }
        if request.schema:
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        headers = {"x-api-key": self.key, "anthropic-version": API_VERSION}
        heard = await self.wire.post(FAMILY, f"{self.url}/v1/messages", body, headers, seconds)
        return _read_reply(heard.read_as(Message))


async def _part(part: Part) -> dict[str, Any]:
    match part:
        case Words():
            return {"type": "text", "text": part.text}
        case Quoted():
            return {"type": "text", "text": part.fenced}
        case Picture():
            return {"type": "image", "source": _source(part.media_type, part.data)}
        case FileReference():
            return {"type": "document", "source": _source(part.media_type, await part.read())}


def _source(media_type: str, data: bytes) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": b64encode(data).decode()}


def _read_reply(answer: Message) -> Reply:
    counts = answer.usage
    read = counts.input_tokens + (counts.cache_read_input_tokens or 0) + (counts.cache_creation_input_tokens or 0)
    usage = Usage(read, counts.output_tokens, counts.cache_read_input_tokens or 0)
    if fault := read_ending(FAMILY, answer.stop_reason):
        raise ProviderFault(fault, usage)
    return Reply("".join(block.text for block in answer.content if block.type == "text"), usage)
