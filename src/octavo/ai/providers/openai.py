"""OpenAI, and every server that speaks its language: Ollama, vLLM, and many others."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field

from octavo.ai.calls import FileReference, Part, Picture, Quoted, Request, Words
from octavo.ai.faults import Fault, ProviderFault, Usage, read_ending
from octavo.ai.providers.http_client import Wire
from octavo.ai.providers.provider import Embedded, Reply, Sight, of_length_one

FAMILY = "openai"
# Models that think before they answer: what they think counts as answered, and is kept short.
THINKING = ("gpt-5", "o1", "o3", "o4")
THINKING_TOKENS = 4000


class Details(BaseModel):
    cached_tokens: int | None = 0


class Counts(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: Annotated[Details, BeforeValidator(lambda given: given or {})] = Details()


class Said(BaseModel):
    content: str | None = None
    refusal: str | None = None


class Choice(BaseModel):
    message: Said
    finish_reason: str


class Completion(BaseModel):
    choices: list[Choice] = Field(min_length=1)
    usage: Counts = Counts()


class Row(BaseModel):
    index: int
    embedding: list[float]


class Embeddings(BaseModel):
    data: list[Row]
    usage: Counts = Counts()


@dataclass(frozen=True, slots=True)
class Compatible:
    """What all such servers understand."""

    wire: Wire
    url: str
    key: str | None

    # What is run at home sees pictures at most, and few of them at once.
    sight: ClassVar[Sight] = Sight(pixels=2048, pages=5, pdfs=False)
    dialect: ClassVar[dict[str, Any]] = {}
    limit_name: ClassVar[str] = "max_tokens"

    async def generate(self, model: str, request: Request, owner: UUID, seconds: float) -> Reply:
        del owner
        body = {**self.dialect, "model": model, "messages": await _messages(request), **self._limits(model, request)}
        if request.schema:
            form = {"name": request.purpose, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        heard = await self.wire.post(FAMILY, f"{self.url}/chat/completions", body, self._headers(), seconds)
        return _read_reply(heard.read_as(Completion))

    async def embed(self, model: str, texts: Sequence[str], seconds: float) -> Embedded:
        body = {"model": model, "input": list(texts)}
        heard = await self.wire.post(FAMILY, f"{self.url}/embeddings", body, self._headers(), seconds)
        answer = heard.read_as(Embeddings)
        rows = sorted(answer.data, key=lambda row: row.index)
        return Embedded([of_length_one(row.embedding) for row in rows], Usage(read=answer.usage.prompt_tokens))

    def _limits(self, model: str, request: Request) -> dict[str, Any]:
        del model
        return {self.limit_name: request.output_tokens}

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"} if self.key else {}


@dataclass(frozen=True, slots=True)
class OpenAI(Compatible):
    sight: ClassVar[Sight] = Sight(pixels=2048, pages=100)
    dialect: ClassVar[dict[str, Any]] = {"store": False}
    limit_name: ClassVar[str] = "max_completion_tokens"

    def _limits(self, model: str, request: Request) -> dict[str, Any]:
        if not model.startswith(THINKING):
            return {self.limit_name: request.output_tokens}
        return {self.limit_name: request.output_tokens + THINKING_TOKENS, "reasoning_effort": "low"}


async def _messages(request: Request) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": request.instructions},
        {"role": "user", "content": [await _part(part) for part in request.parts]},
    ]


async def _part(part: Part) -> dict[str, Any]:
    match part:
        case Words():
            return {"type": "text", "text": part.text}
        case Quoted():
            return {"type": "text", "text": part.fenced}
        case Picture():
            return {"type": "image_url", "image_url": {"url": _data_url(part.media_type, part.data)}}
        case FileReference():
            data = _data_url(part.media_type, await part.read())
            return {"type": "file", "file": {"filename": "document.pdf", "file_data": data}}


def _data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{b64encode(data).decode()}"


def _read_reply(answer: Completion) -> Reply:
    counts, choice = answer.usage, answer.choices[0]
    usage = Usage(counts.prompt_tokens, counts.completion_tokens, counts.prompt_tokens_details.cached_tokens or 0)
    fault = Fault.BLOCKED if choice.message.refusal else read_ending(FAMILY, choice.finish_reason)
    if fault:
        raise ProviderFault(fault, usage)
    return Reply(choice.message.content or "", usage)
