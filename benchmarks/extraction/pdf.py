"""PDFs: letters, headings, form values, notes, and the places of chunks."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.extraction import truth
from benchmarks.extraction.counting import Counting
from benchmarks.extraction.formats import read_texts, with_truth
from benchmarks.extraction.judging import (
    bookmarks_of,
    edit_similarity,
    headings_in,
    headings_of,
    is_same,
    judge_headings,
    letters_of,
    plain,
    plain_words,
    tokens,
    without_bookmarks,
    words_in,
)
from benchmarks.extraction.rows import Row, files_in, mean_row, missing, report
from benchmarks.extraction.table_rows import without_repeated_headings
from octavo.core.errors import OctavoError
from octavo.extract.chunks.chunking import cut_document, read_chunks
from octavo.extract.extracted import Extracted, Quality, RegionKind, to_json
from octavo.extract.pdf.page_batches import batch_ranges
from octavo.extract.pdf.pdf_file import PdfInSandbox

BESIDE = (RegionKind.HEADER, RegionKind.FOOTER)
SETS = ("tables-icdar2013", "docling/pdf", "e-invoices", "pdf-headings")


async def read_without_ocr(sandbox: Counting, path: Path) -> Extracted:
    pdf = PdfInSandbox(sandbox, path)
    facts = await pdf.open()
    batches = [await pdf.read(*pages) for pages in batch_ranges(facts.page_count)]
    return (await pdf.assemble(facts, batches)).extracted


async def source_text(sandbox: Counting, path: Path) -> str:
    return "\n".join(filter(None, await truth.ask(sandbox, truth.page_texts, path)))


# Letters ------------------------------------------------------------------------------------------------------------


async def measure_letters(sandbox: Counting, folder: Path) -> list[Row]:
    """Letters of PDFium's text against the letters of ours, for files whose quality is `full`."""
    lost: list[float] = []
    extra: list[float] = []
    high_wanted = high_found = high_files = 0
    for path in [one for name in (*SETS[:3], "pdf-malformed") for one in sorted((folder / name).glob("*.pdf"))]:
        try:
            source, extracted = await source_text(sandbox, path), await read_without_ocr(sandbox, path)
        except OctavoError:
            continue
        # Headers and footers are left out of the text on purpose, but they are regions.
        beside = "".join(one.text for one in extracted.regions if one.kind in BESIDE)
        wanted, found = letters_of(source), letters_of(plain(extracted.markdown) + beside)
        high = Counter(one for one in source if ord(one) > 0xFFFF)
        high_found += (high & Counter(extracted.markdown + beside)).total()
        high_wanted += high.total()
        high_files += bool(high)
        if extracted.quality is Quality.FULL and wanted:
            lost.append((wanted - found).total() / wanted.total())
            extra.append((found - wanted).total() / max(found.total(), 1))
            if lost[-1] > 0.1 or extra[-1] > 0.1:
                report(f"{path.name:45} letters lost {lost[-1]:.3f} added {extra[-1]:.3f}")
    if not lost:
        return [missing("letters", 0.01, "no PDFs")]
    note = "headers and footers that are left out on purpose count as lost, unless they are regions"
    kept = Row("letters beyond U+FFFF kept", high_found / max(high_wanted, 1), 1, high_files)
    return [
        Row("letters of PDFium's text lost, pages called `full`", mean(lost), 0.01, len(lost), note, least=False),
        Row("letters that PDFium does not find, pages called `full`", mean(extra), 0.005, len(extra), least=False),
        kept if high_wanted else missing(kept.name, 1, "no such letters"),
    ]


# Forms and notes ----------------------------------------------------------------------------------------------------


async def measure_forms(sandbox: Counting, folder: Path) -> list[Row]:
    counts = {"fields": [0, 0, 0], "notes": [0, 0, 0]}
    for path in files_in(folder, "*.pdf"):
        try:
            wanted = await truth.ask(sandbox, truth.form_values, path)
            if not any(map(str.strip, wanted["fields"] + wanted["notes"])):
                continue
            extracted = await read_without_ocr(sandbox, path)
        except OctavoError:
            continue
        text = squeezed(extracted.markdown + "".join(one.text for one in extracted.regions))
        for kind, before in counts.items():
            values = [value for value in map(squeezed, wanted[kind]) if value]
            hits = sum(value in text for value in values)
            counts[kind] = [a + b for a, b in zip(before, (hits, len(values), bool(values)), strict=True)]
            if hits < len(values):
                report(f"{path.name:45} {kind} {hits}/{len(values)}")
    return [
        Row(
            f"PDF form {name}" if kind == "fields" else f"PDF {name}",
            hits / max(wanted, 1),
            1,
            files,
            f"{hits} of {wanted}",
        )
        for (kind, (hits, wanted, files)), name in zip(counts.items(), ("values found", "notes found"), strict=True)
    ]


