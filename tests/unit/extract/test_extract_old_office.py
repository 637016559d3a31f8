"""Word and PowerPoint files from before 2007 are read with their structure, without another program."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.core.errors import Empty, Encrypted, NotSupported, OctavoError, TooLarge
from octavo.extract.detect import Hints
from octavo.extract.extracted import SourceType
from octavo.extract.formats import doc, ppt, related_office
from octavo.extract.zips import open_container
from tests.support import old_office as old
from tests.support.damage import damaged
from tests.support.office import markdown, read

LISTS, LEVELS = old.lists((0, "\0."), (23, "\uf0b7"))


def word(*paragraphs: tuple[str, int, bytes], parts: dict[int, bytes] | None = None) -> bytes:
    """A document of paragraphs: text with its mark, style and properties."""
    return old.WordDocument(
        [(text, b"") for text, _, _ in paragraphs],
        [(style, form) for _, style, form in paragraphs],
        parts=parts or {},
        levels=LEVELS if parts is LISTS else b"",
    ).write()


def test_headings_are_known_by_number_and_not_by_their_localised_name(tmp_path: Path) -> None:
    data = word(("Bericht\r", 1, b""), ("Text “hier”.\r", 0, b""), ("Teil\r", 2, b""))
    assert markdown(doc.PROCESSOR, tmp_path, data) == "# Bericht\n\nText “hier”.\n\n## Teil"


def test_lists_are_numbered_as_word_numbers_them(tmp_path: Path) -> None:
    data = word(
        ("One\r", 0, old.item(1)), ("Two\r", 0, old.item(1)), ("Dot\r", 0, old.item(2)), ("End\r", 0, b""), parts=LISTS
    )
    assert markdown(doc.PROCESSOR, tmp_path, data) == "1. One\n2. Two\n\n- Dot\n\nEnd"


def test_merged_cells_of_tables_are_repeated(tmp_path: Path) -> None:
    cells = [(f"{text}\x07", 0, old.IN_TABLE) for text in ("Name", "Both")]
    wide = [*cells, ("\x07", 0, old.row_end([0, 1000, 3000]))]
    narrow = [(f"{text}\x07", 0, old.IN_TABLE) for text in ("", "1", "2")]
    data = word(*wide, *narrow, ("\x07", 0, old.row_end([0, 1000, 2000, 3000], [0])), ("After\r", 0, b""))
    assert markdown(doc.PROCESSOR, tmp_path, data) == (
        "| Name | Both | Both |\n| --- | --- | --- |\n| Name | 1 | 2 |\n\nAfter"
    )


def test_formatting_links_and_hidden_text(tmp_path: Path) -> None:
    runs = [
        ("Plain ", b""),
        ("bold", old.BOLD),
        (" secret", old.HIDDEN),
        (' \x13 HYPERLINK "https://example.org/" \x14there\x15 a\x0bb\r', b""),
    ]
    data = old.WordDocument(runs, [(0, b"")]).write()
    assert markdown(doc.PROCESSOR, tmp_path, data) == "Plain **bold** [there](https://example.org/) a  \nb"


def test_footnotes_and_comments_are_at_their_marks(tmp_path: Path) -> None:
    runs = [("Sea", b""), ("\x02", old.SPECIAL), (" and", b""), ("\x05", old.SPECIAL), (" land.\r", b"")]
    body = sum(len(text) for text, _ in runs)
    runs += [("Salty.\r", b""), ("Really?\r", b"")]
    parts = {
        2: struct.pack("<IIH", 3, body, 1),
        3: struct.pack("<III", 0, 6, 7),
        4: struct.pack("<II", 8, body) + bytes(20) + struct.pack("<H8x", 0),
        5: struct.pack("<III", 0, 7, 8),
        36: struct.pack("<H", 3) + "Ann".encode("utf-16-le"),
    }
    data = old.WordDocument(runs, [(0, b"")] * 3, parts=parts, lengths=(body, 7, 0, 0, 8)).write()
    assert markdown(doc.PROCESSOR, tmp_path, data) == ("Sea[^1] and land.\n\n> Comment by Ann: Really?\n\n[^1]: Salty.")


def test_encrypted_older_and_empty_documents_are_told_apart(tmp_path: Path) -> None:
    text, forms = [("Text\r", b"")], [(0, b"")]
    cases = {
        Encrypted: old.WordDocument(text, forms, flags=0x0300),
        NotSupported: old.WordDocument(text, forms, version=0x68),
        Empty: old.WordDocument([("\r", b"")], forms),
    }
    for error, document in cases.items():
        with pytest.raises(error):
            read(doc.PROCESSOR, tmp_path, document.write())


def test_slides_are_pages_with_title_lists_and_tables(tmp_path: Path) -> None:
    body = "First\rSecond"
    style = struct.pack("<IHI", 6, 0, 0) + struct.pack("<IHI", 7, 1, 0) + struct.pack("<II", 13, 0)
    table = old.grid(old.cell("Wide", (0, 0, 20, 10)), old.cell("a", (0, 10, 10, 20)), old.cell("b", (10, 10, 20, 20)))
    data = old.presentation([[old.shape(1, body, (0, 20, 9, 30), style), old.shape(0, "Title")], [table]])
    found = read(ppt.PROCESSOR, tmp_path, data)
    assert found.markdown == "# Title\n\n- First\n  - Second\n\n| Wide | Wide |\n| --- | --- |\n| a | b |"
    assert [found.markdown[page.start : page.end][:7] for page in found.pages] == ["# Title", "| Wide "]


def test_an_encrypted_presentation_asks_for_another_file(tmp_path: Path) -> None:
    with pytest.raises(Encrypted):
        read(ppt.PROCESSOR, tmp_path, old.presentation([[old.shape(0, "Title")]], token=0xF3D1C4DF))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**9), number=st.integers(0, 1))
def test_damage_anywhere_ends_in_a_text_or_a_named_error(seed: int, number: int, tmp_path: Path) -> None:
    processor = (doc.PROCESSOR, ppt.PROCESSOR)[number]
    whole = (
        word(("Head\r", 1, b""), ("Item\r", 0, old.item(1)), ("a\x07", 0, old.IN_TABLE),
             ("\x07", 0, old.row_end([0, 100])), ("End\r", 0, b""), parts=LISTS),
        old.presentation([[old.shape(1, "One\rTwo"), old.grid(old.cell("a", (0, 0, 5, 5)))]]),
    )[number]  # fmt: skip
    with suppress(OctavoError):
        read(processor, tmp_path, damaged(whole, str(seed)))


def test_old_workbooks_with_a_password_or_cells_far_apart_are_refused_by_name(tmp_path: Path) -> None:
    begin = struct.pack("<HHHH", 0x0809, 4, 0x0600, 5)
    locked = begin + struct.pack("<HHH", 0x002F, 2, 0)
    far = begin + struct.pack("<HHHHHd", 0x0203, 14, 65535, 65535, 0, 1.0)
    for error, stream in ((Encrypted, locked), (TooLarge, far)):
        path = tmp_path / "book.xls"
        path.write_bytes(old.container({"Workbook": stream}))
        with pytest.raises(error):
            related_office.PROCESSOR.extract(path, Hints(SourceType.XLS))


def test_a_summary_with_impossible_counts_is_ignored(tmp_path: Path) -> None:
    section = struct.pack("<IIIIIII", 100, 0xFFFFFFF0, 2, 24, 0, 0, 30) + struct.pack("<I", 4) + b"Sea\0"
    summary = bytes(44) + struct.pack("<I", 48) + section
    path = tmp_path / "x"
    path.write_bytes(old.container({"\x05SummaryInformation": summary}))
    with open_container(path) as container:
        assert container.metadata().title == "Sea"
