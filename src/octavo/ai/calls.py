"""Model calls: the caller, a provider-independent request, and the answer.

A document's text is data, not instructions. It is placed between tags that contain the hash of the text, so the text
cannot contain its own closing tag. The instructions explain the tags. A model that reads documents gets no tools.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from typing import Generic, TypeVar
from uuid import UUID

from octavo.ai.answer_schemas import Schema
from octavo.core.errors import OctavoError

# Deliberately high: budgets and rate limits are checked against these estimates before the real count is known.
CHARACTERS_PER_TOKEN = 3
PICTURE_TOKENS = 2500
PAGE_TOKENS = 2500
# Providers that need far fewer tokens for a PDF page: Gemini counts 258, its newer models 560.
PAGE_TOKENS_BY_PROVIDER = {"gemini": 600}
MARK_LENGTH = 16
LOCAL = "local"

Out = TypeVar("Out")


@dataclass(frozen=True, slots=True)
class InstructionText:
    """Instructions to the model, written by the developers of Octavo and therefore trusted."""

    text: str


@dataclass(frozen=True, slots=True)
class QuotedText:
    """Untrusted text, such as the text of a document. `name` is its label in the request."""

    name: str
    text: str

    @property
    def fenced(self) -> str:
        mark = f"{self.name}-{sha256(self.text.encode(errors='replace')).hexdigest()[:MARK_LENGTH]}"
        return f"<{mark}>\n{self.text}\n</{mark}>"


@dataclass(frozen=True, slots=True)
class Picture:
    data: bytes = field(repr=False)
    media_type: str


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file whose content is read only when it is sent. Some providers keep the file for later calls."""

    sha256: str
    media_type: str
    pages: int
    read: Callable[[], Awaitable[bytes]] = field(repr=False, compare=False)


Part = InstructionText | QuotedText | Picture | FileReference


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model. `schema` describes the JSON answer. If it is None, the answer is text.

    `expected_tokens` is the likely length of the answer.
    """

    purpose: str
    version: str
    instructions: str
    parts: tuple[Part, ...]
    schema: Schema | None
    output_tokens: int
    expected_tokens: int

    @property
    def input_tokens(self) -> int:
        """The estimated number of input tokens. The estimate is high enough for every provider."""
        return self.tokens_for("")

    def tokens_for(self, provider: str) -> int:
        written = len(self.instructions) + len(json.dumps(self.schema))
        per_page = PAGE_TOKENS_BY_PROVIDER.get(provider, PAGE_TOKENS)
        return written // CHARACTERS_PER_TOKEN + sum(_tokens_of(part, per_page) for part in self.parts)

    @property
    def has_files(self) -> bool:
        return any(isinstance(part, FileReference) for part in self.parts)

    def digest(self, owner: UUID, generation: int) -> bytes:
        """Return the key under which the answer is cached.

        It is the same for identical requests by one account, regardless of the model.
        """
        key = [
            str(owner),
            generation,
            self.purpose,
            self.version,
            self.schema,
            [_digest_key(part) for part in self.parts],
        ]
        return sha256(json.dumps(key, sort_keys=True).encode()).digest()

    def with_correction(self, answer: str, reason: str) -> ModelRequest:
        """Return a copy of the request with the rejected answer and the reason for its rejection added."""
        advice = (InstructionText(f"Your last answer could not be used: {reason}. Answer again in the required form."),)
        return replace(self, parts=(*self.parts, QuotedText("last-answer", answer), *advice))


def _tokens_of(part: Part, per_page: int) -> int:
    match part:
        case Picture():
            return PICTURE_TOKENS
        case FileReference():
            return per_page * part.pages
        case _:
            return len(part.text.encode(errors="replace")) // CHARACTERS_PER_TOKEN + 1


def _digest_key(part: Part) -> list[str]:
    match part:
        case InstructionText():
            return ["words", part.text]
        case QuotedText():
            return ["quoted", part.name, part.text]
        case Picture():
            return ["picture", sha256(part.data).hexdigest()]
        case FileReference():
            return ["file", part.sha256]


@dataclass(frozen=True, slots=True)
class Caller:
    """The account (owner), document and job for which a call is made and billed.

    Jobs pass their id and `lease_token`, so that a worker that lost its lease can spend no more money. Identical
    requests by one account get the same stored answer. To repeat a call, pass a new `generation`.
    """

    owner_id: UUID
    document_id: UUID | None = None
    job_id: UUID | None = None
    lease_token: int | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class OfflineUse:
    """When to run a task offline, without a model.

    `if_configured`: if True, `local` must be one of the task's models. If False, it must be the only one. `if_away`:
    also run offline if all models failed and at least one provider is only temporarily unavailable. `decide`: a
    function that receives the error of the failed models and returns whether to run offline.
    """

    if_configured: bool = True
    if_away: bool = False
    decide: Callable[[OctavoError], bool] | None = None


AS_CONFIGURED = OfflineUse()
ALSO_IF_AWAY = OfflineUse(if_away=True)
NEVER = OfflineUse(if_configured=False)


@dataclass(frozen=True, slots=True)
class FailedModel:
    """A model that failed before another model answered, and the reason for the failure."""

    model: str
    fault: str


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[Out]):
    """A model's answer. `made_by` is `local` or `provider:model`.

    `cost_usd` is the cost of this call. It is 0 for a reused answer.
    """

    output: Out
    made_by: str
    cost_usd: Decimal = Decimal(0)
    reused: bool = False
    failed: tuple[FailedModel, ...] = ()


class CallerGone(OctavoError):
    """Another worker has taken over this job. This attempt makes no more calls."""

    code = "LEASE_LOST"
