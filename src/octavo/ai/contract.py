"""Who asks a model, and what comes back: the same for every task and every provider."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar
from uuid import UUID

from octavo.core.errors import OctavoError

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
