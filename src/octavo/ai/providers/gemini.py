"""Google's Gemini: answers and vectors. Files go through `gemini_files`, because it keeps them for two days."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from octavo.ai.calls import FileReference, Part, Picture, Quoted, Request, Words
from octavo.ai.faults import Fault, ProviderFault, Usage, read_ending
from octavo.ai.providers.gemini_files import FAMILY, GeminiFiles
from octavo.ai.providers.http_client import Heard, Wire
from octavo.ai.providers.provider import Embedded, Reply, Sight, of_length_one

DIMENSIONS = 768
# It does not always say what it counted for vectors.
CHARACTERS_A_TOKEN = 4
# Thinking is paid for like answering; these tasks gain nothing by it. The first beginning of a name that fits is meant.
THINKING: dict[str, dict[str, Any]] = {
    "gemini-2.5-pro": {"thinkingBudget": 128},
    "gemini-2.5": {"thinkingBudget": 0},
    "gemini-3": {"thinkingLevel": "low"},
}


class Form(BaseModel):
    """Google leaves out what is empty."""

    model_config = ConfigDict(alias_generator=to_camel)


class Piece(Form):
    text: str = ""
    thought: bool = False


class Content(Form):
    parts: list[Piece] = []


class Candidate(Form):
    content: Content = Content()
    finish_reason: str = ""


class Feedback(Form):
    block_reason: str = ""


class Counts(Form):
    prompt_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0
    cached_content_token_count: int = 0


class Generated(Form):
    candidates: list[Candidate] = []
    prompt_feedback: Feedback = Feedback()
    usage_metadata: Counts = Counts()


class Vector(Form):
    values: list[float]


class Embeddings(Form):
    embeddings: list[Vector]
    usage_metadata: Counts = Counts()


@dataclass(frozen=True, slots=True)
class Gemini:
    wire: Wire
    url: str
    key: str
    files: GeminiFiles

    sight: ClassVar[Sight] = Sight(pixels=3072, pages=1000)

    async def generate(self, model: str, request: Request, owner: UUID, seconds: float) -> Reply:
        """A file that is no longer there, whatever we know of it, is sent again once."""
        try:
            return await self._generate(model, request, owner, seconds)
        except ProviderFault as fault:
            if fault.fault is not Fault.FILE_GONE:
                raise
        for part in request.parts:
            if isinstance(part, FileReference):
                await self.files.forget(owner, part)
        return await self._generate(model, request, owner, seconds)

    async def _generate(self, model: str, request: Request, owner: UUID, seconds: float) -> Reply:
        form = {"responseMimeType": "application/json", "responseJsonSchema": request.schema} if request.schema else {}
        thinking = next((how for begin, how in THINKING.items() if model.startswith(begin)), None)
        body = {
            "systemInstruction": {"parts": [{"text": request.instructions}]},
            "contents": [{"role": "user", "parts": [await self._part(part, owner) for part in request.parts]}],
            "generationConfig": {
                "maxOutputTokens": request.output_tokens,
                **form,
                **({"thinkingConfig": thinking} if thinking else {}),
            },
        }
        return _read_reply((await self._post(f"{model}:generateContent", body, seconds)).read_as(Generated))

    async def embed(self, model: str, texts: Sequence[str], seconds: float) -> Embedded:
        requests = [
            {
                "model": f"models/{model}",
                "content": {"parts": [{"text": text}]},
                "taskType": "SEMANTIC_SIMILARITY",
                "outputDimensionality": DIMENSIONS,
            }
            for text in texts
        ]
        heard = await self._post(f"{model}:batchEmbedContents", {"requests": requests}, seconds)
        answer = heard.read_as(Embeddings)
        read = answer.usage_metadata.prompt_token_count or sum(map(len, texts)) // CHARACTERS_A_TOKEN
        return Embedded([of_length_one(one.values) for one in answer.embeddings], Usage(read=read))

    async def _post(self, method: str, body: dict[str, Any], seconds: float) -> Heard:
        headers = {"x-goog-api-key": self.key}
        return await self.wire.post(FAMILY, f"{self.url}/v1beta/models/{method}", body, headers, seconds)

    async def _part(self, part: Part, owner: UUID) -> dict[str, Any]:
        match part:
            case Words():
                return {"text": part.text}
            case Quoted():
                return {"text": part.fenced}
            case Picture():
                return {"inlineData": {"mimeType": part.media_type, "data": b64encode(part.data).decode()}}
            case FileReference():
                kept = await self.files.keep(owner, part)
                return {"fileData": {"mimeType": part.media_type, "fileUri": kept.uri}}


def _read_reply(answer: Generated) -> Reply:
    counts = answer.usage_metadata
    written = counts.candidates_token_count + counts.thoughts_token_count
    usage = Usage(counts.prompt_token_count, written, counts.cached_content_token_count)
    if answer.prompt_feedback.block_reason:
        raise ProviderFault(Fault.BLOCKED, usage)
    if not answer.candidates:
        raise ProviderFault(Fault.MALFORMED, usage)
    candidate = answer.candidates[0]
    if fault := read_ending(FAMILY, candidate.finish_reason):
        raise ProviderFault(fault, usage)
    return Reply("".join(part.text for part in candidate.content.parts if not part.thought), usage)
