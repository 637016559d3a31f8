"""Recognises addresses of YouTube videos, in all the forms that people copy. Pure."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

_ID = re.compile(r"[A-Za-z0-9_-]{11}")
_HOSTS = frozenset({"youtube.com", "youtube-nocookie.com"})
_SHORT_HOST = "youtu.be"
_VARIANT = re.compile(r"^(?:www|m|music|gaming)\.")
_PATHS = frozenset({"shorts", "embed", "live", "v", "e"})


def video_id(url: str) -> str | None:
    """The eleven characters, or None for whatever else it is."""
    try:
        parts = urlsplit(url.strip())
        host = _VARIANT.sub("", (parts.hostname or "").rstrip("."))
    except ValueError:
        return None
    found = _candidate(host, parts.path, parts.query) if parts.scheme.lower() in {"http", "https"} else ""
    return found if _ID.fullmatch(found) else None


def _candidate(host: str, path: str, query: str) -> str:
    """What stands where an id should."""
    first, second, *_ = [step for step in path.split("/") if step] + ["", ""]
    if host == _SHORT_HOST:
        return first
    if host not in _HOSTS:
        return ""
    if first == "watch":
        return parse_qs(query).get("v", [""])[0]
    return second if first in _PATHS else ""


def watch_url(video: str) -> str:
    """The one form that is kept."""
    return f"https://www.youtube.com/watch?v={video}"
