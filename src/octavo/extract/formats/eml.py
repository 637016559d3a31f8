"""Reads email files: headers, the text as a mail program shows it, and a list of the attachments."""

from __future__ import annotations

import email.policy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.errors import HeaderParseError
from email.header import Header, decode_header
from email.message import Message
from email.parser import BytesParser
from email.utils import getaddresses, parsedate_to_datetime
from itertools import islice
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from octavo.core.errors import NotFound
from octavo.core.texts import count_words
from octavo.extract.decode import clean, decode
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.markdown.block_writer import quoted, write_heading
from octavo.extract.markdown.escape import escape
from octavo.extract.office.assemble import Figures, clean_language, clean_line, non_empty, to_extracted
from octavo.extract.office.html import Picture, body_of, read_html, to_markdown
from octavo.extract.office.xml import Element, is_spacer
from octavo.extract.plain_text import convert
from octavo.extract.zips import reject_deep_nesting

MOST_PARTS = 2000
_DEEPEST_MESSAGE = 5
_DEEPEST_QUOTE = 5
_MOST_HEADER = 2000
_SHOWN = ("From", "To", "Cc", "Date")
# A plain text part that is shorter than this only refers the reader to the HTML part.
_STUB_WORDS = 30
_STUB_SHARE = 0.2
_SAME_SHARE = 0.8
_QUOTED = re.compile(r"> ?")
_KIBIBYTE = 1024


def extract(path: Path, _hints: Hints) -> Extracted:
    with reject_deep_nesting():
        return from_message(read_message(path.read_bytes()), SourceType.EML)


def from_message(message: Message, source_type: SourceType) -> Extracted:
    with reject_deep_nesting():
        reader = MessageReader(_pictures_of(message))
        parts = list(filter(None, reader.message(message)))
    if reader.attachments:
        parts += ["## Attachments", "\n".join(reader.attachments)]
    if reader.left_out:
        parts.append(f"*Omitted: parts of the mail ({reader.left_out:,}). The file contains all of them.*")
    metadata = Metadata(
        title=clean_line(header(message, "Subject")),
        author=clean_line(author_of(message)),
        date=date_of(message),
        language=clean_language(header(message, "Content-Language")),
        extra=non_empty(to=header(message, "To"), cc=header(message, "Cc"), message_id=header(message, "Message-ID")),
    )
    quality = Quality.PARTIAL if reader.left_out else Quality.FULL
    return to_extracted(
        source_type, clean("\n\n".join(parts)), metadata, quality=quality, has_title=False, figures=reader.figures
    )


def _pictures_of(message: Message) -> dict[str, int]:
    """Find the pictures that the text of an email can show.

    Maps the content ID or URL of each picture to the number of the message part that contains it.
    """
    found: dict[str, int] = {}
    for number, part in enumerate(islice(message.walk(), MOST_PARTS), 1):
        if part.get_content_maintype() == "image":
            for name in (str(part.get("Content-ID") or "").strip("<> \t\r\n"), str(part.get("Content-Location") or "")):
                if name:
                    found.setdefault(name.strip(), number)
    return found


def read_figure(path: Path, member: str) -> bytes:
    """Return the bytes of a picture in the mail.

    `member` names the picture: for example, `part:3` is the third part of the message, in file order.
    """
    number = member.removeprefix("part:")
    place = int(number) if number.isdecimal() and 0 < len(number) < 7 else 0  # noqa: PLR2004 - no mail has more
    parts = read_message(path.read_bytes()).walk()
    part = next(islice(parts, place - 1, None), None) if 0 < place <= MOST_PARTS else None
    payload: Any = part.get_payload(decode=True) if part is not None else None
    if not isinstance(payload, bytes):
        raise NotFound("The email does not contain this picture.")
    return payload


@dataclass(slots=True)
class MessageReader:
    """Reads a message and the messages attached to it. `attachments` lists the attachments of all these messages.

    `pictures` maps the content IDs and URLs of pictures to the numbers of their message parts. `left_out` counts
    message parts beyond the limit and messages that are nested too deeply.
    """

    pictures: dict[str, int] = field(default_factory=dict[str, int])
    figures: Figures = field(default_factory=Figures)
    attachments: list[str] = field(default_factory=list[str])
    parts: int = 0
    left_out: int = 0

    def message(self, message: Message, level: int = 1) -> Iterator[str]:
        subject = header(message, "Subject")
        yield write_heading(min(level, 6), escape(subject or "(no subject)"))
        lines = [f"**{name}:** {escape(value)}" for name in _SHOWN if (value := header(message, name))]
        yield "  \n".join(lines)
        yield from self._part(message, level)

    def _part(self, part: Message, level: int) -> Iterator[str]:
        self.parts += 1
        if self.parts > MOST_PARTS:
            self.left_out += 1
            return
        kind = part.get_content_type()
        inside = _parts(part)
        if kind == "multipart/alternative":
            yield from self._best(inside, level)
        elif kind == "message/rfc822":
            for one in inside:
                if level < _DEEPEST_MESSAGE:
                    yield from self.message(one, level + 1)
                else:
                    self.left_out += 1
        elif inside:
            for one in inside:
                yield from self._part(one, level)
        elif _is_text(part):
            yield text_of(part, self._picture)
        elif kind != "multipart/mixed":
            self.attachments.append(_attachment(part))

    def _picture(self, element: Element) -> str | None:
        source = unquote((element.get("src") or "").strip())
        number = self.pictures.get(source.removeprefix("cid:"))
        if number is None:
            return None
        return "" if is_spacer(element) else self.figures.add(f"part:{number}", element.get("alt") or "")

    def _best(self, parts: list[Message], level: int) -> Iterator[str]:
        """Choose between alternative versions of the text.

        Plain text is preferred, except in two cases: another version also shows pictures, or the plain text is only a
        stub that refers to another version.
        """
        texts = [(one.get_content_type(), "\n\n".join(filter(None, self._part(one, level)))) for one in parts]
        most = max((count_words(text) for _, text in texts), default=0)
        plain = next((text for kind, text in texts if kind == "text/plain"), "")
        words = count_words(plain)
        shown = next((text for _, text in texts if "](figures/" in text), "")
        if shown and count_words(shown) >= words * _SAME_SHARE:
            yield shown
        elif words and not (words < _STUB_WORDS and words < most * _STUB_SHARE):
            yield plain
        else:
            yield max((text for _, text in texts), key=count_words, default="")


