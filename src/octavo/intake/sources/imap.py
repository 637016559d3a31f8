"""A connection to an IMAP server. The calls block, so they must be made in threads.

Data from the server is not trusted: lines and literals are limited in length, and emails are read in parts.
"""

from __future__ import annotations

import base64
import imaplib
import re
import socket
import ssl
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.header import decode_header
from email.parser import BytesHeaderParser
from typing import TYPE_CHECKING

from octavo.core.errors import BadInput, NetworkFailed, OctavoError
from octavo.fetch import CertificateRefused
from octavo.intake.errors import BadSource, MailGone, SourceRefused

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

SOCKET_SECONDS = 30.0
PART_BYTES = 1 << 20
MOST_LITERAL = 4 << 20
# Limits for the response to one command.
MOST_ANSWER, ANSWER_SECONDS = 64 << 20, 120.0
MOST_HEADER_CHARACTERS = 1000
# The response to a search has a limited length, so UIDs are searched in ranges.
RANGE_UIDS = 100_000
BATCH = 500
_UID = re.compile(rb"\bUID (\d{1,10})")
_SIZE = re.compile(rb"\bRFC822\.SIZE (\d{1,12})")
_BEGINS = re.compile(rb"\d+ \(")
_QUOTED_BODY = re.compile(rb'BODY\[\](?:<\d+>)? "((?:[^"\\]|\\.)*)"')
_ATTACHED = re.compile(rb'"attachment["; ]|"(?:file)?name\*?\d*\*?" ', re.IGNORECASE)
# Response codes of temporary refusals: RFC 5530, and two that large providers use for too many requests.
_FOR_NOW = re.compile(r"\[(?:UNAVAILABLE|INUSE|LIMIT|SERVERBUG|THROTTLED|OVERQUOTA)\b", re.IGNORECASE)
_HEADERS = "BODY.PEEK[HEADER.FIELDS (FROM SUBJECT)]"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The server to connect to.

    `addresses` are the IP addresses of the host, which have been checked. If `tls` is None, the connection is not
    encrypted.
    """

    host: str
    port: int
    addresses: Sequence[str]
    tls: ssl.SSLContext | None


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name, and either a password or an OAuth access token."""

    user: str
    password: str = ""
    token: str | None = None


@dataclass(frozen=True, slots=True)
class MailSummary:
    """An email in a mailbox. The sender and the subject are fetched only if they are needed."""

    uid: int
    bytes: int
    sender: str = ""
    subject: str = ""
    has_attachments: bool = False


class _Connection(imaplib.IMAP4):
    """Connects only to the checked IP addresses, and limits the size and duration of responses."""

    def __init__(self, place: ServerAddress) -> None:
        self._place = place
        self._begin_answer()
        super().__init__(place.host, place.port, SOCKET_SECONDS)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        failure: OSError = OSError("no address")
        for address in self._place.addresses:
            try:
                plain = socket.create_connection((address, self._place.port), timeout)
            except OSError as error:
                failure = error
                continue
            tls = self._place.tls
            return tls.wrap_socket(plain, server_hostname=self._place.host) if tls else plain
        raise failure

    def read(self, size: int) -> bytes:
        if size > MOST_LITERAL:
            raise self.abort("The literal is too long.")
        return self._counted(super().read(size))

    def readline(self) -> bytes:
        return self._counted(super().readline())

    def send(self, data: ReadableBuffer) -> None:
        self._begin_answer()
        super().send(data)

    def _begin_answer(self) -> None:
        self._received, self._until = 0, time.monotonic() + ANSWER_SECONDS

    def _counted(self, block: bytes) -> bytes:
        """Count the bytes received, and abort if the response is too long or takes too long.

        The library keeps the whole response in memory until it is complete, which may never happen.
        """
        self._received += len(block)
        if self._received > MOST_ANSWER or time.monotonic() > self._until:
            raise self.abort("The response is too long or took too long.")
        return block


