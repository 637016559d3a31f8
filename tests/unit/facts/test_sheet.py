"""One fact sheet for any document: what is printed counts more than what a program wrote into the file."""

from __future__ import annotations

from octavo.facts.sheet import FactSource, FileMetadata, Heading, find_facts
from tests.support.sheets import INVOICE, sheet

SOFTWARE = FileMetadata("python-docx", "python-docx", "2022-09-26", extra={"producer": "Microsoft Word"})


def values(source: FactSource) -> dict[str, str]:
    return {one.name: one.value for one in reversed(find_facts(source))}


def test_an_invoice_is_named_by_its_number_and_never_by_the_program_that_wrote_it() -> None:
    found = values(FactSource((sheet(INVOICE),), INVOICE, metadata=SOFTWARE, source_type="pdf"))
    assert found["kind"] == "invoice"
    assert found["number"] in found["title"]
    assert "author" not in found
    assert found["date"] != "2022-09-26"


def test_a_heading_counts_more_than_the_title_in_the_file() -> None:
    text = "# The settling of clay\n\nWe measured how fast clay settles in water of several kinds.\n"
    source = FactSource(
        (), text, headings=(Heading("The settling of clay", 1),), metadata=FileMetadata("draft 7b", "Ada Lovelace")
    )
    facts = {one.name: one for one in find_facts(source)}
    assert facts["title"].value == "The settling of clay"
    assert (facts["author"].value, facts["author"].source) == ("Ada Lovelace", "metadata")


def test_a_document_without_words_has_no_facts() -> None:
    assert find_facts(FactSource()) == ()
