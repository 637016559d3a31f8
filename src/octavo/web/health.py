"""For machines: `/healthz`, the process answers; `/readyz`, it can serve; `/metrics`, how much there is to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response

from octavo.ops.metrics import MEDIA_TYPE, read_metrics, render_metrics
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


@router.get("/metrics", response_class=Response)
async def metrics(parts: PartsOf) -> Response:
    """How much there is to do and who does it, in the form that Prometheus reads."""
    async with parts.database.connection() as connection:
        found = await read_metrics(connection)
    return Response(render_metrics(found), media_type=MEDIA_TYPE)
