"""Reads Outlook messages (MSG) and saved web pages (MHTML) in the same way as emails. Also lists email attachments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage, Message
from email.utils import format_datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from octavo.core.errors import BadInput
from octavo.extract.decode import clean, decode
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.formats import eml
from octavo.extract.office.assemble import clean_line, non_empty, to_extracted
from octavo.extract.zips import DAMAGED, reject_deep_nesting

MOST_ATTACHMENTS = 2000
_MAILS = frozenset({SourceType.EML, SourceType.MSG})
# Ids of the properties of a message and its attachments.
_SUBJECT, _BODY, _HTML = "0037", "1000", "1013"
_SENDER, _ADDRESS, _SMTP, _TO, _CC, _MESSAGE_ID = "0C1A", "0C1F", "5D01", "0E04", "0E03", "1035"
_DATA, _LONG_NAME, _SHORT_NAME, _TYPE = "3701", "3707", "3704", "370E"
_TEXT, _NARROW, _BINARY = "001F", "001E", "0102"
_SENT, _RECEIVED = 0x0039_0040, 0x0E06_0040
_PROPERTY = struct.Struct("<IIQ")
_HEADER_BYTES = 32
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_LAST_DAY = datetime(2200, 1, 1, tzinfo=UTC)


class Attachment(NamedTuple):
    name: str
    content_type: str
    content: bytes


def is_mail(source_type: SourceType) -> bool:
    return source_type in _MAILS


def attachments(path: Path, source_type: SourceType) -> Iterator[Attachment]:
    """Yield the attached files of an email, except for pictures that are shown in its text."""
    with reject_deep_nesting():
        message = read_outlook(path) if source_type is SourceType.MSG else eml.read_message(path.read_bytes())
        parts = [part for part, _ in zip(message.walk(), range(MOST_ATTACHMENTS), strict=False)]
    for part in parts:
        if part.is_multipart() or not _is_attached(part):
            continue
        payload: Any = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            yield Attachment(eml.attachment_name(part), part.get_content_type(), payload)


def _is_attached(part: Message) -> bool:
    disposition = part.get_content_disposition()
    if disposition == "attachment":
        return True
    is_text = part.get_content_maintype() == "text" and not part.get_filename()
    is_shown = part.get_content_maintype() == "image" and part.get("Content-ID") is not None
    return not is_text and not is_shown


# Outlook messages ---------------------------------------------------------------------------------------------------


def extract(path: Path, _hints: Hints) -> Extracted:
    with reject_deep_nesting():
        return eml.from_message(read_outlook(path), SourceType.MSG)


def read_outlook(path: Path) -> EmailMessage:
    """Convert an Outlook message to an email with the same headers, texts and attachments."""
    olefile: Any = import_module("olefile")  # untyped; imported late, because only the sandbox needs it
    try:
        with closing(olefile.OleFileIO(str(path))) as ole:
            return _message(_Properties(ole))
    except (OSError, ValueError, IndexError, KeyError, AttributeError, struct.error) as error:
        raise BadInput(f"{DAMAGED}the message cannot be read.") from error


class _Properties:
    """Reads the properties of an Outlook message, or those of its attachment at the path `prefix`."""

    def __init__(self, ole: Any, prefix: tuple[str, ...] = ()) -> None:  # noqa: ANN401 - an untyped library
        self.ole = ole
        self.prefix = prefix

    def binary(self, name: str, kind: str = _BINARY) -> bytes:
        place = [*self.prefix, f"__substg1.0_{name}{kind}"]
        return self.ole.openstream(place).read() if self.ole.exists(place) else b""

    def text(self, name: str) -> str:
        wide = self.binary(name, _TEXT)
        return clean(wide.decode("utf-16-le", "replace")) if wide else decode(self.binary(name, _NARROW))

    def line(self, name: str) -> str:
        return " ".join(self.text(name).split())

    def time(self, *tags: int) -> datetime | None:
        place = [*self.prefix, "__properties_version1.0"]
        data: bytes = self.ole.openstream(place).read()[_HEADER_BYTES:] if self.ole.exists(place) else b""
        whole = data[: len(data) // _PROPERTY.size * _PROPERTY.size]
        found = {tag: value for tag, _, value in _PROPERTY.iter_unpack(whole)}
        ticks = next((found[tag] for tag in tags if found.get(tag)), 0)
        most = int((_LAST_DAY - _EPOCH).total_seconds()) * 10_000_000
        return _EPOCH + timedelta(microseconds=ticks // 10) if 0 < ticks < most else None

    def attachments(self) -> Iterator[_Properties]:
        names = {entry[0] for entry in self.ole.listdir(streams=True, storages=True) if len(entry) > len(self.prefix)}
        for name in sorted(name for name in names if name.startswith("__attach_version1.0_"))[:MOST_ATTACHMENTS]:
            yield _Properties(self.ole, (name,))


def _message(properties: _Properties) -> EmailMessage:
    message = EmailMessage()
    for name, value in _headers(properties).items():
        if value:
            message[name] = value
    plain, marked_up = properties.text(_BODY), properties.binary(_HTML) or properties.text(_HTML).encode()
    if plain or not marked_up:
        message.set_content(plain or "")
    if marked_up:
        html = decode(marked_up)
        message.add_alternative(html, subtype="html") if plain else message.set_content(html, subtype="html")
    for one in properties.attachments():
        content = one.binary(_DATA)
        name = one.line(_LONG_NAME) or one.line(_SHORT_NAME) or "attachment"
        kind, _, subtype = (one.line(_TYPE) or "application/octet-stream").partition("/")
        if content:
            known = kind.isalnum() and subtype and kind not in {"multipart", "message"}
            kinds = (kind, subtype) if known else ("application", "octet-stream")
            message.add_attachment(content, maintype=kinds[0], subtype=kinds[1], filename=name)
    return message


def _headers(properties: _Properties) -> dict[str, str]:
    address = properties.line(_SMTP) or properties.line(_ADDRESS)
    name = properties.line(_SENDER)
    sent = properties.time(_SENT, _RECEIVED)
    return {
        "Subject": properties.line(_SUBJECT),
        "From": f"{name} <{address}>" if "@" in address and name and name != address else name or address,
        "To": properties.line(_TO),
        "Cc": properties.line(_CC),
        "Date": format_datetime(sent) if sent else "",
        "Message-ID": properties.line(_MESSAGE_ID),
    }


# Saved web pages ----------------------------------------------------------------------------------------------------


def extract_saved_page(path: Path, _hints: Hints) -> Extracted:
    """Read the first HTML part of a saved web page (MHTML). Other parts contain its pictures and frames."""
    with reject_deep_nesting():
        message = eml.read_message(path.read_bytes())
        part = next((one for one in message.walk() if one.get_content_type() == "text/html"), None)
        markdown = eml.text_of(part if part is not None else message)
    metadata = Metadata(
        title=clean_line(eml.header(message, "Subject")),
        date=eml.date_of(message),
        extra=non_empty(url=eml.header(message, "Snapshot-Content-Location")),
    )
    return to_extracted(SourceType.MHTML, markdown, metadata, quality=Quality.FULL)


PROCESSOR = Processor((SourceType.MSG,), extract)
SAVED_PAGE = Processor((SourceType.MHTML,), extract_saved_page)
