from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from uuid import UUID

import pytest

from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_gateway
from octavo.core.settings import Settings
from tests.support.analyses import Study, answer_well, put_book
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import SECRET
from tests.support.library import Desk
from tests.support.processing import OpenSandbox

PAGES = 25


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten pages each, with three before them, so that a short book is a long one."""
    monkeypatch.setattr("octavo.analyse.segments.MOST_OWN", 10)
    monkeypatch.setattr("octavo.analyse.segments.MOST_CONTEXT", 3)


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with FakeGemini() as server:
        server.answer = answer_well
        yield server


@pytest.fixture
async def gateway(desk: Desk, gemini: FakeGemini) -> AsyncIterator[Gateway]:
    given = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
    async with aclosing(open_gateway(Settings.model_validate(given), desk.database)) as opened:
        yield opened


@pytest.fixture
async def book(desk: Desk, owner: UUID, folder: Path, small_segments: None) -> Study:
    """Twenty-five pages that are read, and nobody but `local` to ask."""
    return Study(desk, owner, await put_book(desk, owner, PAGES), folder, OpenSandbox())


@pytest.fixture
def study(book: Study, gateway: Gateway) -> Study:
    """The same with a model that costs money."""
    return Study(book.desk, book.owner, book.document, book.folder, book.sandbox, gateway)
