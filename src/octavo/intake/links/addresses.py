"""One form for each web address, and a name for it that people can read. Pure.

Conservative: what might lead to another page is left as it was.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from octavo.fetch import BadUrl, parse_url

MOST_CHARACTERS = 2000
LABEL_CHARACTERS = 120
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Only say how somebody came to the page.
_TRACKING = re.compile(r"(?:utm_[a-z0-9_]*|fbclid|gclid)(?:=|$)", re.IGNORECASE)
_SPACES = re.compile(r"[\s_+-]+")


def canonical_url(given: str) -> str:
    """Scheme and host in small letters, without default port, fragment and marks of campaigns. Raises `BadUrl`."""
    written = given.strip()
    if len(written) > MOST_CHARACTERS:
        raise BadUrl(f"It has more than {MOST_CHARACTERS:,} characters.")
    parsed = parse_url(written)
    parts = urlsplit(parsed.url)
    port = "" if parsed.port == _DEFAULT_PORTS[parsed.scheme] else f":{parsed.port}"
    host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
    query = "&".join(one for one in parts.query.split("&") if not _TRACKING.match(one))
    # A question mark with nothing behind it stays, because somebody put it there.
    mark = "?" if query or (not parts.query and parsed.url.endswith("?")) else ""
    return f"{parsed.scheme}://{host}{port}{parts.path or '/'}{mark}{query}"


def label_of(url: str) -> str:
    """The site, and the last part of the path that says something."""
    parts = urlsplit(url)
    words = [text for part in parts.path.split("/") if (text := _words(part))]
    site = (parts.hostname or "").removeprefix("www.")
    # No slashes: this stands where the name of a file does.
    return " - ".join([site, *words[-1:]])[:LABEL_CHARACTERS].strip()


def _words(part: str) -> str:
    return _SPACES.sub(" ", unquote(part).replace("/", " ").replace("\\", " ")).strip(" .")
