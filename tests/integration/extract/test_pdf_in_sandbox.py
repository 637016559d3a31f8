"""PDFs are read in the sandbox, in batches, and one page that cannot be read costs no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from octavo.core.errors import BadInput, Empty, Encrypted, OctavoError
from octavo.extract.extracted import SourceType
from octavo.extract.file_reader import PRELOAD as EXTRACT_PRELOAD
from octavo.extract.file_reader import FileReader
from octavo.extract.pdf.page_batches import batch_from_json, batch_to_json
from octavo.extract.pdf.page_text import read_batch
from octavo.extract.pdf.pdf_file import PRELOAD as PDF_PRELOAD
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.sandbox import ChildCrashed, Progress, Sandbox
from tests.support.pdf import Bookmark, Part, Pdf, Words, paragraph, read_pdf

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROSE = [
    "The library keeps every page where a reader can find it again, and it says",
    "of every sentence on which page it was found, so that nobody has to believe",
    "what they can look up themselves.",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(preload=[*EXTRACT_PRELOAD, *PDF_PRELOAD]) as started:
        yield started


def page(number: int) -> list[Part]:
    title = Words(f"{number} Chapter", top=90, size=18, font="bold")
    return [title, *paragraph([f"Page {number} has words of its own.", *PROSE], 120)]


def write(folder: Path, document: Pdf | bytes, password: str | None = None) -> Path:
    path = folder / "an object without a name"
    path.write_bytes(document if isinstance(document, bytes) else document.write(password))
    return path


async def test_the_text_of_every_page_comes_out(sandbox: Sandbox, tmp_path: Path) -> None:
    pages = [page(number) for number in range(1, 231)]
    path = write(tmp_path, Pdf(pages, [Bookmark(1, "2 Chapter", 2)]))
    progress: list[Progress] = []
    extracted = await PdfInSandbox(sandbox, path).extract(progress.append)
    # Batches are read in parallel: the short one may be complete before the second.
    assert [one.done for one in progress] in ([100, 200, 230], [100, 130, 230])
    assert {one.unit for one in progress} == {"pages"}
    assert all(f"Page {number} has words of its own." in extracted.markdown for number in range(1, 231))
    assert [(one.title, one.page) for one in extracted.outline] == [("2 Chapter", 2)]
    assert (extracted.pages_with_text, extracted.quality) == (230, "full")


async def test_the_layout_is_the_same_as_outside(sandbox: Sandbox, tmp_path: Path) -> None:
    path = write(tmp_path, Pdf([page(number) for number in range(1, 4)]))
    assert await PdfInSandbox(sandbox, path).extract() == read_pdf(path)


async def test_a_pdf_is_found_by_its_content(sandbox: Sandbox, tmp_path: Path) -> None:
    extracted = await FileReader(sandbox).read(write(tmp_path, Pdf([page(1)])), filename="no name")
    assert extracted.source_type is SourceType.PDF
    assert "words of its own" in extracted.markdown


async def test_a_password_opens_it(sandbox: Sandbox, tmp_path: Path) -> None:
    path = write(tmp_path, Pdf([page(1)]), "secret")
    opened = await FileReader(sandbox).read(path, password="secret")
    assert "words of its own" in opened.markdown
    assert "words of its own" in (await PdfInSandbox(sandbox, path, "secret").extract()).markdown
    for password in (None, "wrong"):
        with pytest.raises(Encrypted):
            await FileReader(sandbox).read(path, password=password)
        with pytest.raises(Encrypted):
            await PdfInSandbox(sandbox, path, password).extract()


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"%PDF-1.7 and nothing else", BadInput), (Pdf([]).write(), Empty)],
    ids=["damaged", "no pages"],
)
async def test_what_cannot_be_read_says_why(
    sandbox: Sandbox, tmp_path: Path, content: bytes, error: type[OctavoError]
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(error):
        await PdfInSandbox(sandbox, path).extract()
    with pytest.raises(error):
        await FileReader(sandbox).read(path)


class Fragile(PdfInSandbox):
    """Some of its pages end the process that reads them, and some of these also without layout."""

    bad = frozenset({3, 12})
    worse = frozenset({12})

    async def read_once(self, first: int, last: int, *, layout: bool) -> bytes:
        if not (self.bad if layout else self.worse).isdisjoint(range(first, last + 1)):
            raise ChildCrashed
        return batch_to_json(read_batch(self.path, first, last, layout=layout)) + b"\n"


async def test_a_page_that_ends_its_process_costs_no_other(sandbox: Sandbox, tmp_path: Path) -> None:
    path = write(tmp_path, Pdf([page(number) for number in range(1, 17)]))
    fragile = Fragile(sandbox, path)
    batches = [batch_from_json(line) for line in (await fragile.read(1, 16)).splitlines()]
    pages = [one for batch in batches for one in batch.pages]
    assert [one.number for one in pages] == list(range(1, 17))
    assert [one.number for one in pages if one.plain] == [3]
    assert [one.number for one in pages if one.failed] == [12]
    extracted, _ = await fragile.assemble(await fragile.open(), [await fragile.read(1, 16)])
    assert (extracted.quality, extracted.pages_with_text) == ("partial", 15)
