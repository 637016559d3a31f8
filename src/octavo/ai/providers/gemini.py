"""Calls the Google Gemini API for answers and embeddings.

`gemini_files` uploads files, which Google keeps for two days.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from octavo.ai.calls import FileReference, InstructionText, ModelRequest, Part, Picture, QuotedText
from octavo.ai.faults import Fault, ProviderFault, TokenUsage, classify_finish
from octavo.ai.providers.gemini_files import FAMILY, GeminiFiles
from octavo.ai.providers.http_client import HttpClient, HttpReply
from octavo.ai.providers.provider import EmbeddingReply, ModelReply, VisionLimits, unit_vector

DIMENSIONS = 768
# Used when the API does not report the token count of an embedding call.
CHARACTERS_PER_TOKEN = 4
# Thinking is billed as output, and these tasks gain nothing from it. The first matching prefix wins.
THINKING: dict[str, dict[str, Any]] = {
    "gemini-2.5-pro": {"thinkingBudget": 128},
    "gemini-2.5": {"thinkingBudget": 0},
    "gemini-3": {"thinkingLevel": "low"},
}


class ApiModel(BaseModel):
    """Base class of all response types. Google omits empty fields, so they have defaults."""

    model_config = ConfigDict(alias_generator=to_camel)


class ContentPart(ApiModel):
    text: str = ""
    thought: bool = False


class Content(ApiModel):
    parts: list[ContentPart] = []


class Candidate(ApiModel):
    content: Content = Content()
    finish_reason: str = ""


class Feedback(ApiModel):
    block_reason: str = ""


class Counts(ApiModel):
    prompt_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0
    cached_content_token_count: int = 0


class GenerateReply(ApiModel):
    candidates: list[Candidate] = []
    prompt_feedback: Feedback = Feedback()
    usage_metadata: Counts = Counts()


class Vector(ApiModel):
    values: list[float]


class Embeddings(ApiModel):
    embeddings: list[Vector]
    usage_metadata: Counts = Counts()


@dataclass(frozen=True, slots=True)
class Gemini:
    http: HttpClient
    url: str
    key: str
    files: GeminiFiles

    vision_limits: ClassVar[VisionLimits] = VisionLimits(pixels=3072, pages=1000)

    async def generate(self, model: str, request: ModelRequest, owner: UUID, seconds: float) -> ModelReply:
        """Call the model. If Google no longer has a file, upload it again and repeat the call."""
        try:
            return await self._generate(model, request, owner, seconds)
        except ProviderFault as fault:
            if fault.fault is not Fault.FILE_GONE:
                raise
        for part in request.parts:
            if isinstance(part, FileReference):
                await self.files.forget(owner, part)
        return await self._generate(model, request, owner, seconds)

    async def _generate(self, model: str, request: ModelRequest, owner: UUID, seconds: float) -> ModelReply:
        form = {"responseMimeType": "application/json", "responseJsonSchema": request.schema} if request.schema else {}
        thinking = next((how for prefix, how in THINKING.items() if model.startswith(prefix)), None)
        body = {
            "systemInstruction": {"parts": [{"text": request.instructions}]},
            "contents": [{"role": "user", "parts": [await self._part(part, owner) for part in request.parts]}],
            "generationConfig": {
                "maxOutputTokens": request.output_tokens,
                **form,
                **({"thinkingConfig": thinking} if thinking else {}),
            },
        }
        return _read_reply((await self._post(f"{model}:generateContent", body, seconds)).read_as(GenerateReply))

    async def embed(self, model: str, texts: Sequence[str], seconds: float) -> EmbeddingReply:
        requests = [
            {
                "model": f"models/{model}",
                "content": {"parts": [{"text": text}]},
                "taskType": "SEMANTIC_SIMILARITY",
                "outputDimensionality": DIMENSIONS,
            }
            for text in texts
        ]
        reply = await self._post(f"{model}:batchEmbedContents", {"requests": requests}, seconds)
        answer = reply.read_as(Embeddings)
        tokens_in = answer.usage_metadata.prompt_token_count or sum(map(len, texts)) // CHARACTERS_PER_TOKEN
        return EmbeddingReply([unit_vector(one.values) for one in answer.embeddings], TokenUsage(input=tokens_in))

    async def _post(self, method: str, body: dict[str, Any], seconds: float) -> HttpReply:
        headers = {"x-goog-api-key": self.key}
        return await self.http.post(FAMILY, f"{self.url}/v1beta/models/{method}", body, headers, seconds)

    async def _part(self, part: Part, owner: UUID) -> dict[str, Any]:
        match part:
            case InstructionText():
                return {"text": part.text}
            case QuotedText():
                return {"text": part.fenced}
            case Picture():
                return {"inlineData": {"mimeType": part.media_type, "data": b64encode(part.data).decode()}}
            case FileReference():
                uploaded = await self.files.upload(owner, part)
                return {"fileData": {"mimeType": part.media_type, "fileUri": uploaded.uri}}


def _read_reply(answer: GenerateReply) -> ModelReply:
    counts = answer.usage_metadata
    tokens_out = counts.candidates_token_count + counts.thoughts_token_count
    usage = TokenUsage(counts.prompt_token_count, tokens_out, counts.cached_content_token_count)
    if answer.prompt_feedback.block_reason:
        raise ProviderFault(Fault.BLOCKED, usage)
    if not answer.candidates:
        raise ProviderFault(Fault.MALFORMED, usage)
    candidate = answer.candidates[0]
    if fault := classify_finish(FAMILY, candidate.finish_reason):
        raise ProviderFault(fault, usage)
    return ModelReply("".join(part.text for part in candidate.content.parts if not part.thought), usage)
