"""Adds pages from the browser: a bookmarklet, and the share menu of devices on which Octavo is installed as an app."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from octavo.intake.links import MOST_CHARACTERS
from octavo.web.context.services import ServicesOf
from octavo.web.http.assets import asset
from octavo.web.shell.frame import LibraryFrame
from octavo.web.shell.templates import render

router = APIRouter(include_in_schema=False)
MOST_TEXT = 20_000
_LINK = re.compile(r"https?://\S+", re.IGNORECASE)
Shared = Annotated[str, Query(max_length=MOST_TEXT)]
MANIFEST_TYPE = "application/manifest+json"


@router.get("/share")
async def share(
    request: Request, services: ServicesOf, frame: LibraryFrame, url: Shared = "", title: Shared = "", text: Shared = ""
) -> Response:
    """Show the content that another app or the bookmarklet wants to add. Nothing is added before the form is sent.

    Without anything to add, the page explains how to set this up.
    """
    base = (services.settings.public_url or str(request.base_url)).rstrip("/")
    shared, bookmark = shared_text(url, text), bookmarklet(base)
    return render(request, "share.html", frame, shared=shared, title=title[:500], bookmarklet=bookmark)


def shared_text(url: str, text: str) -> str:
    """Return the link or the text to add. Many apps share a link only as a part of the text."""
    if url.strip():
        return url.strip()[:MOST_CHARACTERS]
    links = _LINK.findall(text)
    return links[0][:MOST_CHARACTERS] if len(links) == 1 else text.strip()


def bookmarklet(base: str) -> str:
    """Return a bookmark that opens the page above with the address and the title of the current page."""
    here = "encodeURIComponent(location.href)+'&title='+encodeURIComponent(document.title)"
    return f"javascript:void(window.open('{base}/share?url='+{here}))"


@router.get("/manifest.webmanifest")
async def manifest() -> Response:
    """Describe the app, so that a device can install it and offer it in its share menu."""
    icon = {"src": asset("shell/mark.svg"), "sizes": "any", "type": "image/svg+xml", "purpose": "any"}
    target = {"action": "/share", "method": "GET", "params": {"title": "title", "text": "text", "url": "url"}}
    about = {"id": "/", "name": "Octavo", "short_name": "Octavo", "start_url": "/library", "display": "standalone"}
    return JSONResponse({**about, "icons": [icon], "share_target": target}, media_type=MANIFEST_TYPE)
