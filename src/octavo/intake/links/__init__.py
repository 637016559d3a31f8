"""Adds links and pasted text as documents. The upload stores the URL; the job fetches the page or transcript."""

from octavo.intake.links.addresses import canonical_url, label_of, video_id, watch_url
from octavo.intake.links.sources import LINK_TYPE, link_source, paste_source, video_source
from octavo.intake.links.targets import RawPage, fetch_page, fetch_transcript

__all__ = [
    "LINK_TYPE",
    "RawPage",
    "canonical_url",
    "fetch_page",
    "fetch_transcript",
    "label_of",
    "link_source",
    "paste_source",
    "video_id",
    "video_source",
    "watch_url",
]
