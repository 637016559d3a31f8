"""The first page: that Octavo runs, and for the owner of this machine how its parts are."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from octavo.web.pages import templates
from octavo.web.parts import PartsOf, Visiting

router = APIRouter(include_in_schema=False)


@router.get("/")
async def home(request: Request, parts: PartsOf, caller: Visiting) -> Response:
    admin = caller is not None and caller.is_admin
    checks = await parts.readiness() if admin else []
    return templates.TemplateResponse(
        request,
        "home.html",
        {"admin": admin, "checks": checks, "data_dir": parts.settings.data_dir},
        headers={"cache-control": "no-store"},
    )
