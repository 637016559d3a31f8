"""Prepares uploads of links and pasted text, and fetches web pages and video transcripts.

The upload of a link contains only its URL; a job fetches the page or transcript later. Errors include advice for the
user.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from octavo.core.errors import Empty, NetworkFailed, OctavoError, Paywalled, TimedOut, TooLarge
from octavo.core.http import requested_wait
from octavo.core.texts import primary_language
from octavo.core.types import JSON
from octavo.extract.transcript import RawSnippet, RawTranscript, linked_urls
from octavo.fetch import AddressRefused, BadUrl, FetchLimits, FetchResponse, GuardedClient, parse_url, refuse_private
from octavo.intake import errors
from octavo.intake.upload_rows import NewUpload, Policy

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session
    from youtube_transcript_api import Transcript, TranscriptList

MOST_CHARACTERS = 2000
LABEL_CHARACTERS = 120
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Tracking parameters.
_TRACKING = re.compile(r"(?:utm_[a-z0-9_]*|fbclid|gclid)(?:=|$)", re.IGNORECASE)
_SPACES = re.compile(r"[\s_+-]+")


def canonical_url(given: str) -> str:
    """Normalise a URL: lower-case the scheme and host, and remove the default port, fragment and tracking parameters.

    Raises `BadUrl` if the URL is invalid or too long.
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
    """Return a readable name for a URL: the host name and the last path segment that contains words."""
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
    """Return the video id (eleven characters) of a YouTube URL. Returns None for any other URL."""
    try:
        parts = urlsplit(url.strip())
        host = _VARIANT.sub("", (parts.hostname or "").rstrip("."))
    except ValueError:
        return None
    found = _candidate(host, parts.path, parts.query) if parts.scheme.lower() in {"http", "https"} else ""
    return found if _ID.fullmatch(found) else None


def _candidate(host: str, path: str, query: str) -> str:
    """Return the part of a URL where a YouTube video id is expected. Returns an empty string if there is none."""
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


LINK_TYPE = "text/uri-list"
PASTE_TYPE = "text/plain; charset=utf-8"
# The comment distinguishes a link from a text file that contains only the same URL.
_LINK = "# A link that was added to Octavo.\r\n{url}\r\n"


@dataclass(frozen=True, slots=True)
class NewSource:
    upload: NewUpload
    body: bytes


def link_source(
    given: str, *, allow: frozenset[str] = frozenset(), title: str | None = None, duplicates: Policy = "reuse"
) -> NewSource:
    """Prepare the upload of a web page or a video, given its URL. Does not use the network.

    Raises an error if the URL is invalid or contains a private address.
    """
    if video := video_id(given):
        return _video(video, title, duplicates)
    url = canonical_url(given)
    refuse_private(parse_url(url), allow)
    return _link(url, label_of(url), "web", title, duplicates)


def video_source(given: str, *, title: str | None = None, duplicates: Policy = "reuse") -> NewSource:
    if video := video_id(given):
        return _video(video, title, duplicates)
    raise BadUrl("A YouTube URL looks like https://www.youtube.com/watch?v=…")


def paste_source(
    text: str, *, title: str | None = None, attribution: str | None = None, duplicates: Policy = "reuse"
) -> NewSource:
    """Prepare the upload of pasted text. `attribution` says where the text comes from.

    If the attribution is a URL, it is stored as the source URL. If there is no attribution and the text is a transcript
    whose timestamps link to a video, the URL of the video is stored.
    """
    if not text.strip():
        raise Empty("The pasted text is empty.")
    given: dict[str, JSON] = {"title": title, "source": attribution}
    upload = NewUpload(
        _first_line(text) if title is None else title,
        PASTE_TYPE,
        duplicates=duplicates,
        source_type="paste",
        source_url=_address(attribution or _linked_video(text)),
        given={name: value for name, value in given.items() if value},
    )
    return NewSource(upload, text.encode(errors="replace"))


