"""A stand-in for YouTube: the three answers that a transcript takes, in YouTube's form and with our own words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from tests.support.sites import Answer, Asked, Route, Site, page

VIDEO = "dQw4w9WgXcQ"
WATCH = f"https://www.youtube.com/watch?v={VIDEO}"
WATCH_PAGE = '<html><script>{"INNERTUBE_API_KEY": "a-key_1"}</script></html>'
CONSENT_PAGE = '<form action="https://consent.youtube.com/s"><input name="v" value="cb.1"></form>'
BOT = "Sign in to confirm you\u2019re not a bot"
AGE = "This video may be inappropriate for some users."
GONE = "This video is unavailable"
LINES = [(0.0, 1.5, "Hello and welcome."), (1.5, 4.0, "[Music]"), (5.5, 3.0, "This is about &#39;rivers&#39;.")]


def track(code: str, *, generated: bool = False, url: str | None = None) -> dict[str, Any]:
    asked = f"https://www.youtube.com/api/timedtext?v={VIDEO}&lang={code}{'&kind=asr' if generated else ''}"
    kind = {"kind": "asr"} if generated else {}
    name = {"runs": [{"text": code.upper()}]}
    return {"baseUrl": url or f"{asked}&fmt=srv3", "name": name, "languageCode": code, "isTranslatable": True, **kind}


def player(*tracks: dict[str, Any], status: str = "OK", reason: str | None = None, **details: Any) -> Answer:  # noqa: ANN401
    """What is said about a video; without tracks it has no captions at all."""
    said: dict[str, Any] = {"playabilityStatus": {"status": status, "reason": reason}}
    said["videoDetails"] = {"videoId": VIDEO, "title": "About rivers", "author": "A geographer", **details}
    if tracks:
        said["captions"] = {"playerCaptionsTracklistRenderer": {"captionTracks": list(tracks)}}
    return Answer(body=json.dumps(said).encode(), headers={"Content-Type": "application/json"})


def timed_text(lines: Sequence[tuple[float, float, str]] = LINES) -> Answer:
    texts = "".join(f'<text start="{start}" dur="{seconds}">{escape(text)}</text>' for start, seconds, text in lines)
    return page(f'<?xml version="1.0" encoding="utf-8" ?><transcript>{texts}</transcript>', "text/xml")


def stand_in(site: Site, answer: Route, watch: Route | None = None, text: Route | None = None) -> None:
    site.routes["/watch"] = watch or page(WATCH_PAGE)
    site.routes["/youtubei/v1/player"] = answer
    site.routes["/api/timedtext"] = text or timed_text()


def consenting(asked: Asked) -> Answer:
    """As in the European Union: first a question, then the page."""
    return page(WATCH_PAGE if "CONSENT=YES+cb.1" in asked.headers.get("cookie", "") else CONSENT_PAGE)
