"""Why a link did not become a document, one class each: what happened, and what somebody can do about it."""

from __future__ import annotations

from typing import ClassVar

from octavo.core.errors import BadInput, ErrorClass, NetworkFailed, OctavoError, Paywalled, TimedOut, TooLarge

COPIES = Paywalled.advice
PASTE_TRANSCRIPT = "If you have a transcript of it, paste that; times at the beginnings of lines are understood."


class LinkFailed(OctavoError):
    """This link cannot be fetched."""

    code = "LINK_FAILED"
    status = 422
    advice: ClassVar[str | None] = None

    def __init__(self, detail: str | None = None, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(detail or self.advice)
        self.retry_after_seconds = retry_after_seconds


# Pages -------------------------------------------------------------------------------------------------------------


class PageForbidden(LinkFailed):
    """The site does not give this page to programs."""

    code = "PAGE_FORBIDDEN"
    advice = COPIES


class PageMissing(LinkFailed):
    """There is no page at this address, or not any more."""

    code = "PAGE_NOT_FOUND"
    advice = "Look whether the address is whole, or look for a copy in the Internet Archive (web.archive.org)."


class SiteBusy(LinkFailed):
    """The site takes no more requests from here for now. It is tried again by itself."""

    code = "PAGE_RATE_LIMIT"
    error_class = ErrorClass.RATE_LIMIT


class SiteFailed(LinkFailed):
    """The site has a problem of its own."""

    code = "PAGE_SITE_FAILED"
    error_class = ErrorClass.TRANSIENT
    advice = "It is tried again by itself a few times; after that, retry when the site works again."


class PageRefused(LinkFailed):
    """The site answered with something other than the page."""

    code = "PAGE_REFUSED"
    advice = COPIES


class PageNotText(LinkFailed):
    """This address leads to something without text, or of a kind that Octavo does not read."""

    code = "PAGE_NOT_TEXT"
    error_class = ErrorClass.UNSUPPORTED
    advice = "Add the address of the page that describes it, or paste the text."


class PageEmpty(BadInput):
    """The site answered with nothing at all. Try again later, or paste the text."""

    code = "EMPTY"


class PageTooLarge(TooLarge):
    """What this address leads to is larger than what is fetched. Download it yourself and add the file."""


class PageTooSlow(TimedOut):
    """The site took too long to answer. It is tried again by itself; if that does not help, paste the text."""


class SiteUnreachable(NetworkFailed):
    """The site cannot be reached at the moment. It is tried again by itself."""


# Videos ------------------------------------------------------------------------------------------------------------


class TranscriptOff(LinkFailed):
    """This video has no transcript: its maker switched subtitles off, or there never were any."""

    code = "VIDEO_NO_TRANSCRIPT"
    advice = PASTE_TRANSCRIPT


class VideoUnavailable(LinkFailed):
    """This video is private, was removed, or is not shown here."""

    code = "VIDEO_UNAVAILABLE"
    advice = "Look whether it plays in a browser where nobody is signed in."


class VideoAgeRestricted(LinkFailed):
    """YouTube shows this video, and its transcript, only to people who are signed in and old enough."""

    code = "VIDEO_AGE_RESTRICTED"
    advice = PASTE_TRANSCRIPT


class VideoLive(LinkFailed):
    """This video is a live stream that has no transcript yet. Retry when it is over."""

    code = "VIDEO_LIVE"


class VideoTooManyRequests(LinkFailed):
    """YouTube takes no more requests from here for now. It is tried again by itself."""

    code = "VIDEO_RATE_LIMIT"
    error_class = ErrorClass.RATE_LIMIT


class VideoBlocked(LinkFailed):
    """YouTube takes this server for a robot and hides the transcript."""

    code = "VIDEO_BLOCKED"
    error_class = ErrorClass.TRANSIENT
    advice = f"It is tried again by itself a few times. {PASTE_TRANSCRIPT}"


class VideoConsent(LinkFailed):
    """YouTube asks for a consent that could not be given from here."""

    code = "VIDEO_CONSENT"
    advice = PASTE_TRANSCRIPT


class VideoUnreadable(LinkFailed):
    """YouTube answered in a form that this version of Octavo does not understand."""

    code = "VIDEO_UNREADABLE"
    advice = f"A newer version may. {PASTE_TRANSCRIPT}"
