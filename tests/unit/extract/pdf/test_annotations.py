"""Form values, typed text, comments and highlights of a page, and their place in the text."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from octavo.extract.extracted import BlockKind, Box, RegionKind
from octavo.extract.pdf.annotations import (
    Annotation,
    field_regions,
    merge_annotations,
    read_annotations,
    with_ticks,
)
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.document import open_document
from octavo.extract.pdf.page_batches import PageBlock
from octavo.extract.pdf.page_text import read_batch
from octavo.extract.pdf.regions import lay_out

WIDGET = "/Type /Annot /Subtype /Widget /F 4 /P 4 0 R"


def write_pdf(path: Path, text: str, annotations: list[str], page: str = "", form: bool = True) -> Path:
    """Write one page with annotations; the fields of its form are all of them."""
    stream = f"BT /F1 10 Tf {text} ET".encode()
    numbers = " ".join(f"{6 + index} 0 R" for index in range(len(annotations)))
    catalog = f"/AcroForm << /Fields [{numbers}] >>" if form else ""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>".encode(),
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 300] /Resources << /Font << /F1 3 0 R >> >> "
        f"/Contents 5 0 R /Annots [{numbers}] {page} >>".encode(),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        *(f"<< {one} >>".encode() for one in annotations),
    ]
    body, places = b"%PDF-1.7\n", list[int]()
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer << /Size {len(objects) + 1} /Root 1 0 R >>"
    path.write_bytes(body + f"{end}\nstartxref\n{len(body)}\n%%EOF".encode())
    return path


def read(path: Path) -> list[Annotation]:
    with open_document(path) as document, document.page(1) as page:
        return read_annotations(page.handle, document.form(), page.placed())


def text_of(path: Path) -> str:
    return "\n\n".join(block.text for block in read_batch(path, 1, 1).pages[0].blocks)


def test_values_of_fields_are_read_on_the_line_of_their_label(tmp_path: Path) -> None:
    path = write_pdf(
        tmp_path / "form.pdf",
        "30 250 Td (Applicant:) Tj 0 -60 Td (Harbour:) Tj",
        [
            f"{WIDGET} /FT /Tx /T (applicant) /V (Wilhelmina Starling) /Rect [120 244 350 262]",
            f"{WIDGET} /FT /Ch /Ff 131072 /T (quay) /Opt [[(n) (North)] [(s) (South)]] /V (s) /Rect [120 184 350 202]",
        ],
    )
    assert text_of(path) == "Applicant: Wilhelmina Starling\n\nHarbour: South"


def test_ticked_and_empty_boxes_stand_before_their_labels(tmp_path: Path) -> None:
    state = "/AP << /N << /Yes 3 0 R /Off 3 0 R >> >>"
    path = write_pdf(
        tmp_path / "boxes.pdf",
        "60 250 Td (Dogs on board) Tj 0 -60 Td (Cats on board) Tj",
        [
            f"{WIDGET} /FT /Btn /T (dogs) /V /Yes /AS /Yes {state} /Rect [30 246 44 260]",
            f"{WIDGET} /FT /Btn /T (cats) /V /Off /AS /Off {state} /Rect [30 186 44 200]",
        ],
    )
    assert text_of(path) == "☑ Dogs on board\n\n☐ Cats on board"


def test_typed_text_is_text_and_a_comment_is_a_quote(tmp_path: Path) -> None:
    path = write_pdf(
        tmp_path / "notes.pdf",
        "30 250 Td (Minutes of the board.) Tj",
        [
            "/Type /Annot /Subtype /FreeText /F 4 /Contents (Telephone the pilot first) /Rect [30 180 200 200]",
            "/Type /Annot /Subtype /Text /F 4 /T (Ada) /Contents (Is this *final*?) /Rect [30 246 50 262]",
            "/Type /Annot /Subtype /Text /F 2 /Contents (hidden) /Rect [30 100 50 120]",
        ],
        form=False,
    )
    assert (
        text_of(path) == "Minutes of the board.\n\n> **Note** (Ada): Is this \\*final\\*?\n\nTelephone the pilot first"
    )


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a_highlight_has_the_marked_text_and_its_comment(tmp_path: Path, rotation: int) -> None:
    quads = "/QuadPoints [30 259 66 259 30 247 66 247]"
    path = write_pdf(
        tmp_path / "marked.pdf",
        "30 250 Td (Minutes of the board.) Tj 0 -14 Td (Second line.) Tj",
        [f"/Type /Annot /Subtype /Highlight /F 4 /T (Ada) /Contents (Check) /Rect [30 247 70 259] {quads}"],
        page=f"/Rotate {rotation}",
        form=False,
    )
    (one,) = read(path)
    assert (one.kind, one.text, one.value, one.author) == ("highlight", "Minutes", "Check", "Ada")
    assert "> **Highlighted** (Ada): Minutes  \n> Check" in text_of(path)


def test_a_password_in_a_form_is_not_read(tmp_path: Path) -> None:
    path = write_pdf(
        tmp_path / "secret.pdf",
        "30 250 Td (Password:) Tj",
        [f"{WIDGET} /FT /Tx /Ff 8192 /T (password) /V (hunter2) /Rect [120 244 350 262]"],
    )
    assert read(path) == []


def test_letters_that_are_highlighted_one_by_one_are_a_word(tmp_path: Path) -> None:
    edges = [30.0, 36.67, 41.12, 47.35, 49.57]  # of the letters of "Lime" in Helvetica, and a little more
    quads = " ".join(f"{left} 260 {left} 248 {right} 260 {right} 248" for left, right in pairwise(edges))
    mark = f"/Type /Annot /Subtype /Highlight /F 4 /Rect [30 248 60 260] /QuadPoints [{quads}]"
    (one,) = read(write_pdf(tmp_path / "mark.pdf", "30 250 Td (Limestone) Tj", [mark], form=False))
    assert " " not in one.text
    assert one.text.startswith("Li")


def test_a_value_without_a_label_has_the_name_of_its_field() -> None:
    one = Annotation("field", Box(10, 10, 100, 30), "person.name", "Ada")
    (block,) = merge_annotations([], [one])
    assert (block.kind, block.text) == (BlockKind.PARAGRAPH, "name: Ada")


def test_a_value_that_the_text_contains_is_not_added_again() -> None:
    one = Annotation("field", Box(100, 10, 200, 30), "name", "Ada")
    block = PageBlock(BlockKind.PARAGRAPH, "Name: Ada", Box(10, 12, 130, 24))
    assert merge_annotations([block], [one]) == (block,)


def test_check_boxes_are_read_before_the_labels_at_their_right() -> None:
    words = (Word(30, 10, 60, 20, "Java"),), (Word(130, 10, 160, 20, "Rust"),)
    runs = tuple(TextRun(Box(*one[:4]), one.text, 10.0, "", False, False, 0.0, None, (one,)) for (one,) in words)
    ticks = [
        Annotation("tick", Box(12, 9, 24, 21), "a", "☑"),
        Annotation("tick", Box(112, 9, 124, 21), "b", "☐"),
        Annotation("tick", Box(300, 49, 312, 61), "without a label", "☐"),
    ]
    page = with_ticks(PageContent(1, 400, 300, runs, (), ()), ticks)
    (block,) = lay_out(page).blocks
    assert block.text == "☑ Java ☐ Rust"
    assert [one.text for one in merge_annotations([block], ticks)] == [block.text, "☐ without a label"]


def test_fields_are_regions() -> None:
    one = Annotation("tick", Box(10, 10, 20, 20), "dogs", "☑")
    (region,) = field_regions(3, [one, Annotation("note", Box(0, 0, 1, 1), value="x")])
    assert (region.page, region.kind, region.text) == (3, RegionKind.FIELD, "dogs: ☑")