class Mailbox:
    """One mailbox on a server, selected by its name."""

    def __init__(self, place: ServerAddress, credentials: Credentials, name: str, *, writable: bool) -> None:
        self._connection = _opened(place)
        try:
            _sign_in(self._connection, credentials)
            self.validity, self.next_uid = _select(self._connection, name, writable=writable)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection without LOGOUT, because the server might not respond to it."""
        with suppress(OSError):
            # Ends a read in another thread, for which closing would wait.
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._connection.shutdown()

    def search(self, after: int, most: int) -> tuple[list[int], int]:
        """Return up to `most` UIDs of emails that follow the UID `after`, and the last UID that was searched."""
        found: list[int] = []
        end = after
        while end < self.next_uid - 1 and len(found) < most:
            first, end = end + 1, min(end + RANGE_UIDS, self.next_uid - 1)
            answer = self._uid("SEARCH", "UID", f"{first}:{end}")
            numbers = b" ".join(part for part in answer if isinstance(part, bytes)).split()
            found += sorted(uid for uid in map(int, numbers) if first <= uid <= end)
        if len(found) > most:
            return found[:most], found[most - 1]
        return found, end

    def summaries(self, uids: Sequence[int], *, headers: bool, structure: bool) -> Iterator[MailSummary]:
        """Fetch the sizes of emails.

        If `headers` is true, also fetches their senders and subjects. If `structure` is true, also checks whether they
        have attachments.
        """
        more = ([_HEADERS] if headers else []) + (["BODYSTRUCTURE"] if structure else [])
        wanted = " ".join(["UID RFC822.SIZE", *more])
        for start in range(0, len(uids), BATCH):
            part = uids[start : start + BATCH]
            for items in _messages(self._uid("FETCH", _uid_set(part), f"({wanted})")):
                if (summary := _summary(items)) and summary.uid in part:
                    yield summary

    def read_part(self, uid: int, offset: int) -> bytes:
        """Read the part of an email that begins at `offset`. Returns no bytes after the end of the email.

        Raises `BadInput` if the server refuses to return this email.
        """
        try:
            answer = self._uid("FETCH", str(uid), f"(UID BODY.PEEK[]<{offset}.{PART_BYTES}>)")
        except BadSource as error:
            raise BadInput(error.line) from None
        for items in _messages(answer):
            text = b" ".join(one if isinstance(one, bytes) else one[0] for one in items)
            if b"BODY[]" not in text.upper():
                continue
            for one in items:
                if isinstance(one, tuple):
                    return one[1]
            quoted = _QUOTED_BODY.search(text)
            return re.sub(rb"\\(.)", rb"\1", quoted[1]) if quoted else b""
        raise MailGone

    def mark_seen(self, uids: Sequence[int]) -> None:
        for start in range(0, len(uids), BATCH):
            self._uid("STORE", _uid_set(uids[start : start + BATCH]), "+FLAGS.SILENT", r"(\Seen)")

    def move(self, uids: Sequence[int], name: str) -> None:
        """Move emails to another mailbox, which is created if it does not exist. Emails are never moved by copying
        and deleting them.
        """
        target = _quoted(encode_name(name))
        with named_errors():
            if "MOVE" not in _capabilities(self._connection):
                raise BadSource("This mail server cannot move emails. Mark them as seen instead.")
            self._connection.create(target)  # refused if it exists
        for start in range(0, len(uids), BATCH):
            self._uid("MOVE", _uid_set(uids[start : start + BATCH]), target)

    def _uid(self, command: str, *arguments: str) -> list[bytes | tuple[bytes, bytes]]:
        with named_errors():
            status, answer = self._connection.uid(command, *arguments)
        if status != "OK":
            raise _refused("The mail server refused a request", answer)
        return [one for one in answer if one]


@contextmanager
def named_errors() -> Generator[None]:
    """Raise Octavo's errors instead of those of `imaplib`, even if the server sends an invalid response."""
    try:
        yield
    except (imaplib.IMAP4.abort, OSError) as error:
        raise _lost(error) from None
    except (imaplib.IMAP4.error, ValueError, LookupError):
        raise BadSource("The mail server sent a response that Octavo does not understand.") from None


def _opened(place: ServerAddress) -> _Connection:
    try:
        return _Connection(place)
    except ssl.SSLError:
        raise CertificateRefused("The TLS certificate of the mail server is invalid.") from None
    except (imaplib.IMAP4.error, OSError) as error:
        raise _lost(error) from None


