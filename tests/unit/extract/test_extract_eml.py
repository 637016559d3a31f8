"""Mails: who, to whom, when, what, and which files came along."""

from __future__ import annotations

from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.errors import OctavoError
from octavo.extract.extracted import Quality
from octavo.extract.formats.eml import PROCESSOR
from tests.support.office import markdown, read

patient = settings(deadline=None, max_examples=100)
HEAD = "**From:** Ann Ä \\<ann@example.org>  \n**To:** bob@example.org  \n**Date:** Mon, 06 May 2024 07:08:09 +0000"


def mail(subject: str = "Grüße", text: str | None = "Hello.\n") -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Ann Ä <ann@example.org>"
    message["To"] = "bob@example.org"
    message["Date"] = "Mon, 06 May 2024 07:08:09 +0000"
    message["Subject"] = subject
    message["Message-ID"] = "<1@example.org>"
    if text is not None:
        message.set_content(text)
    return message


def test_the_head_and_the_text(tmp_path: Path) -> None:
    extracted = read(PROCESSOR, tmp_path, mail().as_bytes())
    assert extracted.markdown == f"# Grüße\n\n{HEAD}\n\nHello."
    about = extracted.metadata
    assert (about.title, about.author, about.date) == ("Grüße", "Ann Ä", "2024-05-06")
    assert about.extra["to"] == "bob@example.org"


def test_plain_text_is_preferred_unless_it_only_points_to_the_other(tmp_path: Path) -> None:
    message = mail(text="The plain text of it.\n")
    message.add_alternative("<p>The <b>other</b> text.</p>", subtype="html")
    assert markdown(PROCESSOR, tmp_path, message.as_bytes()).endswith("\n\nThe plain text of it.")
    stub = mail(text="See the HTML part.\n")
    stub.add_alternative(f"<h2>News</h2><p>{'Words and <i>more</i> words. ' * 20}</p>", subtype="html")
    assert "## News\n\nWords and *more* words." in markdown(PROCESSOR, tmp_path, stub.as_bytes())


def test_html_alone_is_read(tmp_path: Path) -> None:
    message = mail(text=None)
    message.set_content(
        "<p>One</p><img src='https://spy.example/x.gif'><p><a href='https://x.org'>Two</a></p>", subtype="html"
    )
    assert markdown(PROCESSOR, tmp_path, message.as_bytes()).endswith("\n\nOne\n\n[Two](https://x.org)")


def test_quotes_are_quotes(tmp_path: Path) -> None:
    text = "I agree.\n\n> You wrote\n> this.\n>> And I that.\n\nBye\n"
    assert markdown(PROCESSOR, tmp_path, mail(text=text).as_bytes()).endswith(
        "\n\nI agree.\n\n> You wrote  \n> this.\n>\n> > And I that.\n\nBye"
    )


def test_attachments_are_listed_and_not_opened(tmp_path: Path) -> None:
    message = mail()
    message.add_attachment(bytes(5000), maintype="application", subtype="pdf", filename="Übersicht 1.pdf")
    message.add_attachment("attached words", filename="notes.txt")
    text = markdown(PROCESSOR, tmp_path, message.as_bytes())
    assert text.endswith("Hello.\n\n## Attachments\n\n- Übersicht 1.pdf (5 KiB)\n- notes.txt (15 bytes)")


def test_a_mail_in_a_mail_is_read(tmp_path: Path) -> None:
    message = mail()
    message.add_attachment(mail("Inner", "Inside.\n"))
    assert markdown(PROCESSOR, tmp_path, message.as_bytes()).endswith(f"Hello.\n\n## Inner\n\n{HEAD}\n\nInside.")


def test_flowing_text_flows(tmp_path: Path) -> None:
    raw = b"From: a@b.c\nContent-Type: text/plain; format=flowed\n\nOne line \ngoes on \nhere.\nNew one.\n"
    assert markdown(PROCESSOR, tmp_path, raw).endswith("One line goes on here.  \nNew one.")


@pytest.mark.parametrize(
    "raw",
    [
        b"From: =?utf-8?q?K=C3=B6ln?= <a@b.c>\nSubject: =?iso-8859-1?q?K=F6ln?=\n\nK\xf6ln liegt am Rhein.\n",
        b"From: K\xc3\xb6ln <a@b.c>\nSubject: K\xc3\xb6ln\nContent-Type: text/plain; charset=no-such\n\nK\xc3\xb6ln\n",
        b"From: =?utf-8?b?S8O2bG4=?= <a@b.c>\nSubject: =?no-such?q?K=C3=B6ln?=\n\nK\xc3\xb6ln",
    ],
    ids=["latin", "raw", "unknown"],
)
def test_encodings(tmp_path: Path, raw: bytes) -> None:
    extracted = read(PROCESSOR, tmp_path, raw)
    assert extracted.markdown.count("Köln") >= 3
    assert extracted.metadata.author == "Köln"


def test_a_mail_without_a_subject_or_a_date_is_still_one(tmp_path: Path) -> None:
    extracted = read(PROCESSOR, tmp_path, b"From: a@b.c\nDate: yesterday\n\nText\n")
    assert extracted.markdown.startswith("# (no subject)")
    assert (extracted.metadata.title, extracted.metadata.date) == (None, None)


def test_mails_in_mails_in_mails_end(tmp_path: Path) -> None:
    message = mail("Innermost")
    for _ in range(60):
        outer = mail("Outer")
        outer.add_attachment(message)
        message = outer
    extracted = read(PROCESSOR, tmp_path, message.as_bytes())
    assert "Innermost" not in extracted.markdown
    assert extracted.markdown.endswith("*Omitted: parts of the mail (1). The file contains all of them.*")
    assert extracted.quality is Quality.PARTIAL


def test_parts_beyond_counting_are_told(tmp_path: Path) -> None:
    head = b"From: a@b.c\nContent-Type: multipart/mixed; boundary=x\n\n"
    extracted = read(PROCESSOR, tmp_path, head + b"--x\nContent-Type: text/plain\n\nhi\n" * 3000)
    assert "parts of the mail (1,001)" in extracted.markdown
    assert extracted.quality is Quality.PARTIAL


@patient
@given(st.binary(max_size=200), st.integers(0, 400))
def test_damage_is_read_or_named(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int) -> None:
    message = mail()
    message.add_attachment(b"x", maintype="a", subtype="b", filename="n.txt")
    data = message.as_bytes()
    with suppress(OctavoError):
        read(PROCESSOR, tmp_path_factory.mktemp("mail"), data[:place] + noise + data[place:])
