"""`/healthz`: the process answers. `/readyz`: it can serve, with the database and the storage behind it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response

from octavo.web.parts import PartsOf

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(parts: PartsOf, response: Response) -> dict[str, Any]:
    checks = await parts.readiness()
    ready = all(check.ok for check in checks)
    response.status_code = 200 if ready else 503
    return {"status": "ready" if ready else "not ready", "checks": [asdict(check) for check in checks]}
