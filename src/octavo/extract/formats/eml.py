"""Mails as files."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.contract import Extracted, Metadata, Quality, SourceType
from octavo.extract.decode import clean
from octavo.extract.office import result
from octavo.extract.office.mails import Reader, author_of, date_of, header, read_message
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import deep_is_damaged


def extract(path: Path, _hints: Hints) -> Extracted:
    with deep_is_damaged():
        message = read_message(path.read_bytes())
        reader = Reader()
        parts = list(filter(None, reader.message(message)))
    if reader.attachments:
        parts += ["## Attachments", "\n".join(reader.attachments)]
    if reader.left_out:
        parts.append(f"*Left out here: parts of the mail ({reader.left_out:,}). The file itself has all of them.*")
    metadata = Metadata(
        title=result.line(header(message, "Subject")),
        author=result.line(author_of(message)),
        date=date_of(message),
        language=result.language(header(message, "Content-Language")),
        extra=result.present(
            to=header(message, "To"), cc=header(message, "Cc"), message_id=header(message, "Message-ID")
        ),
    )
    quality = Quality.PARTIAL if reader.left_out else Quality.FULL
    return result.to_extracted(SourceType.EML, clean("\n\n".join(parts)), metadata, quality=quality, has_title=False)


PROCESSOR = Processor((SourceType.EML,), extract)
