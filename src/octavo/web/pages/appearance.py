"""How this browser shows things; kept in its own cookies, and by nobody else."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request, Response

from octavo.web.pages import THEME_COOKIE, THEMES, back_to
from octavo.web.pages.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False, prefix="/settings/appearance")
KEYS_COOKIE = "octavo_keys"
KEYS_OFF = "off"
YEAR_SECONDS = 365 * 24 * 3600
CHOICES = {"system": "As the system", "light": "Light", "dark": "Dark"}


@router.get("")
async def appearance(request: Request, frame: SettingsFrame, said: str = "") -> Response:
    theme = request.cookies.get(THEME_COOKIE)
    chosen = theme if theme in THEMES else "system"
    keys = request.cookies.get(KEYS_COOKIE) != KEYS_OFF
    return show(request, "appearance", frame, said=said, chosen=chosen, keys=keys, choices=CHOICES)


@router.post("")
async def keep(
    request: Request,
    theme: Annotated[Literal["system", "light", "dark"], Form()] = "system",
    keys: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    answer = back_to("/settings/appearance?said=appearance")
    _keep(request, answer, THEME_COOKIE, theme if theme in THEMES else None)
    _keep(request, answer, KEYS_COOKIE, None if keys else KEYS_OFF)
    return answer


def _keep(request: Request, answer: Response, name: str, value: str | None) -> None:
    """No secret, and scripts of ours read it; the usual choice needs no cookie."""
    secure = request.url.scheme == "https"
    if value is None:
        answer.delete_cookie(name, samesite="lax", secure=secure)
    else:
        answer.set_cookie(name, value, max_age=YEAR_SECONDS, samesite="lax", secure=secure)
