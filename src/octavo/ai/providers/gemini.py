"""Calls the Google Gemini API for answers and embeddings, and uploads files, which Google keeps for two days."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar
from uuid import UUID
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from octavo.ai.calls import FileReference, InstructionText, ModelRequest, Part, Picture, QuotedText
from octavo.ai.faults import Fault, ProviderFault, TokenUsage, classify_finish
from octavo.ai.providers.provider import (
    EmbeddingReply,
    HttpClient,
    HttpReply,
    ModelReply,
    OnEvent,
    OnText,
    VisionLimits,
    follow_text,
    unit_vector,
)
from octavo.core.http import ServerSentEvent
from octavo.database import Database, load_queries

QUERIES = load_queries("ai")
FAMILY = "gemini"
KEPT_HOURS = 47  # Google keeps files for 48 hours
FILE_SECONDS = 60.0
ACTIVE_SECONDS = 600.0
FIRST_POLL_SECONDS = 0.5
MAX_POLL_SECONDS = 10.0
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

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


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

    async def generate(
        self, model: str, request: ModelRequest, owner: UUID, seconds: float, on_text: OnText | None = None
    ) -> ModelReply:
        """Call the model. If Google no longer has a file, upload it again and repeat the call."""
        try:
            return await self._generate(model, request, owner, seconds, on_text)
        except ProviderFault as fault:
            if fault.fault is not Fault.FILE_GONE:
                raise
        for part in request.parts:
            if isinstance(part, FileReference):
                await self.files.forget(owner, part)
        return await self._generate(model, request, owner, seconds, on_text)

    async def _generate(
        self, model: str, request: ModelRequest, owner: UUID, seconds: float, on_text: OnText | None
    ) -> ModelReply:
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
        method = "streamGenerateContent?alt=sse" if on_text else "generateContent"
        reply = await self._post(f"{model}:{method}", body, seconds, follow_text(on_text, _text_of_event))
        return _read_reply(_join(reply.read_events_as(GenerateReply)) if reply.events else reply.read_as(GenerateReply))

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

    async def _post(
        self, method: str, body: dict[str, Any], seconds: float, on_event: OnEvent | None = None
    ) -> HttpReply:
        headers = {"x-goog-api-key": self.key}
        return await self.http.post(FAMILY, f"{self.url}/v1beta/models/{method}", body, headers, seconds, on_event)

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


def _text_of_event(event: ServerSentEvent) -> str:
    return _text_of(GenerateReply.model_validate_json(event.data))


def _text_of(reply: GenerateReply) -> str:
    return "".join(part.text for one in reply.candidates[:1] for part in one.content.parts if not part.thought)


def _join(replies: Sequence[GenerateReply]) -> GenerateReply:
    """Join the events of a streamed answer. Each event contains the next part of the text and updated token counts."""
    blocked = next((one for one in replies if one.prompt_feedback.block_reason), None)
    if blocked:
        return blocked
    reason = next((one.candidates[0].finish_reason for one in reversed(replies) if one.candidates), "")
    if not reason:
        raise ProviderFault(Fault.CUT_OFF, usage=None)
    text = "".join(map(_text_of, replies))
    content = Content(parts=[ContentPart(text=text)])
    return GenerateReply(
        candidates=[Candidate(content=content, finish_reason=reason)], usage_metadata=replies[-1].usage_metadata
    )


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
    return ModelReply(_text_of(answer), usage)


# Files -------------------------------------------------------------------------------------------------------------


class File(BaseModel):
    name: str
    uri: str
    state: str


class UploadReply(BaseModel):
    file: File


@dataclass(frozen=True, slots=True)
class UploadedFile:
    name: str
    uri: str


@dataclass(frozen=True, slots=True)
class GeminiFiles:
    """Files uploaded with one API key to one base URL. An account never uses a file that another account uploaded."""

    database: Database
    http: HttpClient
    url: str
    key: str
    _locks: WeakValueDictionary[tuple[UUID, str], asyncio.Lock] = field(
        default_factory=WeakValueDictionary[tuple[UUID, str], asyncio.Lock], init=False, repr=False
    )

    async def upload(self, owner: UUID, file: FileReference) -> UploadedFile:
        """Upload a file unless Google still has it. If several callers need the same file, it is uploaded only once."""
        async with self._locks.setdefault((owner, file.sha256), asyncio.Lock()):
            return await self._find_or_send(owner, file)

    async def _find_or_send(self, owner: UUID, file: FileReference) -> UploadedFile:
        async with self.database.connection() as connection:
            row = await (await connection.execute(QUERIES.provider_file, self._key(owner, file))).fetchone()
        if row:
            return UploadedFile(*row)
        uploaded = await self._send(file)
        values = {**self._key(owner, file), "name": uploaded.name, "uri": uploaded.uri, "hours": KEPT_HOURS}
        async with self.database.connection() as connection:
            await connection.execute(QUERIES.keep_provider_file, values)
        return uploaded

    async def forget(self, owner: UUID, file: FileReference) -> None:
        async with self.database.connection() as connection:
            await connection.execute(QUERIES.forget_provider_file, self._key(owner, file))

    async def _send(self, file: FileReference) -> UploadedFile:
        data = await file.read()
        start = {
            "x-goog-api-key": self.key,
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(data)),
            "x-goog-upload-header-content-type": file.media_type,
        }
        started = await self.http.post(FAMILY, f"{self.url}/upload/v1beta/files", {"file": {}}, start, FILE_SECONDS)
        upload_url = started.headers.get("x-goog-upload-url")
        if not upload_url:
            raise ProviderFault(Fault.MALFORMED)
        whole = {"x-goog-upload-command": "upload, finalize", "x-goog-upload-offset": "0"}
        sent = await self.http.send(FAMILY, "POST", upload_url, data, whole, FILE_SECONDS)
        return await self._wait_until_active(sent.read_as(UploadReply).file)

    async def _wait_until_active(self, file: File) -> UploadedFile:
        """Wait until Google has processed the file.

        Gives up after ten minutes, because a file that takes longer will not become active.
        """
        pause = FIRST_POLL_SECONDS
        try:
            async with asyncio.timeout(ACTIVE_SECONDS):
                while file.state == "PROCESSING":
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, MAX_POLL_SECONDS)
                    file = await self._check(file.name)
        except TimeoutError:
            raise ProviderFault(Fault.TIMED_OUT) from None
        if file.state != "ACTIVE":
            raise ProviderFault(Fault.FILE_GONE)
        return UploadedFile(file.name, file.uri)

    async def _check(self, name: str) -> File:
        headers = {"x-goog-api-key": self.key}
        reply = await self.http.send(FAMILY, "GET", f"{self.url}/v1beta/{name}", b"", headers, FILE_SECONDS)
        return reply.read_as(File)

    def _key(self, owner: UUID, file: FileReference) -> dict[str, Any]:
        account = sha256(f"{self.url}\n{self.key}".encode()).hexdigest()[:16]
        return {"provider": FAMILY, "account": account, "owner": owner, "sha256": bytes.fromhex(file.sha256)}
