"""The text of a file in the forms of docling-serve and Open WebUI."""

from __future__ import annotations

from octavo.extract.extracted import Extracted, Figure, Page, Quality, SourceType
from octavo.web.rooms.extraction.protocols import Options, as_entries, describe, describe_lacks, without_pictures

MARKDOWN = "One ![A gull](figures/1.png) two.\n\n![](figures/2.png)\n"
PICTURES = (
    Figure(1, "photo", MARKDOWN.index("![A"), alternative="A gull"),
    Figure(2, "photo", MARKDOWN.index("![]")),
)


def read(markdown: str, *pages: Page, quality: Quality = Quality.FULL) -> Extracted:
    return Extracted(SourceType.PDF, markdown, 2, quality, pages, figures=PICTURES if markdown is MARKDOWN else ())


def test_pictures_become_their_description_or_a_comment() -> None:
    assert without_pictures(read(MARKDOWN)) == "One A gull two.\n\n<!-- image -->\n"
    # Text that only looks like a picture is left alone.
    assert without_pictures(read("![x](figures/9.png)")) == "![x](figures/9.png)"
    # A picture on the page after is left alone, too.
    end = MARKDOWN.index("![]")
    assert without_pictures(read(MARKDOWN), 0, end) == "One A gull two.\n\n"
    assert without_pictures(read(MARKDOWN), end) == "<!-- image -->\n"


def test_missing_text_is_partial_success() -> None:
    pages = (Page(1, "1", 0, 4), Page(2, "2", 4, 4, unsure="The letters are too small."))
    partial = read("One\n", *pages, quality=Quality.PARTIAL)
    assert describe_lacks(partial) == ["1 of 2 pages have no text.", "Page 2: The letters are too small."]
    answer = describe(partial, "a.pdf", Options(), 0.0)
    assert (answer["status"], answer["errors"][0]) == (
        "partial_success",
        {
            "component_type": "document_backend",
            "module_name": "octavo",
            "error_message": "1 of 2 pages have no text.",
        },
    )
    assert describe_lacks(read("", quality=Quality.EMPTY)) == ["The file contains no text."]
    assert describe(read("One\n", *pages), "a.pdf", Options(), 0.0)["status"] == "success"


def test_pages_without_text_are_left_out_for_open_webui() -> None:
    entries = as_entries(read("One\n", Page(1, "i", 0, 4), Page(2, "ii", 4, 4)), "a.pdf")
    assert [(one["page_content"], one["metadata"]["page_label"]) for one in entries] == [("One", "i")]
    assert as_entries(read(""), "a.pdf") == []
