"""A document gets the kind, title, author and date that are printed in it, or none."""

from __future__ import annotations

import pytest

from octavo.ai.tasks.describe_documents import classify_offline
from octavo.facts.sheet import FactSource, FileMetadata, Heading, describe_chunks, find_facts
from octavo.language.insights import ChunkText, DocumentSource, DocumentType


def facts(text: str, kind: str = "text", name: str = "", **metadata: str) -> dict[str, str]:
    headings = tuple(Heading(row.lstrip("# "), row.count("#")) for row in text.splitlines() if row.startswith("#"))
    source = FactSource((), text, "", headings, name, FileMetadata(**metadata), kind, word_count=len(text.split()))  # pyright: ignore[reportArgumentType]
    return {one.name: one.value for one in reversed(find_facts(source))}


TEXT = "Text that goes on and on, and never says what it is about. " * 20


@pytest.mark.parametrize(
    ("text", "metadata", "title"),
    [
        ("# Real title\n\nText.", {}, "Real title"),
        ("# Real title\n\nText.", {"title": "report_final2.docx"}, "Real title"),
        ("# Real title\n\nText.", {"title": "python-docx"}, "Real title"),
        ("# **Bold** title\n\nText.", {}, "Bold title"),
        ("# Contents\n\n# First things first\n\nText.", {}, "First things first"),
        (f"A short first line\n\n{TEXT}", {}, "A short first line"),
        (TEXT, {"title": "Microsoft Word - Annual report"}, "Annual report"),
        (TEXT, {"title": "[inria-00555588, v1] A study of clay"}, "A study of clay"),
        (TEXT, {"title": "Untitled document"}, None),
        (TEXT, {"title": "openpyxl"}, None),
        (f"Page 3 of 3\n\n{TEXT}", {}, None),
        (f"Dear Ms Miller,\n\n{TEXT}", {}, None),
        (f"Lower Farm, Lindbeck 14 October 2024\n\n{TEXT}", {}, None),
        (f"Weena 664, 3012 Rotterdam\n\n{TEXT}", {}, None),
        (f"Bill to Address:\n\n{TEXT}", {}, None),
        (f"id | created | priority\n\n{TEXT}", {}, None),
    ],
)
def test_titles(text: str, metadata: dict[str, str], title: str | None) -> None:
    assert facts(text, "docx", **metadata).get("title") == title


def test_the_name_of_a_file_is_a_title_only_if_there_is_no_other() -> None:
    assert facts(TEXT, name="Interview_with-a_ranger.txt")["title"] == "Interview with a ranger"
    assert "title" not in facts(TEXT, name="Scan_2026-03-04.txt")
    assert facts(f"# Rain\n\n{TEXT}", "markdown", "notes of may.md")["title"] == "Rain"


@pytest.mark.parametrize(
    ("text", "metadata", "author"),
    [
        (TEXT, {"author": "Hal Daum\u00e9 III"}, "Hal Daum\u00e9 III"),
        (f"# Bogs\n\nBy Ada Lovelace and Charles Babbage\n\n{TEXT}", {}, "Ada Lovelace, Charles Babbage"),
        (f"# Bogs\n\nAda Lovelace\n\n{TEXT}", {"author": "python-docx"}, "Ada Lovelace"),
        (f"# Bogs\n\nby the way it rained\n\n{TEXT}", {}, None),
        *(
            (TEXT, {"author": name}, None)
            for name in ("openpyxl", "PC3", "setpagedevice.com", "Un-named", "42", "brianc")
        ),
    ],
)
def test_authors(text: str, metadata: dict[str, str], author: str | None) -> None:
    assert facts(text, "docx", **metadata).get("author") == author


@pytest.mark.parametrize(
    ("text", "date"),
    [
        (f"# Paging\n\nRevision 1.1\n\nMay 2017\n\n{TEXT}", "2017-05"),
        (f"# Notes\n\nLast updated: 2026-06-18\n\n{TEXT}", "2026-06-18"),
        (f"Lindbeck, 14 October 2024\n\nDear Sir,\n\n{TEXT}", "2024-10-14"),
        (f"# Notes\n\nCopyright \u00a9 2015 Ada Lovelace\n\n{TEXT}", "2015"),
        (f"# Notes\n\nIt rained on 3 March 2019 and again on 5 May 2020. {TEXT}", None),
        (f"# Notes\n\nDue date: 3 March 2019\n\n{TEXT}", None),
    ],
)
def test_the_printed_date_is_kept_with_its_precision(text: str, date: str | None) -> None:
    assert facts(text).get("date") == date


def test_the_date_of_the_file_is_the_last_resort_and_labelled() -> None:
    source = FactSource((), TEXT, metadata=FileMetadata(date="2022-09-26"), source_type="docx", word_count=200)
    (found,) = (one for one in find_facts(source) if one.name == "date")
    assert (found.value, found.source) == ("2022-09-26", "metadata")
    assert found.confidence < 0.85


def test_a_description_without_a_model_has_the_same_facts() -> None:
    text = f"# Bogs\n\nAda Lovelace\n\nMay 2017\n\n{TEXT}"
    insight = classify_offline(DocumentSource([ChunkText(text, ("Bogs",))], kind="markdown"))
    assert (insight.title, insight.author, insight.date) == ("Bogs", "Ada Lovelace", "2017-05")


def test_the_type_that_was_found_from_the_pages_is_kept() -> None:
    statement = ChunkText("Account statement. Opening balance 10.00. Closing balance 12.00. Account number 123456.")
    assert describe_chunks(DocumentSource([statement], kind="pdf")).type is not DocumentType.INVOICE
    found = DocumentSource([statement], kind="pdf", type=DocumentType.INVOICE)
    assert describe_chunks(found).type is DocumentType.INVOICE
    assert classify_offline(found).tags == ["invoice"]
