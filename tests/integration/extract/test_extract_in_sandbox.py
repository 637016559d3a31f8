"""Files are read in the sandbox, and what comes out is the same as without it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from octavo.core.errors import Empty, NotSupported
from octavo.extract.chunks.chunking import chunk_in_sandbox
from octavo.extract.document_facts import add_language, find_in_sandbox
from octavo.extract.extracted import SourceType, to_json
from octavo.extract.file_reader import PRELOAD as EXTRACT_PRELOAD
from octavo.extract.file_reader import extract_in_sandbox, read_in_sandbox
from octavo.extract.formats import text
from octavo.sandbox import Limits, OutOfTime, OutputTooLarge, Sandbox

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(preload=[*EXTRACT_PRELOAD]) as started:
        yield started


Keep = Callable[[str | bytes], Path]


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "an object without a name"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


async def test_markdown(sandbox: Sandbox, keep: Keep) -> None:
    content = "---\ntitle: Über\n---\n\n# One\n\nText.\n"
    file = keep(content)
    extracted = await extract_in_sandbox(sandbox, file, "notes.md", "text/markdown")
    assert extracted == text.from_markdown(content)
    assert extracted.metadata.title == "Über"


async def test_text(sandbox: Sandbox, keep: Keep) -> None:
    content = "ANNUAL REPORT\n\nThe café did well.\fSecond page."
    file = keep(content.encode("cp1252"))
    extracted = await extract_in_sandbox(sandbox, file, "report.txt", "text/plain")
    assert extracted == text.from_text(content)
    assert [page.number for page in extracted.pages] == [1, 2]


@pytest.mark.parametrize("language", ["en", None])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("clay.md", "---\nlang: pt-BR\nauthor: Ada Osei\n---\n# On clay\n\n3 March 2021\n\n## Water\n\nIt settles."),
        ("invoice.txt", "Hansen GmbH\nInvoice no: A-17\nDate: 15 August 2024\nNet: 10.00\nTotal: 12.50 EUR\n"),
    ],
)
async def test_a_short_text_is_read_in_one_process_as_in_several(
    sandbox: Sandbox, keep: Keep, name: str, content: str, language: str | None
) -> None:
    extracted = await extract_in_sandbox(sandbox, keep(content), name)
    chunks = await chunk_in_sandbox(sandbox, to_json(extracted), extracted.markdown)
    facts = await find_in_sandbox(sandbox, extracted, None, name, language)
    short = await read_in_sandbox(sandbox, content.encode(), name)
    assert (short.extracted, short.chunks) == (extracted, chunks)
    assert add_language(short.facts, extracted, language) == facts
    assert len(facts) > 2


async def test_the_name_is_a_label(sandbox: Sandbox, keep: Keep) -> None:
    file = keep("A text that is called a PDF.")
    extracted = await extract_in_sandbox(sandbox, file, "x.pdf", "application/pdf")
    assert extracted.source_type is SourceType.TEXT


async def test_a_book_is_not_too_large_for_the_way_back(sandbox: Sandbox, keep: Keep) -> None:
    content = "".join(f"## Chapter {n}\n\n{'Some words of it. ' * 60}\n\n" for n in range(3000))
    file = keep(content)
    extracted = await extract_in_sandbox(sandbox, file, "book.md")
    assert extracted.markdown == content
    assert len(extracted.outline) == 3000


async def test_it_works_without_preloading(keep: Keep) -> None:
    file = keep("Text with “quotes”.".encode("cp1252"))
    async with Sandbox() as cold:
        assert (await extract_in_sandbox(cold, file, "x.txt")).markdown == "Text with “quotes”."


@pytest.mark.parametrize("content", [b"", b" \n", b"\xef\xbb\xbf", b"\xff\xfe"])
async def test_nothing_is_empty(sandbox: Sandbox, keep: Keep, content: bytes) -> None:
    file = keep(content)
    with pytest.raises(Empty):
        await extract_in_sandbox(sandbox, file, "x.txt")


async def test_what_nobody_reads_is_refused_by_name(sandbox: Sandbox, keep: Keep) -> None:
    file = keep(b"\x7fELF" + bytes(range(256)))
    with pytest.raises(NotSupported, match=r"type is other. Octavo reads .*markdown.*text"):
        await extract_in_sandbox(sandbox, file, "program.txt")


async def test_a_hostile_text_ends_in_time(sandbox: Sandbox, keep: Keep) -> None:
    file = keep("a\n\n" * 3_000_000)
    with pytest.raises(OutOfTime):
        await extract_in_sandbox(sandbox, file, "x.txt", limits=Limits(cpu_seconds=1))


async def test_an_output_over_the_limit_is_refused(sandbox: Sandbox, keep: Keep) -> None:
    file = keep("word " * 100_000)
    with pytest.raises(OutputTooLarge):
        await extract_in_sandbox(sandbox, file, "x.txt", limits=Limits(output_bytes=100_000))
