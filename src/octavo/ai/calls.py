"""What goes into a model call and what comes back.

Placeholder.
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

# Rather too many than too few: budgets and rates are checked with them before anybody knows better.
CHARACTERS_A_TOKEN = 3
PICTURE_TOKENS = 2500
PAGE_TOKENS = 2500
# Where a provider takes far less for the page of a PDF: Gemini has 258 for it, and its newer models 560.
PAGE_TOKENS_OF = {"gemini": 600}
MARK_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Words:
    """Written by us."""

    text: str


@dataclass(frozen=True, slots=True)
class Quoted:
    """Written by somebody else; `name` says what it is."""

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
    """A file that is read only when it is sent; some providers keep it for further questions."""

    sha256: str
    media_type: str
    pages: int
    read: Callable[[], Awaitable[bytes]] = field(repr=False, compare=False)


Part = Words | Quoted | Picture | FileReference


@dataclass(frozen=True, slots=True)
class Request:
    """`schema`: the JSON that is wanted; without one the answer is text. `expected_tokens`: its likely length."""

    purpose: str
    version: str
    instructions: str
    parts: tuple[Part, ...]
    schema: Schema | None
    output_tokens: int
    expected_tokens: int

    @property
    def input_tokens(self) -> int:
        """Whoever is asked."""
        return self.tokens_for("")

    def tokens_for(self, provider: str) -> int:
        written = len(self.instructions) + len(json.dumps(self.schema))
        a_page = PAGE_TOKENS_OF.get(provider, PAGE_TOKENS)
        return written // CHARACTERS_A_TOKEN + sum(_tokens_of(part, a_page) for part in self.parts)

    @property
    def has_files(self) -> bool:
        return any(isinstance(part, FileReference) for part in self.parts)

    def digest(self, owner: UUID, generation: int) -> bytes:
        """The same for the same question of the same owner, whichever model is asked."""
        said = [
            str(owner),
            generation,
            self.purpose,
            self.version,
            self.schema,
            [_name_of(part) for part in self.parts],
        ]
        return sha256(json.dumps(said, sort_keys=True).encode()).digest()

    def repaired(self, answer: str, wrong: str) -> Request:
        """The same question again, with the answer that was of no use and what was wrong with it."""
        more = (Words(f"Your last answer could not be used: {wrong}. Answer again, in the form asked for."),)
        return replace(self, parts=(*self.parts, Quoted("last-answer", answer), *more))


def _tokens_of(part: Part, a_page: int) -> int:
    match part:
        case Picture():
            return PICTURE_TOKENS
        case FileReference():
            return a_page * part.pages
        case _:
            return len(part.text.encode(errors="replace")) // CHARACTERS_A_TOKEN + 1


def _name_of(part: Part) -> list[str]:
    match part:
        case Words():
            return ["words", part.text]
        case Quoted():
            return ["quoted", part.name, part.text]
        case Picture():
            return ["picture", sha256(part.data).hexdigest()]
        case FileReference():
            return ["file", part.sha256]


LOCAL = "local"

Out = TypeVar("Out")


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom and for what money is spent.

    A job gives its id and `lease_token`: a worker that lost the job spends nothing more, and what it had asked is not
    waited for. The same question of one owner is answered once; a `generation` of its own has it asked anew.
    """

    owner_id: UUID
    document_id: UUID | None = None
    job_id: UUID | None = None
    lease_token: int | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class FailedModel:
    """A model that was asked before the one that answered, and why it did not."""

    model: str
    fault: str


@dataclass(frozen=True, slots=True)
class Answered(Generic[Out]):
    """`made_by` is `local` or `provider:model`. `cost_usd` is what it cost now: nothing when an answer is reused."""

    output: Out
    made_by: str
    cost_usd: Decimal = Decimal(0)
    reused: bool = False
    failed: tuple[FailedModel, ...] = ()


class CallerGone(OctavoError):
    """Somebody else has this job now, so no more money is spent for it here."""

    code = "LEASE_LOST"
