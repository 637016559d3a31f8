"""The settings pages for sources, custom fields and rules."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(include_in_schema=False)
