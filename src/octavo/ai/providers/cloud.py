"""Calls models that cloud platforms offer: Azure OpenAI, Google Vertex AI, Amazon Bedrock and Mistral.

Azure, Vertex and Mistral use OpenAI's protocol, with different URLs and credentials. Bedrock has its own
protocol, Converse, with signed requests (AWS Signature Version 4).
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Self
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

from pydantic import BaseModel, Field, ValidationError

from octavo.ai.calls import FileReference, InstructionText, ModelRequest, Part, Picture, QuotedText
from octavo.ai.faults import Fault, ProviderFault, TokenUsage, classify_finish
from octavo.ai.providers.openai import REASONING_MODELS, REASONING_TOKENS, Compatible
from octavo.ai.providers.provider import HttpClient, HttpReply, ModelReply, OnText, VisionLimits, follow_text
from octavo.core.http import ServerSentEvent
from octavo.storage.s3_client import AccessKeys, sign_headers

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


# Azure and Mistral ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Azure(Compatible):
    """Azure OpenAI. The name of a model is the name of its deployment, which is part of the URL."""

    version: str = ""

    vision_limits: ClassVar[VisionLimits] = VisionLimits(pixels=2048, pages=50, pdfs=False)
    limit_name: ClassVar[str] = "max_completion_tokens"
    cuts_silently: ClassVar[bool] = False

    def address(self, model: str, operation: str) -> str:
        deployment = f"{self.url}/openai/deployments/{quote(model, safe='')}"
        return f"{deployment}/{operation}?{urlencode({'api-version': self.version})}"

    async def headers(self, seconds: float) -> dict[str, str]:
        del seconds
        return {"api-key": self.key or ""}

    def _limits(self, model: str, request: ModelRequest) -> dict[str, Any]:
        if not model.startswith(REASONING_MODELS):
            return {self.limit_name: request.output_tokens}
        return {self.limit_name: request.output_tokens + REASONING_TOKENS, "reasoning_effort": "low"}


@dataclass(frozen=True, slots=True)
class Mistral(Compatible):
    vision_limits: ClassVar[VisionLimits] = VisionLimits(pixels=1540, pages=8, pdfs=False)
    cuts_silently: ClassVar[bool] = False


# Vertex --------------------------------------------------------------------------------------------------------------

GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
GOOGLE_SIGN_IN = "https://oauth2.googleapis.com/token"
JWT_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_LIFETIME = timedelta(hours=1)
# A token is replaced this long before it expires.
TOKEN_MARGIN = timedelta(minutes=5)


class ServiceAccountKey(BaseModel):
    """The JSON file of a service account, as Google issues it."""

    project_id: str = Field(pattern=r"^[a-z0-9.:-]+$")
    client_email: str
    private_key: str = Field(repr=False)
    private_key_id: str | None = None
    token_uri: str = GOOGLE_SIGN_IN


class AccessToken(BaseModel):
    access_token: str = Field(repr=False)
    expires_in: int = 3600


@dataclass(slots=True)
class ServiceAccount:
    """A Google service account. Exchanges signed JWTs for access tokens, and reuses a token until shortly before it
    expires.
    """

    http: HttpClient
    text: str = field(repr=False)
    clock: Clock = utc_now
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _token: str = field(default="", init=False, repr=False)
    _expires: datetime = field(default=datetime.min.replace(tzinfo=UTC), init=False)

    @property
    def key(self) -> ServiceAccountKey:
        try:
            return ServiceAccountKey.model_validate_json(self.text)
        except ValidationError:
            raise ProviderFault(Fault.BAD_KEY) from None

    async def token(self, seconds: float) -> str:
        async with self._lock:
            if self.clock() + TOKEN_MARGIN >= self._expires:
                await self._renew(seconds)
            return self._token

    async def _renew(self, seconds: float) -> None:
        import jwt  # loaded late, so that processes start quickly

        now, key = self.clock(), self.key
        claims = {"iss": key.client_email, "scope": GOOGLE_SCOPE, "aud": key.token_uri}
        claims |= {"iat": int(now.timestamp()), "exp": int((now + TOKEN_LIFETIME).timestamp())}
        try:
            signed = jwt.encode(claims, key.private_key, "RS256", {"kid": key.private_key_id})
        except (ValueError, TypeError, jwt.PyJWTError):
            raise ProviderFault(Fault.BAD_KEY) from None
        body = urlencode({"grant_type": JWT_GRANT, "assertion": signed}).encode()
        form = {"content-type": "application/x-www-form-urlencoded"}
        reply = await self.http.send(VERTEX, "POST", key.token_uri, body, form, seconds)
        made = reply.read_as(AccessToken)
        self._token, self._expires = made.access_token, now + timedelta(seconds=made.expires_in)


VERTEX = "vertex"


@dataclass(frozen=True, slots=True)
class Vertex(Compatible):
    """Google Vertex AI. `{project}` in the URL is replaced by the project of the service account."""

    account: ServiceAccount | None = None

    vision_limits: ClassVar[VisionLimits] = VisionLimits(pixels=2048, pages=16, pdfs=False)
    cuts_silently: ClassVar[bool] = False

    @classmethod
    def of(cls, http: HttpClient, url: str, key: str) -> Self:
        return cls(http, url, None, account=ServiceAccount(http, key))

    def address(self, model: str, operation: str) -> str:
        del model
        project = self.account.key.project_id if self.account else ""
        return f"{self.url.replace('{project}', project)}/{operation}"

    async def headers(self, seconds: float) -> dict[str, str]:
        return {"authorization": f"Bearer {await self.account.token(seconds)}"} if self.account else {}


# Bedrock -------------------------------------------------------------------------------------------------------------

BEDROCK = "bedrock"
REGION = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
ANSWER_TOOL = "answer"


class ToolUse(BaseModel):
    input: dict[str, Any] = {}


class Block(BaseModel):
    """A content block of an answer: text, or structured output as a tool call. Other kinds of blocks are ignored."""

    text: str = ""
    tool: ToolUse | None = Field(default=None, alias="toolUse")


class BedrockMessage(BaseModel):
    content: list[Block] = []


class Output(BaseModel):
    message: BedrockMessage = BedrockMessage()


class BedrockCounts(BaseModel):
    read: int = Field(default=0, alias="inputTokens")
    written: int = Field(default=0, alias="outputTokens")
    cached: int = Field(default=0, alias="cacheReadInputTokens")
    stored: int = Field(default=0, alias="cacheWriteInputTokens")


class Conversation(BaseModel):
    output: Output = Output()
    reason: str = Field(alias="stopReason")
    usage: BedrockCounts = BedrockCounts()


class StreamedToolUse(BaseModel):
    input: str = ""


class StreamedPart(BaseModel):
    text: str = ""
    tool: StreamedToolUse = Field(default=StreamedToolUse(), alias="toolUse")

    @property
    def either(self) -> str:
        return self.tool.input or self.text


class ConversationEvent(BaseModel):
    """An event of a streamed answer. Each kind of event has only some of the fields."""

    delta: StreamedPart = StreamedPart()
    reason: str | None = Field(default=None, alias="stopReason")
    usage: BedrockCounts | None = None


@dataclass(frozen=True, slots=True)
class Bedrock:
    """Amazon Bedrock. The key is `ACCESS_KEY:SECRET_KEY` or `ACCESS_KEY:SECRET_KEY:SESSION_TOKEN`."""

    http: HttpClient
    url: str
    key: str = field(repr=False)
    default_region: str = "us-east-1"
    clock: Clock = utc_now

    vision_limits: ClassVar[VisionLimits] = VisionLimits(pixels=1568, pages=20, pdfs=False)

    async def generate(
        self, model: str, request: ModelRequest, owner: UUID, seconds: float, on_text: OnText | None = None
    ) -> ModelReply:
        del owner
        body: dict[str, Any] = {
            "system": [{"text": request.instructions}],
            "messages": [{"role": "user", "content": [await _block(part) for part in request.parts]}],
            "inferenceConfig": {"maxTokens": request.output_tokens},
        }
        if request.schema:
            tool = {"name": ANSWER_TOOL, "inputSchema": {"json": request.schema}}
            body["toolConfig"] = {"tools": [{"toolSpec": tool}], "toolChoice": {"any": {}}}
        operation = "converse-stream" if on_text else "converse"
        address, content = f"{self.url}/model/{quote(model, safe='')}/{operation}", json.dumps(body).encode()
        following, headers = follow_text(on_text, _text_of_event), self.sign(address, content)
        reply = await self.http.send(BEDROCK, "POST", address, content, headers, seconds, following)
        if reply.events:
            return _join(reply)
        return _read_conversation(reply.read_as(Conversation), is_structured=request.schema is not None)

    def sign(self, address: str, content: bytes) -> dict[str, str]:
        """Return the headers for a request, including its signature."""
        access, _, rest = self.key.partition(":")
        secret, _, session = rest.partition(":")
        if not access or not secret:
            raise ProviderFault(Fault.BAD_KEY)
        headers = {"content-type": "application/json"} | ({"x-amz-security-token": session} if session else {})
        found = REGION.fullmatch(urlsplit(address).hostname or "")
        region = found[1] if found else self.default_region
        keys = AccessKeys(access, secret)
        return sign_headers("POST", address, headers, content, keys, region=region, service=BEDROCK, now=self.clock())


async def _block(part: Part) -> dict[str, Any]:
    match part:
        case InstructionText():
            return {"text": part.text}
        case QuotedText():
            return {"text": part.fenced}
        case Picture():
            return {"image": _file(part.media_type, part.data)}
        case FileReference():
            return {"document": {"name": "document", **_file(part.media_type, await part.read())}}


def _file(media_type: str, data: bytes) -> dict[str, Any]:
    return {"format": media_type.rpartition("/")[2], "source": {"bytes": b64encode(data).decode()}}


def _text_of_event(event: ServerSentEvent) -> str:
    return ConversationEvent.model_validate_json(event.data).delta.either


def _join(reply: HttpReply) -> ModelReply:
    """Join the events of a streamed answer. An error during the stream is an event whose name is the error code."""
    events = reply.read_events_as(ConversationEvent)
    for one in reply.events:
        if fault := classify_finish(BEDROCK, one.name):
            raise ProviderFault(fault, usage=None)
    reason = next((one.reason for one in events if one.reason), None)
    counts = next((one.usage for one in events if one.usage), None)
    if reason is None or counts is None:
        raise ProviderFault(Fault.CUT_OFF, usage=None)
    usage = _check_finish(reason, counts)
    return ModelReply(_join_parts([one.delta for one in events]), usage)


def _join_parts(parts: Sequence[StreamedPart]) -> str:
    """Join the parts of an answer. Returns the structured output or, if the model wrote none, the text."""
    return "".join(one.tool.input for one in parts) or "".join(one.text for one in parts)


def _check_finish(reason: str, counts: BedrockCounts) -> TokenUsage:
    usage = TokenUsage(counts.read + counts.cached + counts.stored, counts.written, counts.cached)
    if fault := classify_finish(BEDROCK, reason):
        raise ProviderFault(fault, usage)
    return usage


def _read_conversation(answer: Conversation, *, is_structured: bool) -> ModelReply:
    blocks, usage = answer.output.message.content, _check_finish(answer.reason, answer.usage)
    structured = [json.dumps(block.tool.input) for block in blocks if block.tool]
    text = "".join(block.text for block in blocks)
    return ModelReply(structured[0] if is_structured and structured else text, usage)
