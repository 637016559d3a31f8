"""Errors that occur when a document is uploaded or a link is fetched, with advice for the user."""

from __future__ import annotations

from typing import ClassVar

from octavo.core.errors import BadInput, ErrorClass, NetworkFailed, OctavoError, Paywalled, TimedOut, TooLarge

COPIES = Paywalled.advice
PASTE_TRANSCRIPT = "If you have a transcript, paste it; timestamps at the beginning of lines are recognised."


class UploadIncomplete(BadInput):
    """The upload is incomplete. Send the bytes, then finalize it."""

    code = "UPLOAD_INCOMPLETE"
    status = 409


class UploadClosed(BadInput):
    """This upload has already ended. Start a new one."""

    code = "UPLOAD_CLOSED"
    status = 409


class NotCanonical(BadInput):
    """The document was not created from this upload."""

    code = "NOT_CANONICAL"
    error_class = ErrorClass.PERMANENT
    status = 409


class HashMismatch(BadInput):
    """The SHA-256 of the received bytes differs from the expected one. Send the file again."""

    code = "HASH_MISMATCH"


class SizeMismatch(BadInput):
    """The number of received bytes differs from the expected size. Send the file again."""

    code = "SIZE_MISMATCH"


class Duplicate(BadInput):
    """You already have this file."""

    code = "DUPLICATE"
    status = 409

    def __init__(self, twin: str) -> None:
        super().__init__(f"The file already exists as document {twin}.")
        self.fields = {"duplicate_of": twin}


class QuotaExceeded(TooLarge):
    """Storage quota exceeded. Delete documents permanently, or ask for a larger quota."""

    code = "QUOTA_EXCEEDED"


class TooManyUploads(OctavoError):
    """Too many open uploads. Finish some first."""

    code = "TOO_MANY_UPLOADS"
    error_class = ErrorClass.RATE_LIMIT
    status = 429

    def __init__(self, detail: str | None = None, retry_after_seconds: float = 60) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class LinkFailed(OctavoError):
    """The link cannot be fetched."""

    code = "LINK_FAILED"
    status = 422
    advice: ClassVar[str | None] = None

    def __init__(self, detail: str | None = None, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(detail or self.advice)
        self.retry_after_seconds = retry_after_seconds


# Pages -------------------------------------------------------------------------------------------------------------


class PageForbidden(LinkFailed):
    """The site does not allow automated access to this page."""

    code = "PAGE_FORBIDDEN"
    advice = COPIES


class PageMissing(LinkFailed):
    """Page not found."""

    code = "PAGE_NOT_FOUND"
    advice = "Check the URL, or look for a copy in the Internet Archive (web.archive.org)."


class SiteBusy(LinkFailed):
    """The site is limiting requests from this server."""

    code = "PAGE_RATE_LIMIT"
    error_class = ErrorClass.RATE_LIMIT


class SiteFailed(LinkFailed):
    """The site reported an internal error."""

    code = "PAGE_SITE_FAILED"
    # The site is unavailable, which is not the fault of the document: it is retried after 5, 25, 125 seconds and so on.
    error_class = ErrorClass.NETWORK
    advice = "Retry when the site works again."


class PageRefused(LinkFailed):
    """The site did not return the page."""

    code = "PAGE_REFUSED"
    advice = COPIES


class PageNotText(LinkFailed):
    """The URL does not lead to a page with text that Octavo can read."""

    code = "PAGE_NOT_TEXT"
    error_class = ErrorClass.UNSUPPORTED
    advice = "Add the URL of a page with text, or paste the text."


class PageEmpty(BadInput):
    """The site returned an empty page. Try again later, or paste the text."""

    code = "EMPTY"


class PageTooLarge(TooLarge):
    """The page is larger than the limit for links. Download it and add the file."""


class PageTooSlow(TimedOut):
    """The site did not respond in time. Retry later, or paste the text."""


class SiteUnreachable(NetworkFailed):
    """The site cannot be reached."""


# Videos ------------------------------------------------------------------------------------------------------------


class TranscriptOff(LinkFailed):
    """This video has no transcript, or its subtitles are disabled."""

    code = "VIDEO_NO_TRANSCRIPT"
    advice = PASTE_TRANSCRIPT


class VideoUnavailable(LinkFailed):
    """This video is private, has been removed, or is not available here."""

    code = "VIDEO_UNAVAILABLE"
    advice = "Check whether the video plays in a private browser window."


class VideoAgeRestricted(LinkFailed):
    """This video is age-restricted; YouTube requires a sign-in."""

    code = "VIDEO_AGE_RESTRICTED"
    advice = PASTE_TRANSCRIPT


class VideoLive(LinkFailed):
    """This is a live stream without a transcript. Retry when it has ended."""

    code = "VIDEO_LIVE"


class VideoTooManyRequests(LinkFailed):
    """YouTube is limiting requests from this server."""

    code = "VIDEO_RATE_LIMIT"
    error_class = ErrorClass.RATE_LIMIT


class VideoBlocked(LinkFailed):
    """YouTube blocked this server as a suspected bot."""

    code = "VIDEO_BLOCKED"
    error_class = ErrorClass.TRANSIENT
    advice = PASTE_TRANSCRIPT


class VideoConsent(LinkFailed):
    """YouTube requires consent that Octavo cannot give."""

    code = "VIDEO_CONSENT"
    advice = PASTE_TRANSCRIPT


class VideoUnreadable(LinkFailed):
    """This version of Octavo cannot read YouTube's response."""

    code = "VIDEO_UNREADABLE"
    advice = f"Try a newer version of Octavo. {PASTE_TRANSCRIPT}"


class BadFolder(BadInput):
    """This folder cannot be watched."""

    code = "BAD_FOLDER"


class BadSource(BadInput):
    """This source cannot be added or read."""

    code = "BAD_SOURCE"


class SourceRefused(BadInput):
    """The server refused the sign-in. Check the user name and the password."""

    code = "SOURCE_REFUSED"


class ConsentRefused(BadInput):
    """The account was not connected."""

    code = "CONSENT_REFUSED"


class MailGone(BadInput):
    """The email was deleted or moved before it could be read."""

    code = "MAIL_GONE"


class InvalidExport(BadInput):
    """The export contains an invalid record, which was not imported."""

    code = "INVALID_EXPORT"


class NotRestorable(BadInput):
    """A file of this document is missing from the export, or was changed. Export the document again."""

    code = "EXPORT_INCOMPLETE"
