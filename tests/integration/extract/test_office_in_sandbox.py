"""One document of each office format, and a few bombs, through the sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from octavo.core.errors import BadInput, OctavoError, TooLarge
from octavo.extract.extracted import SourceType
from octavo.extract.file_reader import PRELOAD as EXTRACT_PRELOAD
from octavo.extract.file_reader import extract_in_sandbox
from octavo.extract.formats import known_processors
from octavo.sandbox import Sandbox
from tests.support.office import docx, epub, page, paragraph, read, samples

pytestmark = pytest.mark.asyncio(loop_scope="module")
SAMPLES = samples()
KNOWN = known_processors()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(preload=[*EXTRACT_PRELOAD]) as started:
        yield started


def kept(folder: Path, data: bytes) -> Path:
    path = folder / "an object without a name"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", sorted(SAMPLES))
async def test_it_is_the_same_as_without(sandbox: Sandbox, tmp_path: Path, kind: SourceType) -> None:
    extracted = await extract_in_sandbox(sandbox, kept(tmp_path, SAMPLES[kind]), "")
    assert extracted == read(KNOWN[kind], tmp_path, SAMPLES[kind])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: docx("", more={"word/document.xml": bytes(100 << 20)}), TooLarge),
        (lambda: epub({"a.xhtml": page("x" * (100 << 20))}), TooLarge),
        (lambda: docx("<w:sdt>" * 100_000), BadInput),
    ],
    ids=["docx", "epub", "deep"],
)
async def test_bombs_end_with_their_name(
    sandbox: Sandbox, tmp_path: Path, make: Callable[[], bytes], expected: type[OctavoError]
) -> None:
    with pytest.raises(expected):
        await extract_in_sandbox(sandbox, kept(tmp_path, make()), "")


async def test_a_long_document_is_within_the_limits(sandbox: Sandbox, tmp_path: Path) -> None:
    body = "".join(paragraph(f"Paragraph {n} " + "with some words of its own. " * 12) for n in range(5000))
    extracted = await extract_in_sandbox(sandbox, kept(tmp_path, docx(body)), "long.docx")
    assert extracted.word_count > 300_000