def read_message(data: bytes) -> Message:
    return BytesParser(policy=email.policy.compat32).parsebytes(data)


def header(message: Message, name: str) -> str:
    """Return a header of the email, decoded and on one line."""
    value: Any = message.get(name)
    if value is None:
        return ""
    try:
        parts = decode_header(value if isinstance(value, Header) else str(value)[:_MOST_HEADER])
    except (HeaderParseError, ValueError, LookupError):
        parts = [(str(value), None)]
    text = "".join(_decoded(part, charset) for part, charset in parts)
    return " ".join(clean(text).split())[:_MOST_HEADER]


def _decoded(part: bytes | str, charset: str | None) -> str:
    if isinstance(part, str):
        return part.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        return part.decode(charset or "ascii")
    except (LookupError, ValueError):
        return decode(part)


def author_of(message: Message) -> str | None:
    """Return the sender's name, or the sender's address if there is no name."""
    addresses = getaddresses([header(message, "From")])
    return next((name or address for name, address in addresses if name or address), None)


def date_of(message: Message) -> str | None:
    try:
        return parsedate_to_datetime(header(message, "Date")).date().isoformat()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _parts(part: Message) -> list[Message]:
    payload = cast("object", part.get_payload())
    return [one for one in cast("list[object]", payload) if isinstance(one, Message)] if part.is_multipart() else []


def _is_text(part: Message) -> bool:
    """Whether this part of the email is text of the message itself, and not an attached text file."""
    is_attached = part.get_content_disposition() == "attachment"
    return part.get_content_type() in {"text/plain", "text/html"} and not is_attached


def text_of(part: Message, picture: Picture | None = None) -> str:
    payload: Any = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    charset = part.get_content_charset()
    try:
        text = clean(data.decode(charset)) if charset else decode(data)
    except (LookupError, ValueError):
        text = decode(data)
    if part.get_content_type() == "text/html":
        return to_markdown(body_of(read_html(text)), picture)
    flowed = str(part.get_param("format") or "").lower() == "flowed"
    return plain_markdown(_unflowed(text) if flowed else text)


def _unflowed(text: str) -> str:
    """Join the lines of format=flowed text: a line that ends with a space continues on the next line."""
    lines: list[str] = []
    goes_on = False
    for line in text.split("\n"):
        line = line.removeprefix(" ") if not line.startswith("  ") else line  # noqa: PLW2901 - removes space-stuffing
        if goes_on and not line.startswith(">") and line != "-- ":
            lines[-1] += line
        else:
            lines.append(line)
        goes_on = line.endswith(" ") and line != "-- " and not line.startswith(">")
    return "\n".join(lines)


def plain_markdown(text: str, depth: int = 0) -> str:
    """Convert plain text to Markdown. Lines that start with ">" become quotes."""
    parts: list[str] = []
    for is_quote, lines in _split_quotes(text.split("\n")):
        if is_quote and depth < _DEEPEST_QUOTE:
            inside = plain_markdown("\n".join(_QUOTED.sub("", line, count=1) for line in lines), depth + 1)
            parts.append(quoted(inside) if inside else "")
        else:
            parts.append(convert("\n".join(lines).replace("\f", "\n")).markdown)
    return "\n\n".join(filter(None, parts))


def _split_quotes(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    run: list[str] = []
    was_quote = False
    for line in lines:
        is_quote = line.startswith(">")
        if is_quote != was_quote and run:
            yield was_quote, run
            run = []
        was_quote = is_quote
        run.append(line)
    yield was_quote, run


def _attachment(part: Message) -> str:
    """Write the name and size of an attachment as a list item. Its content is not part of the document."""
    payload: Any = part.get_payload(decode=True)
    size = len(payload) if isinstance(payload, bytes) else 0
    return f"- {escape(attachment_name(part))} ({_size(size)})"


def attachment_name(part: Message) -> str:
    """Return the file name of an attachment, or its type if it has no name."""
    try:
        name = part.get_filename() or ""
    except (ValueError, LookupError, TypeError):
        name = ""
    if not name:
        return part.get_content_type()
    return " ".join(clean("".join(_decoded(*one) for one in decode_header(name))).split())[:_MOST_HEADER]


def _size(count: int) -> str:
    if count < _KIBIBYTE:
        return f"{count} bytes"
    return f"{count / _KIBIBYTE:,.0f} KiB" if count < _KIBIBYTE**2 else f"{count / _KIBIBYTE**2:,.1f} MiB"


PROCESSOR = Processor((SourceType.EML,), extract, read_figure)
