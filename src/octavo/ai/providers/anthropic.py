"""Calls Anthropic's Messages API."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from pydantic import BaseModel

from octavo.ai.calls import FileReference, InstructionText, ModelRequest, Part, Picture, QuotedText
from octavo.ai.faults import Fault, ProviderFault, TokenUsage, classify_finish
from octavo.ai.providers.provider import HttpClient, ModelReply, OnText, VisionLimits, follow_text
from octavo.core.http import ServerSentEvent

FAMILY = "anthropic"
API_VERSION = "2023-06-01"
# The output limit of the current models; the API refuses requests for more.
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


class StreamedCounts(BaseModel):
    """Token counts in one event of a streamed answer. Counts are cumulative. Most events contain only some of them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class StreamedPart(BaseModel):
    text: str = ""
    stop_reason: str | None = None


class StreamedMessage(BaseModel):
    usage: StreamedCounts = StreamedCounts()


class StreamEvent(BaseModel):
    type: str
    message: StreamedMessage = StreamedMessage()
    delta: StreamedPart = StreamedPart()
    usage: StreamedCounts = StreamedCounts()


@dataclass(frozen=True, slots=True)
class Anthropic:
    http: HttpClient
    url: str
    key: str

    vision_limits: ClassVar[VisionLimits] = VisionLimits(pixels=1568, pages=100)

    async def generate(
        self, model: str, request: ModelRequest, owner: UUID, seconds: float, on_text: OnText | None = None
    ) -> ModelReply:
        del owner
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": min(request.output_tokens, MOST_TOKENS),
            "system": request.instructions,
            "messages": [{"role": "user", "content": [await _part(part) for part in request.parts]}],
        }
        if request.schema:
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        if on_text:
            body["stream"] = True
        headers = {"x-api-key": self.key, "anthropic-version": API_VERSION}
        address, following = f"{self.url}/v1/messages", follow_text(on_text, _text_of_event)
        reply = await self.http.post(FAMILY, address, body, headers, seconds, following)
        return _read_reply(_join(reply.read_events_as(StreamEvent)) if reply.events else reply.read_as(Message))


async def _part(part: Part) -> dict[str, Any]:
    match part:
        case InstructionText():
            return {"type": "text", "text": part.text}
        case QuotedText():
            return {"type": "text", "text": part.fenced}
        case Picture():
            return {"type": "image", "source": _source(part.media_type, part.data)}
        case FileReference():
            return {"type": "document", "source": _source(part.media_type, await part.read())}


def _text_of_event(event: ServerSentEvent) -> str:
    return StreamEvent.model_validate_json(event.data).delta.text


def _join(events: Sequence[StreamEvent]) -> Message:
    reason = next((one.delta.stop_reason for one in reversed(events) if one.delta.stop_reason), None)
    if reason is None:  # the stream ended early, or with an event of the type `error`
        overloaded = any(one.type == "error" for one in events)
        raise ProviderFault(Fault.OVERLOADED if overloaded else Fault.CUT_OFF, usage=None)
    counts: dict[str, int] = {"input_tokens": 0, "output_tokens": 0}
    for one in events:
        counts |= one.message.usage.model_dump(exclude_none=True) | one.usage.model_dump(exclude_none=True)
    text = "".join(one.delta.text for one in events)
    return Message(content=[Block(type="text", text=text)], stop_reason=reason, usage=Counts(**counts))


def _source(media_type: str, data: bytes) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": b64encode(data).decode()}


def _read_reply(answer: Message) -> ModelReply:
    counts = answer.usage
    tokens_in = counts.input_tokens + (counts.cache_read_input_tokens or 0) + (counts.cache_creation_input_tokens or 0)
    usage = TokenUsage(tokens_in, counts.output_tokens, counts.cache_read_input_tokens or 0)
    if fault := classify_finish(FAMILY, answer.stop_reason):
        raise ProviderFault(fault, usage)
    return ModelReply("".join(block.text for block in answer.content if block.type == "text"), usage)
