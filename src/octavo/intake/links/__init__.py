"""Links as sources: what somebody gives is the address; the page or the transcript is fetched by the job."""

from octavo.intake.links.addresses import canonical_url, label_of
from octavo.intake.links.pages import RawPage, fetch_page
from octavo.intake.links.sources import LINK_TYPE, link_source, paste_source, video_source
from octavo.intake.links.transcripts import fetch_transcript
from octavo.intake.links.videos import video_id, watch_url

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