def squeezed(text: str) -> str:
    return plain_words(plain(text)).replace(" ", "")


# Headings -----------------------------------------------------------------------------------------------------------


async def measure_headings(sandbox: Counting, folder: Path) -> list[Row]:
    scores = []
    for path in sorted((folder / "pdf-headings").glob("*.pdf")):
        wanted = bookmarks_of(path)
        if not wanted:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            extracted = await read_without_ocr(sandbox, without_bookmarks(path, Path(temporary)))
        scores.append(judge_headings(wanted, headings_of(extracted)))
        report(
            f"{path.stem[:45]:45} " + " ".join(f"{name} {value:.3f}" for name, value in scores[-1]._asdict().items())
        )
    return [
        mean_row("headings without bookmarks: recall", [one.recall for one in scores], 0.9),
        mean_row("headings without bookmarks: precision", [one.precision for one in scores], 0.8),
        mean_row("headings without bookmarks: order of levels", [one.levels for one in scores], 0.95),
    ]


async def measure_docling(sandbox: Counting, folder: Path) -> list[Row]:
    """PDFs with the Markdown of another program beside them."""
    read = await read_texts(sandbox, with_truth(folder, "pdf"))
    if not read:
        return [missing("PDFs against docling's Markdown: edit similarity", 0.93, "no PDF has its Markdown beside it")]
    similar = [edit_similarity(tokens(wanted), tokens(text)) for _, wanted, text in read]
    pairs = [(headings_in(wanted), headings_in(text)) for _, wanted, text in read]
    found = [mean(any(is_same(one, other) for other in ours) for one in wanted) for wanted, ours in pairs if wanted]
    right = [mean(any(is_same(other, one) for other in wanted) for one in ours) for wanted, ours in pairs if ours]
    return [
        mean_row("PDFs against docling's Markdown: edit similarity", similar, 0.93),
        mean_row("PDFs against docling's Markdown: headings, precision", right, 0.8),
        mean_row("PDFs against docling's Markdown: headings, recall", found, 0.8),
    ]


# Places of chunks ---------------------------------------------------------------------------------------------------


class PlacedWord(NamedTuple):
    text: str
    left: float
    top: float
    right: float
    bottom: float


async def measure_chunks(sandbox: Counting, folder: Path) -> list[Row]:
    """Words of a chunk that lie inside its boxes, and the share of the words in its boxes that are the chunk's."""
    inside: list[float] = []
    share: list[float] = []
    for path in [one for name in SETS for one in sorted((folder / name).glob("*.pdf"))]:
        try:
            extracted = await read_without_ocr(sandbox, path)
            pages = await truth.ask(sandbox, truth.placed_words, path)
        except OctavoError:
            continue
        words = [[PlacedWord(plain_words(text), *box) for text, box in page] for page in pages]
        values = [one for one in await _judge_chunks(sandbox, extracted, words) if one]
        if values:
            inside.append(mean(one for one, _ in values))
            share.append(mean(one for _, one in values))
            if min(inside[-1], share[-1]) < 0.9:
                report(f"{path.name:45} inside {inside[-1]:.3f} share {share[-1]:.3f}")
    return [
        mean_row("chunks: words inside their boxes", inside, 0.99),
        mean_row("chunks: share of the words in the boxes", share, 0.95),
    ]


async def _judge_chunks(
    sandbox: Counting, extracted: Extracted, pages: Sequence[Sequence[PlacedWord]]
) -> list[tuple[float, float] | None]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        given.write(to_json(extracted))
        given.flush()
        await sandbox.run(cut_document.call(), input_file=given, output_file=made)
        chunks = read_chunks(made.read(), extracted.markdown)
    return [_judge_chunk(chunk.content, chunk.boxes, pages) for chunk in chunks]


def _judge_chunk(
    text: str, boxes: Sequence[tuple[int, float, float, float, float]], pages: Sequence[Sequence[PlacedWord]]
) -> tuple[float, float] | None:
    """None for a chunk without words."""
    wanted = words_in(plain(without_repeated_headings(text)))
    if not wanted:
        return None
    found = words_in(" ".join(word.text for word in _words_in(boxes, pages)))
    both = (wanted & found).total()
    return both / wanted.total(), both / max(found.total(), 1)


def _words_in(
    boxes: Sequence[tuple[int, float, float, float, float]], pages: Sequence[Sequence[PlacedWord]]
) -> list[PlacedWord]:
    numbers = sorted({page for page, *_ in boxes})
    return [
        word
        for number in numbers
        for word in (pages[number - 1] if number <= len(pages) else ())
        if any(_holds(box, word) for box in boxes if box[0] == number)
    ]


def _holds(box: tuple[int, float, float, float, float], word: PlacedWord) -> bool:
    _, left, top, right, bottom = box
    across, down = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    return left - 1 <= across <= right + 1 and top - 1 <= down <= bottom + 1