def _video(video: str, title: str | None, duplicates: Policy) -> NewSource:
    return _link(watch_url(video), f"youtube.com - {video}", "youtube", title, duplicates)


def _link(url: str, label: str, source_type: str, title: str | None, duplicates: Policy) -> NewSource:
    given: dict[str, JSON] = {"title": title} if title else {}
    upload = NewUpload(label, LINK_TYPE, duplicates=duplicates, source_type=source_type, source_url=url, given=given)
    return NewSource(upload, _LINK.format(url=url).encode())


def _address(attribution: str | None) -> str | None:
    if not attribution:
        return None
    if video := video_id(attribution):
        return watch_url(video)
    try:
        return canonical_url(attribution)
    except BadUrl:
        return None


def _linked_video(text: str) -> str | None:
    return next(filter(video_id, linked_urls(text)), None)


def _first_line(text: str) -> str:
    """Return a name for untitled text: its first non-empty line, shortened.

    Slashes are replaced, because they would make the name look like a path.
    """
    line = next(line.strip() for line in text.splitlines() if line.strip())
    return line[:80].replace("/", " ").replace("\\", " ").strip(" .#*>-") or "Pasted text"


YOUTUBE = "https://www.youtube.com"
# Separate threads, because they wait for another server and must not block other work.
_THREADS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="octavo-youtube")
_TOO_MANY = 429
_SERVER_ERRORS = range(500, 600)
_SENT = ("accept-language", "content-type", "cookie")
ACCEPT = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.8,*/*;q=0.5"
MOST_WAIT_SECONDS = 3600.0
_OK = range(200, 300)
_STATUSES: dict[int, type[OctavoError]] = {
    401: Paywalled,
    402: Paywalled,
    403: errors.PageForbidden,
    404: errors.PageMissing,
    407: errors.PageForbidden,
    410: errors.PageMissing,
    451: errors.PageForbidden,
}
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]{1,40})", re.IGNORECASE)
# These types never contain text.
_NO_TEXT = re.compile(r"(?:audio|video|font)/", re.IGNORECASE)


@dataclass(slots=True)
class Exchange:
    """Sends the HTTP requests of the YouTube library for one video.

    The library runs in a thread; the event loop sends its requests.
    """

    client: GuardedClient
    loop: asyncio.AbstractEventLoop
    limits: FetchLimits
    base: str
    deadline: float = 0.0
    last: FetchResponse | None = None
    details: dict[str, Any] = field(default_factory=dict[str, Any])

    def send(self, request: PreparedRequest) -> FetchResponse:
        headers = {name: str(value) for name, value in request.headers.items() if name.lower() in _SENT}
        body = request.body if isinstance(request.body, bytes) else str(request.body or "").encode()
        url = self._place(request.url or "")
        limits = FetchLimits(self.limits.bytes, max(0.0, self.deadline - self.loop.time()), self.limits.redirects)
        call = self.client.post(url, body, headers, limits) if body else self.client.get(url, limits, headers)
        self.last = answer = asyncio.run_coroutine_threadsafe(call, self.loop).result()
        if body:
            self._note_details(answer.body)
        return answer

    def _place(self, url: str) -> str:
        """Replace the host of a YouTube URL with the configured base URL. URLs of other sites stay unchanged."""
        return self.base + url.removeprefix(YOUTUBE) if url.startswith((f"{YOUTUBE}/", f"{YOUTUBE}?")) else url

    def _note_details(self, body: bytes) -> None:
        """Store the video details from a response, if it has any. YouTube sends them with the list of transcripts."""
        try:
            said: object = json.loads(body)
        except ValueError:
            return
        details = cast("dict[str, Any]", said).get("videoDetails") if isinstance(said, dict) else None
        if isinstance(details, dict):
            self.details = cast("dict[str, Any]", details)

    def text_of(self, name: str) -> str | None:
        value = self.details.get(name)
        return " ".join(value.split())[:500] or None if isinstance(value, str) else None


async def fetch_transcript(
    client: GuardedClient, video: str, limits: FetchLimits, *, base: str = YOUTUBE
) -> RawTranscript:
    """Fetch the transcript of a video, preferably in the language of the video and written by a person."""
    loop = asyncio.get_running_loop()
    exchange = Exchange(client, loop, limits, base.rstrip("/"))
    try:
        return await loop.run_in_executor(_THREADS, _fetch, exchange, video)
    except TooLarge as error:
        raise errors.PageTooLarge(error.detail) from None
    except TimedOut:
        raise errors.PageTooSlow from None
    except NetworkFailed as error:
        raise (errors.SiteUnreachable(error.detail) if type(error) is NetworkFailed else error) from None


def _fetch(exchange: Exchange, video: str) -> RawTranscript:
    from xml.etree.ElementTree import ParseError

    from youtube_transcript_api import YouTubeTranscriptApi, YouTubeTranscriptApiException

    exchange.deadline = exchange.loop.time() + exchange.limits.seconds
    try:
        with _session(exchange) as session:
            chosen = choose(YouTubeTranscriptApi(http_client=session).list(video))
            snippets = [RawSnippet(one.text, one.start, one.duration) for one in chosen.fetch()]
    except YouTubeTranscriptApiException as error:
        raise _explain(error, exchange) from None
    except (ParseError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        # A changed response can make the library fail anywhere.
        raise errors.VideoUnreadable from None
    if not snippets:
        raise errors.TranscriptOff
    return RawTranscript(
        video_id=video,
        language=chosen.language_code,
        kind="generated" if chosen.is_generated else "manual",
        snippets=[one for one in snippets if math.isfinite(one.start) and math.isfinite(one.duration)],
        title=exchange.text_of("title"),
        author=exchange.text_of("author"),
    )


def choose(offered: TranscriptList) -> Transcript:
    """Choose a transcript in the video's language; if there is none, in English; otherwise in any language.

    In each case, a transcript written by a person is preferred to a generated one. The video's language is that of its
    generated transcript.
    """
    every = list(offered)
    own = [one.language_code for one in every if one.is_generated][:1]
    for language in (*own, "en"):
        of_language = [one for one in every if primary_language(one.language_code) == primary_language(language)]
        if of_language:
            return min(of_language, key=lambda one: (one.is_generated, one.language_code != language))
    if not every:
        raise errors.TranscriptOff
    return min(every, key=lambda one: one.is_generated)


# The session for the library ---------------------------------------------------------------------------------------


def _session(exchange: Exchange) -> Session:
    """Create a session for the YouTube library that sends all its requests through `exchange`."""
    import requests
    from requests.adapters import BaseAdapter

    class Adapter(BaseAdapter):
        def send(
            self,
            request: PreparedRequest,
            stream: bool = False,  # noqa: FBT001, FBT002 - the library's interface
            timeout: object = None,
            verify: object = True,  # noqa: FBT002
            cert: object = None,
            proxies: Mapping[str, str] | None = None,
        ) -> Response:
            del stream, timeout, verify, cert, proxies
            return _response(exchange.send(request), request)

        def close(self) -> None:
            """Do nothing: there is nothing to close."""

    session = requests.Session()
    session.trust_env = False
    for scheme in list(session.adapters):
        session.mount(scheme, Adapter())
    return session


def _response(answer: FetchResponse, request: PreparedRequest) -> Response:
    import requests

    response = requests.Response()
    response.status_code = answer.status
    response.headers.update({"content-type": answer.content_type})
    response._content = answer.body  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - how a response is made
    response.encoding = "utf-8"
    response.url = request.url or ""
    response.request = request
    return response


# Errors ------------------------------------------------------------------------------------------------------------


def _explain(error: Exception, exchange: Exchange) -> OctavoError:
    import youtube_transcript_api as library

    status = exchange.last.status if exchange.last else 0
    if status == _TOO_MANY and exchange.last:
        return errors.VideoTooManyRequests(retry_after_seconds=read_wait(exchange.last.headers))
    if isinstance(error, library.YouTubeRequestFailed):
        if status in _SERVER_ERRORS and exchange.last:
            return errors.SiteFailed(retry_after_seconds=read_wait(exchange.last.headers))
        return errors.PageRefused(errors.PASTE_TRANSCRIPT)
    if isinstance(error, library.TranscriptsDisabled | library.NoTranscriptFound):
        live = exchange.details.get("isLive") or exchange.details.get("isUpcoming")
        return errors.VideoLive() if live else errors.TranscriptOff()
    if isinstance(error, library.VideoUnplayable):
        return _explain_unplayable([error.reason or "", *error.sub_reasons])
    known: Iterable[tuple[type[Exception], type[OctavoError]]] = (
        (library.IpBlocked, errors.VideoTooManyRequests),
        (library.RequestBlocked, errors.VideoBlocked),
        (library.AgeRestricted, errors.VideoAgeRestricted),
        (library.VideoUnavailable, errors.VideoUnavailable),
        (library.InvalidVideoId, errors.VideoUnavailable),
        (library.FailedToCreateConsentCookie, errors.VideoConsent),
    )
    return next((ours for theirs, ours in known if isinstance(error, theirs)), errors.VideoUnreadable)()


def _explain_unplayable(reasons: list[str]) -> OctavoError:
    """Choose the error for a video that cannot be played. YouTube gives the reason only as text."""
    said = " ".join(reasons).lower()
    if "live" in said or "premiere" in said:
        return errors.VideoLive()
    if "age" in said.split() or "inappropriate" in said:
        return errors.VideoAgeRestricted()
    return errors.VideoUnavailable()


@dataclass(frozen=True, slots=True)
class RawPage:
    """A fetched page, unchanged. `url` is the URL after all redirects."""

    url: str
    content_type: str
    body: bytes


async def fetch_page(client: GuardedClient, url: str, limits: FetchLimits) -> RawPage:
    try:
        answer = await client.get(url, limits, {"Accept": ACCEPT})
    except TooLarge as error:
        raise errors.PageTooLarge(error.detail) from None
    except TimedOut:
        raise errors.PageTooSlow from None
    except (AddressRefused, BadUrl):
        raise
    except NetworkFailed as error:
        raise (errors.SiteUnreachable(error.detail) if type(error) is NetworkFailed else error) from None
    check_status(answer)
    content_type = clean_type(answer.content_type)
    if _NO_TEXT.match(content_type):
        raise errors.PageNotText
    if not answer.body.strip():
        raise errors.PageEmpty
    return RawPage(answer.url, content_type, answer.body)


def check_status(answer: FetchResponse) -> None:
    if answer.status in _OK:
        return
    if answer.status == _TOO_MANY:
        raise errors.SiteBusy(retry_after_seconds=read_wait(answer.headers))
    if answer.status in _SERVER_ERRORS:
        raise errors.SiteFailed(retry_after_seconds=read_wait(answer.headers))
    raise _STATUSES.get(answer.status, errors.PageRefused)


def read_wait(headers: Mapping[str, str]) -> float | None:
    """Return the wait time in seconds that a site requests in its response, up to a limit. Returns None if there is
    none.
    """
    return requested_wait(headers, longest=MOST_WAIT_SECONDS)


def clean_type(header: str) -> str:
    """Return the media type and charset of a Content-Type header, or a default if the header is invalid.

    The header comes from another server and is not trusted.
    """
    media_type = _MEDIA_TYPE.match(header.strip())
    if not media_type:
        return "application/octet-stream"
    charset = _CHARSET.search(header[:300])
    return media_type[0].lower() + (f"; charset={charset[1].lower()}" if charset else "")
