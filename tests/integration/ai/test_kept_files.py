"""Files that Gemini keeps: sent once for many questions, waited for, and sent again when they are gone."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from octavo.ai.calls import Caller, FileReference
from octavo.ai.providers import gemini
from octavo.ai.tasks import EXTRACT_PAGES, PagesToRead
from octavo.core.errors import ModelFailed, TimedOut
from tests.support.gateway import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")

PDF = b"%PDF-1.7 " + b"x" * 100_000


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemini, "FIRST_POLL_SECONDS", 0.001)


async def ask(bench: Bench, caller: Caller, first: int = 1) -> str:
    """Another question about the same file."""

    async def read() -> bytes:
        return PDF

    file = FileReference(sha256(PDF).hexdigest(), "application/pdf", 2, read)
    bench.gemini.answer = lambda _asked: "Text."
    return (await bench.gateway().ask(EXTRACT_PAGES, PagesToRead(file, first), caller)).output.markdown


async def test_a_file_is_sent_once_for_many_questions(bench: Bench) -> None:
    caller = bench.working()
    for first in range(1, 4):
        assert await ask(bench, caller, first) == "Text."
    assert list(bench.gemini.files.values()) == [PDF]
    assert bench.gemini.sent == 1
    assert len({asked.files for asked in bench.gemini.asked}) == 1


async def test_another_owner_uploads_the_file_again(bench: Bench) -> None:
    await ask(bench, bench.caller())
    await ask(bench, bench.caller())
    assert bench.gemini.sent == 2


async def test_a_file_is_waited_for_until_it_can_be_used(bench: Bench) -> None:
    bench.gemini.looks = 5
    assert await ask(bench, bench.caller()) == "Text."
    looked = [one for one in bench.gemini.requests if one.method == "GET"]
    assert len(looked) == 5


async def test_a_file_that_never_becomes_ready_fails_after_a_time_limit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gemini, "ACTIVE_SECONDS", 0.05)
    bench.gemini.looks = 10_000
    with pytest.raises(TimedOut):
        await ask(bench, bench.caller())
    assert bench.spent() == 0


async def test_a_file_that_cannot_be_prepared_is_an_error(bench: Bench) -> None:
    bench.gemini.becomes = "FAILED"
    with pytest.raises(ModelFailed):
        await ask(bench, bench.caller())


async def test_after_two_days_it_is_sent_again_before_anybody_asks(bench: Bench) -> None:
    caller = bench.caller()
    await ask(bench, caller)
    bench.gemini.files.clear()
    bench.engine.advance(47 * 3600)
    await ask(bench, caller, first=2)
    assert bench.gemini.sent == 2
    assert [call["state"] for call in bench.calls()] == ["settled", "settled"]


async def test_a_file_that_expired_early_is_uploaded_again_automatically(bench: Bench) -> None:
    caller = bench.caller()
    await ask(bench, caller)
    bench.gemini.files.clear()
    assert await ask(bench, caller, first=2) == "Text."
    assert bench.gemini.sent == 2
    assert await ask(bench, replace(caller, generation=1)) == "Text."
    assert bench.gemini.sent == 2
