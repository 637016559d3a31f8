"""A document gets a title, an author and a type that can be found in it, or none."""

from __future__ import annotations

import pytest

from octavo.language import describe
from octavo.language.description import find_author, find_title
from octavo.language.document_types import find_type
from octavo.language.insights import ChunkText, DocumentSource, DocumentType


@pytest.mark.parametrize(
    ("source", "title"),
    [
        (DocumentSource([], title="A Course in Machine Learning"), "A Course in Machine Learning"),
        (DocumentSource([], title="Microsoft Word - Annual report"), "Annual report"),
        (DocumentSource([], title="[inria-00555588, v1] A study"), "A study"),
        (DocumentSource([ChunkText("# Real title\n\nText.")], title="report_final2.docx"), "Real title"),
        (DocumentSource([ChunkText("# Real title\n\nText.")], title="Untitled document"), "Real title"),
        (DocumentSource([ChunkText("# **Bold** title\n\nText.")]), "Bold title"),
        (DocumentSource([ChunkText("Text.", ("Above", "Below"))]), "Above"),
        (DocumentSource([ChunkText("# Contents\n\n# First chapter\n\nText.")]), "First chapter"),
        (DocumentSource([ChunkText("A short first line\n\nText that follows.")]), "A short first line"),
        (DocumentSource([ChunkText("Text that goes on and on. " * 20)]), None),
        (DocumentSource([ChunkText("4711")], title="4711", filename="4711.pdf"), None),
        (DocumentSource([]), None),
    ],
)
def test_titles(source: DocumentSource, title: str | None) -> None:
    assert find_title(source) == title


@pytest.mark.parametrize(
    ("source", "author"),
    [
        (DocumentSource([], author="Hal Daumé III"), "Hal Daumé III"),
        (
            DocumentSource([ChunkText("# Title\n\nBy Ada Lovelace and Charles Babbage\n\nText.")]),
            "Ada Lovelace and Charles Babbage",
        ),
        (DocumentSource([ChunkText("Author: Ada Lovelace\n\nText.")]), "Ada Lovelace"),
        (DocumentSource([ChunkText("by the way it rained\n")]), None),
        (DocumentSource([ChunkText("Text.")], author="42"), None),
    ],
)
def test_authors(source: DocumentSource, author: str | None) -> None:
    assert find_author(source) == author


INVOICE = "Invoice number 4711\nBill to: ACME\nUnit price 3.00\nVAT 19 %\nAmount due: 3.57"
LETTER = "Dear Ms Miller,\nplease find enclosed the papers.\nYours sincerely\nA. Smith"
PAPER = "Abstract\nIn this paper we present a method [1].\nUniversity of X\n1 Methods\nText.\nReferences\n[1] A."
CONTRACT = (
    "This Agreement is made between the parties.\nWhereas ... hereinafter ... governing law ... in witness whereof"
)
MINUTES = "Minutes of the board meeting\nAttendees: A, B\nAction items\nNext meeting: Monday"


@pytest.mark.parametrize(
    ("kind", "head", "words", "document_type"),
    [
        ("pdf", INVOICE, 20, DocumentType.INVOICE),
        ("image", INVOICE, 20, DocumentType.INVOICE),
        ("docx", LETTER, 20, DocumentType.LETTER),
        ("pdf", PAPER, 4000, DocumentType.PAPER),
        ("pdf", CONTRACT, 4000, DocumentType.CONTRACT),
        ("text", MINUTES, 300, DocumentType.MINUTES),
        ("eml", INVOICE, 20, DocumentType.EMAIL),
        ("xlsx", "", 0, DocumentType.SPREADSHEET),
        ("youtube", "", 900, DocumentType.TRANSCRIPT),
        ("epub", PAPER, 900, DocumentType.BOOK),
        ("pdf", "It rained.", 90_000, DocumentType.BOOK),
        ("image", "", 0, DocumentType.IMAGE),
        ("web", "It rained.", 300, DocumentType.ARTICLE),
        ("pdf", "It rained.", 300, DocumentType.OTHER),
    ],
)
def test_types(kind: str, head: str, words: int, document_type: DocumentType) -> None:
    assert find_type(kind=kind, title=None, head=head, words=words) is document_type


def test_names_with_underscores_stay_whole_in_title_and_summary() -> None:
    title = "How my_file_name is written"
    text = (
        f"# {title}\n\nThe program writes the totals of the year to my_file_name.pdf every night, "
        "and _nobody_ has to start it by hand.\n\nA second program reads my_file_name.pdf and sends it to the council."
    )
    insight = describe(DocumentSource([ChunkText(text, (title,))], filename="report.md")).document
    assert insight.title == title
    assert "my_file_name.pdf" in insight.summary
    assert "_nobody_" not in insight.summary
