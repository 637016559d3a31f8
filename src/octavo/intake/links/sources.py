"""Turns links and pasted text into uploads. The bytes of the upload are the URL or the text."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.core.errors import Empty
from octavo.core.types import JSON
from octavo.extract.transcript import linked_urls
from octavo.fetch import BadUrl, parse_url, refuse_private
from octavo.intake.links.addresses import canonical_url, label_of, video_id, watch_url
from octavo.intake.upload_rows import NewUpload, Policy

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
    """Prepare the upload of a web page or a video, given its URL.

    Raises an error for invalid or private URLs, without using the network.
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
    """Return a name for text without a title: its first line.

    Slashes are replaced, because they would make the name look like a path.
    """
    line = next(line.strip() for line in text.splitlines() if line.strip())
    return line[:80].replace("/", " ").replace("\\", " ").strip(" .#*>-") or "Pasted text"