def _sign_in(connection: _Connection, credentials: Credentials) -> None:
    try:
        if credentials.token:
            given = f"user={credentials.user}\1auth=Bearer {credentials.token}\1\1".encode()
            answers = iter((given,))  # a refusal must be answered with an empty line
            connection.authenticate("XOAUTH2", lambda _: next(answers, b""))
        elif "AUTH=PLAIN" in connection.capabilities:
            plain = f"\0{credentials.user}\0{credentials.password}".encode()
            connection.authenticate("PLAIN", lambda _: plain)
        else:
            connection.login(_quoted(credentials.user), credentials.password)
    except (imaplib.IMAP4.abort, OSError) as error:
        raise _lost(error) from None
    except (imaplib.IMAP4.error, UnicodeError):
        raise SourceRefused from None


def _select(connection: _Connection, name: str, *, writable: bool) -> tuple[int, int]:
    with named_errors():
        status, answer = connection.select(_quoted(encode_name(name)), readonly=not writable)
        if status != "OK":
            raise _refused(f"The mailbox {name} cannot be opened", answer)
        numbers = [connection.response(code)[1] for code in ("UIDVALIDITY", "UIDNEXT")]
    validity, next_uid = (int(one[-1]) if one and one[-1] and one[-1].isdigit() else None for one in numbers)
    if validity is None or next_uid is None:
        raise BadSource("This mail server does not assign unique numbers to emails (UIDVALIDITY and UIDNEXT).")
    return validity, next_uid


def _capabilities(connection: _Connection) -> Sequence[str]:
    """Return the capabilities that the server reports after sign-in. Before sign-in, servers often report fewer."""
    status, answer = connection.capability()
    return str(answer[-1], "ascii", "replace").upper().split() if status == "OK" and answer[-1] else ()


def _lost(error: Exception) -> NetworkFailed:
    return NetworkFailed(f"The connection to the mail server failed ({type(error).__name__}).")


def _refused(what: str, answer: Sequence[object]) -> OctavoError:
    """Return the error for a response other than OK. If the refusal is temporary, the returned error can be retried."""
    text = _text(answer)
    return NetworkFailed(f"{what}: {text}") if _FOR_NOW.match(text) else BadSource(f"{what}: {text}")


def _text(answer: Sequence[object]) -> str:
    first = answer[-1] if answer else b""
    return first.decode("utf-8", "replace")[:200] if isinstance(first, bytes) else ""


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def encode_name(name: str) -> str:
    """Encode the name of a mailbox in IMAP's modified UTF-7 (RFC 3501, section 5.1.3)."""

    def encode(match: re.Match[str]) -> str:
        packed = base64.b64encode(match[0].encode("utf-16-be"), b"+,").rstrip(b"=").decode()
        return f"&{packed}-"

    return re.sub(r"[^\x20-\x7e]+", encode, name.replace("&", "&-"))


def _uid_set(uids: Sequence[int]) -> str:
    return ",".join(map(str, uids))


def _messages(
    answer: Sequence[bytes | tuple[bytes, bytes]],
) -> Iterator[list[bytes | tuple[bytes, bytes]]]:
    """Group the parts of a FETCH response by message. The last part of a message is not a tuple."""
    items: list[bytes | tuple[bytes, bytes]] = []
    for one in answer:
        items.append(one)
        if isinstance(one, bytes):
            head = items[0] if isinstance(items[0], bytes) else items[0][0]
            if _BEGINS.match(head):
                yield items
            items = []


def _summary(items: Sequence[bytes | tuple[bytes, bytes]]) -> MailSummary | None:
    frame = b" ".join(one if isinstance(one, bytes) else one[0] for one in items)
    uid, size = _UID.search(frame), _SIZE.search(frame)
    if not uid or not size:
        return None
    heads = [one[1] for one in items if isinstance(one, tuple) and b"HEADER" in one[0].upper()]
    sender, subject = read_headers(heads[0] if heads else b"")
    return MailSummary(int(uid[1]), int(size[1]), sender, subject, bool(_ATTACHED.search(frame)))


def read_headers(head: bytes) -> tuple[str, str]:
    """Return the sender and the subject from the beginning of an email."""
    parsed = BytesHeaderParser().parsebytes(head[: 64 << 10])
    return _decoded(parsed.get("From", "")), _decoded(parsed.get("Subject", ""))


def _decoded(value: object) -> str:
    text = str(value)[:MOST_HEADER_CHARACTERS]
    try:
        parts = decode_header(text)
        joined = "".join(one if isinstance(one, str) else one.decode(code or "ascii", "replace") for one, code in parts)
    except (ValueError, LookupError):
        joined = text
    return " ".join(joined.split())
