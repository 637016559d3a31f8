"""Calls the API of OpenAI and of compatible servers, such as Ollama and vLLM."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field

from octavo.ai.calls import (
    CHARACTERS_PER_TOKEN,
    FileReference,
    InstructionText,
    ModelRequest,
    Part,
    Picture,
    QuotedText,
)
from octavo.ai.faults import Fault, ProviderFault, TokenUsage, classify_finish
from octavo.ai.providers.provider import (
    END_OF_STREAM,
    EmbeddingReply,
    HttpClient,
    ModelReply,
    OnText,
    VisionLimits,
    follow_text,
    unit_vector,
)
from octavo.core.http import ServerSentEvent

FAMILY = "openai"
# Models that reason. Their reasoning is billed as output, so it is kept short.
REASONING_MODELS = ("gpt-5", "o1", "o3", "o4")
REASONING_TOKENS = 4000
# Natural text has three to five.
MOST_CHARACTERS_PER_TOKEN = 7
_REPEATED = re.compile(r"(.)\1{2,}", re.DOTALL)


class TokenDetails(BaseModel):
    cached_tokens: int | None = 0


class Counts(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: Annotated[TokenDetails, BeforeValidator(lambda value: value or {})] = TokenDetails()


class Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class Choice(BaseModel):
    message: Message
    finish_reason: str


class Completion(BaseModel):
    choices: list[Choice] = Field(min_length=1)
    usage: Counts = Counts()


class StreamedChoice(BaseModel):
    delta: Message = Message()
    finish_reason: str | None = None


class CompletionChunk(BaseModel):
    """An event of a streamed answer. The last event with choices contains the finish reason. Another event with the
    token usage may follow.
    """

    choices: list[StreamedChoice] = []
    usage: Counts | None = None


class Row(BaseModel):
    index: int
    embedding: list[float]


class Embeddings(BaseModel):
    data: list[Row]
    usage: Counts = Counts()


@dataclass(frozen=True, slots=True)
class Compatible:
    """A server with an OpenAI-compatible API. Uses only the subset of the API that all such servers support."""

    http: HttpClient
    url: str
    key: str | None
    context_tokens: int | None = None

    # Self-hosted models accept only a few pictures per call, and no PDFs.
    vision_limits: ClassVar[VisionLimits] = VisionLimits(pixels=2048, pages=5, pdfs=False)
    dialect: ClassVar[dict[str, Any]] = {}
    limit_name: ClassVar[str] = "max_tokens"
    # Some servers cut a prompt that is too long without an error.
    cuts_silently: ClassVar[bool] = True

    async def generate(
        self, model: str, request: ModelRequest, owner: UUID, seconds: float, on_text: OnText | None = None
    ) -> ModelReply:
        del owner
        body = {**self.dialect, "model": model, "messages": await _messages(request), **self._limits(model, request)}
        if request.schema:
            form = {"name": request.purpose, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if on_text:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        address, following = self.address(model, "chat/completions"), follow_text(on_text, _text_of_event)
        reply = await self.http.post(FAMILY, address, body, await self.headers(seconds), seconds, following)
        read = _read_reply(
            _join(reply.read_events_as(CompletionChunk), request) if reply.events else reply.read_as(Completion)
        )
        if self.cuts_silently and (fault := self._find_cut(request, read.usage)):
            raise ProviderFault(fault, read.usage)
        return read

    def _find_cut(self, request: ModelRequest, usage: TokenUsage) -> Fault | None:
        """Return the fault if the token counts show that the server truncated the prompt or the answer.

        Returns None if neither was truncated.
        """
        if usage.output >= request.output_tokens:
            return Fault.TRUNCATED
        full = self.context_tokens and usage.input + usage.output >= self.context_tokens
        cut = 0 < usage.input < _least_tokens(request)
        return Fault.TOO_LONG if full or cut else None

    async def embed(self, model: str, texts: Sequence[str], seconds: float) -> EmbeddingReply:
        body = {"model": model, "input": list(texts)}
        headers = await self.headers(seconds)
        reply = await self.http.post(FAMILY, self.address(model, "embeddings"), body, headers, seconds)
        answer = reply.read_as(Embeddings)
        rows = sorted(answer.data, key=lambda row: row.index)
        return EmbeddingReply(
            [unit_vector(row.embedding) for row in rows], TokenUsage(input=answer.usage.prompt_tokens)
        )

    def _limits(self, model: str, request: ModelRequest) -> dict[str, Any]:
        del model
        return {self.limit_name: request.output_tokens}

    def address(self, model: str, operation: str) -> str:
        """Return the URL of an operation. Some servers have a separate URL for each model."""
        del model
        return f"{self.url}/{operation}"

    async def headers(self, seconds: float) -> dict[str, str]:
        """Return the headers with the credentials. Some servers require a token that must be requested first."""
        del seconds
        return {"authorization": f"Bearer {self.key}"} if self.key else {}


@dataclass(frozen=True, slots=True)
class OpenAI(Compatible):
    vision_limits: ClassVar[VisionLimits] = VisionLimits(pixels=2048, pages=100)
    dialect: ClassVar[dict[str, Any]] = {"store": False}
    limit_name: ClassVar[str] = "max_completion_tokens"
    cuts_silently: ClassVar[bool] = False

    def _limits(self, model: str, request: ModelRequest) -> dict[str, Any]:
        if not model.startswith(REASONING_MODELS):
            return {self.limit_name: request.output_tokens}
        return {self.limit_name: request.output_tokens + REASONING_TOKENS, "reasoning_effort": "low"}


def _least_tokens(request: ModelRequest) -> int:
    """Return the smallest number of tokens that the prompt can have.

    If the server reports fewer, it truncated the prompt. Runs of dots or spaces are shortened before counting, because
    a whole run can be a single token.
    """
    written = [part.text for part in request.parts if isinstance(part, InstructionText | QuotedText)]
    texts = [request.instructions, *written]
    return sum(len(_REPEATED.sub(r"\1\1", text)) for text in texts) // MOST_CHARACTERS_PER_TOKEN


async def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": request.instructions},
        {"role": "user", "content": [await _part(part) for part in request.parts]},
    ]


async def _part(part: Part) -> dict[str, Any]:
    match part:
        case InstructionText():
            return {"type": "text", "text": part.text}
        case QuotedText():
            return {"type": "text", "text": part.fenced}
        case Picture():
            return {"type": "image_url", "image_url": {"url": _data_url(part.media_type, part.data)}}
        case FileReference():
            data = _data_url(part.media_type, await part.read())
            return {"type": "file", "file": {"filename": "document.pdf", "file_data": data}}


def _text_of_event(event: ServerSentEvent) -> str:
    if event.data == END_OF_STREAM:
        return ""
    chunk = CompletionChunk.model_validate_json(event.data)
    return "".join(one.delta.content or "" for one in chunk.choices[:1])


def _join(chunks: Sequence[CompletionChunk], request: ModelRequest) -> Completion:
    """Join the events of a streamed answer. If the server does not report the token usage, it is estimated."""
    choices = [one for chunk in chunks for one in chunk.choices[:1]]
    reason = next((one.finish_reason for one in reversed(choices) if one.finish_reason), None)
    if reason is None:
        raise ProviderFault(Fault.CUT_OFF, usage=None)
    text = "".join(one.delta.content or "" for one in choices)
    refusal = "".join(one.delta.refusal or "" for one in choices) or None
    usage = next((chunk.usage for chunk in reversed(chunks) if chunk.usage), None)
    estimate = Counts(prompt_tokens=request.input_tokens, completion_tokens=len(text) // CHARACTERS_PER_TOKEN)
    message = Message(content=text, refusal=refusal)
    return Completion(choices=[Choice(message=message, finish_reason=reason)], usage=usage or estimate)


def _data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{b64encode(data).decode()}"


def _read_reply(answer: Completion) -> ModelReply:
    counts, choice = answer.usage, answer.choices[0]
    usage = TokenUsage(counts.prompt_tokens, counts.completion_tokens, counts.prompt_tokens_details.cached_tokens or 0)
    fault = Fault.BLOCKED if choice.message.refusal else classify_finish(FAMILY, choice.finish_reason)
    if fault:
        raise ProviderFault(fault, usage)
    return ModelReply(choice.message.content or "", usage)
