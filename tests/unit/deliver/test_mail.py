"""A mail is one mail to one person, whatever an address or a title holds."""

from __future__ import annotations

from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import SMTP
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.deliver.channels import (
    BadAddress,
    Delivery,
    EventRecord,
    MailChannel,
    MailNotSet,
    MailServer,
    check_mail_address,
    make_mail,
)
from octavo.deliver.messages import Subject, describe

DOCUMENT = UUID("00000000-0000-7000-8000-000000000001")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HEADERS = {
    *("from", "to", "subject", "date", "message-id", "auto-submitted", "mime-version"),
    *("content-type", "content-transfer-encoding"),
}


def about(title: str, address: str = "ada@example.org") -> Delivery:
    told = EventRecord(7, NOW, "complete", DOCUMENT, DOCUMENT, "complete", {})
    about = Subject("document.completed", title=title, document_id=DOCUMENT)
    message = describe(about, public_url="https://docs.example.org")
    return Delivery("evt_7", "document.completed", told, message, DOCUMENT, address, None, NOW)


def test_a_mail_says_what_happened_and_where_to_look() -> None:
    mail = make_mail(about("Größe & Gewicht"), "octavo@example.org")
    read = message_from_bytes(mail.as_bytes(), policy=SMTP)
    assert read["Subject"] == "Octavo: “Größe & Gewicht” is ready"
    assert read["From"] == "Octavo <octavo@example.org>"
    assert read["To"] == "ada@example.org"
    assert read["Message-ID"] == f"<evt_7.{DOCUMENT}@example.org>"
    assert read["Date"].datetime == NOW
    text = read.get_content()
    assert text.replace("\r\n", "\n") == (
        f"“Größe & Gewicht” is ready.\n\nhttps://docs.example.org/documents/{DOCUMENT}\n"
    )


@settings(deadline=None)  # machines that run tests are busy
@given(st.text(max_size=300))
def test_no_title_adds_a_header_a_recipient_or_a_line(title: str) -> None:
    mail = make_mail(about(title), "octavo@localhost")
    read = message_from_bytes(mail.as_bytes(), policy=SMTP)
    assert {name.lower() for name in read.keys()} == HEADERS  # noqa: SIM118 - a mail is no mapping
    assert len(read.items()) == len(HEADERS)
    assert [str(one) for one in read["To"].addresses] == ["ada@example.org"]
    assert not read.is_multipart()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ada",
        "@example.org",
        "ada@",
        "ada@example.org, eve@example.org",
        "ada@example.org\nBcc: eve@example.org",
        "ada@example.org\r\n",
        "Ada <ada@example.org>",
        '"ada\n"@example.org',
        "ada@exa mple.org",
        "ada@-example.org",
        "a@" + "b" * 254,
        "ada@example.org\x00",
        "ädä@example.org",
        "-oQ/tmp@example.org\n",
    ],
)
def test_several_addresses_in_one_field_are_refused(address: str) -> None:
    with pytest.raises(BadAddress):
        check_mail_address(address)
    with pytest.raises(BadAddress):
        make_mail(about("T", address), "octavo@localhost")


@pytest.mark.parametrize("address", ["ada@example.org", "a.b+c@x-y.example.org", "root@localhost"])
def test_ordinary_addresses_are_taken(address: str) -> None:
    assert check_mail_address(address) == address


def test_without_a_mail_server_no_address_is_taken() -> None:
    with pytest.raises(MailNotSet):
        MailChannel(None, "octavo@localhost", 1).check_address("ada@example.org")


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example.org", ("mail.example.org", 25, "smtp", None, None)),
        ("smtps://mail.example.org", ("mail.example.org", 465, "smtps", None, None)),
        ("smtp+starttls://mail.example.org", ("mail.example.org", 587, "smtp+starttls", None, None)),
        ("smtp://ada:p%40ss%3A@[::1]:2525", ("::1", 2525, "smtp", "ada", "p@ss:")),
    ],
)
def test_a_mail_server_is_written_as_an_address(url: str, server: tuple[object, ...]) -> None:
    read = MailServer.from_url(url)
    assert (read.host, read.port, read.scheme, read.user, read.password) == server
    assert "p@ss" not in repr(read)
