"""What an installation allows, so that pages and programs can say so before they try."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from octavo import __version__
from octavo.core.extraction import Extraction
from octavo.web.api import problems
from octavo.web.intake import intake_limits
from octavo.web.parts import PartsOf, Reading
from octavo.web.rewriting import may_rewrite

router = APIRouter(prefix="/api/v1", tags=["settings"])


class Limits(BaseModel):
    """`stored_bytes` is null where there is no limit."""

    upload_bytes: int
    stored_bytes: int | None
    concurrent_uploads: int


class Published(BaseModel):
    """`sign_up`: whether anybody may make an account. `extraction`: how texts can be made for you."""

    version: str
    limits: Limits
    trash_days: int
    sign_up: bool
    extraction: list[Extraction]


@router.get("/settings", responses=problems(401))
async def settings(parts: PartsOf, caller: Reading) -> Published:
    """The limits that hold for you."""
    allowed = intake_limits(parts.settings, anonymous=caller.is_anonymous)
    limits = Limits(
        upload_bytes=allowed.upload_bytes, stored_bytes=allowed.stored_bytes, concurrent_uploads=allowed.concurrent
    )
    chosen = parts.settings
    return Published(
        version=__version__,
        limits=limits,
        trash_days=chosen.trash_days,
        sign_up=chosen.sign_up,
        extraction=[*Extraction] if may_rewrite(chosen, caller) else [Extraction.PLAIN],
    )
