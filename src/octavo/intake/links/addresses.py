"""Normalises URLs, makes readable names for them, and finds the ids of YouTube videos. Needs no network access.

Normalising never changes a part of the URL that could affect the response.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

from octavo.fetch import BadUrl, parse_url

MOST_CHARACTERS = 2000
LABEL_CHARACTERS = 120
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Tracking parameters.
_TRACKING = re.compile(r"(?:utm_[a-z0-9_]*|fbclid|gclid)(?:=|$)", re.IGNORECASE)
_SPACES = re.compile(r"[\s_+-]+")


def canonical_url(given: str) -> str:
    """Normalise a URL: lower-case scheme and host, no default port, fragment or tracking parameters.

    Raises `BadUrl`.
    """
    written = given.strip()
    if len(written) > MOST_CHARACTERS:
        raise BadUrl(f"The URL is longer than {MOST_CHARACTERS:,} characters.")
    parsed = parse_url(written)
    parts = urlsplit(parsed.url)
    port = "" if parsed.port == _DEFAULT_PORTS[parsed.scheme] else f":{parsed.port}"
    host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
    query = "&".join(one for one in parts.query.split("&") if not _TRACKING.match(one))
    # Keep a trailing question mark: it could matter.
    mark = "?" if query or (not parts.query and parsed.url.endswith("?")) else ""
    return f"{parsed.scheme}://{host}{port}{parts.path or '/'}{mark}{query}"


def label_of(url: str) -> str:
    """Return a readable name for a URL: the site, and the last part of the path that contains words."""
    parts = urlsplit(url)
    words = [text for part in parts.path.split("/") if (text := _words(part))]
    site = (parts.hostname or "").removeprefix("www.")
    # No slashes: this is used as a file name.
    return " - ".join([site, *words[-1:]])[:LABEL_CHARACTERS].strip()


def _words(part: str) -> str:
    return _SPACES.sub(" ", unquote(part).replace("/", " ").replace("\\", " ")).strip(" .")


_ID = re.compile(r"[A-Za-z0-9_-]{11}")
_HOSTS = frozenset({"youtube.com", "youtube-nocookie.com"})
_SHORT_HOST = "youtu.be"
_VARIANT = re.compile(r"^(?:www|m|music|gaming)\.")
_PATHS = frozenset({"shorts", "embed", "live", "v", "e"})


def video_id(url: str) -> str | None:
    """Return the id of a YouTube video (eleven characters), or None for any other URL."""
    try:
        parts = urlsplit(url.strip())
        host = _VARIANT.sub("", (parts.hostname or "").rstrip("."))
    except ValueError:
        return None
    found = _candidate(host, parts.path, parts.query) if parts.scheme.lower() in {"http", "https"} else ""
    return found if _ID.fullmatch(found) else None


def _candidate(host: str, path: str, query: str) -> str:
    """Return the part of the URL where a YouTube video id should be, or an empty string."""
    first, second, *_ = [step for step in path.split("/") if step] + ["", ""]
    if host == _SHORT_HOST:
        return first
    if host not in _HOSTS:
        return ""
    if first == "watch":
        return parse_qs(query).get("v", [""])[0]
    return second if first in _PATHS else ""


def watch_url(video: str) -> str:
    """Return the canonical URL of a YouTube video."""
    return f"https://www.youtube.com/watch?v={video}"
