"""A link becomes a document that can be read and cited, with a real worker, the real sandbox and real servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.ai.gateway_setup import open_local_gateway
from octavo.fetch import GuardedClient
from octavo.intake import Outcome
from octavo.intake.links import NewSource, link_source, paste_source
from octavo.library import changes
from octavo.library.documents import list_chunks
from octavo.library.files import File, find_file
from octavo.records.documents import Chunk
from octavo.sandbox import Sandbox
from octavo.search.chunk_search import find
from tests.support.deliveries import SKIP_WAITS
from tests.support.library import LIMITS, Desk
from tests.support.pdf import Pdf, Words
from tests.support.processes import PATIENCE_SECONDS
from tests.support.sites import Answer, Site, canary, page, redirect, running_site
from tests.support.working import finished, text_of, working
from tests.support.youtube import WATCH, player, stand_in, timed_text, track

SENTENCE = "The river rises in the hills and goes down to the sea in many turns. "
HTML = f"<!doctype html><html lang=en><head><title>The River</title></head><body><article>{{}}<p>{SENTENCE * 5}</p>"
SPEECH = [(second * 4.0, 4.0, f"Sentence number {second} of this speech is said now.") for second in range(120)]


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as site:
        yield site


class Library:
    """One owner's documents, and a worker that may reach the test's own site."""

    def __init__(self, desk: Desk, owner: UUID, site: Site, sandbox: Sandbox, folder: Path) -> None:
        self.desk, self.owner, self.site = desk, owner, site
        self._sandbox, self._folder = sandbox, folder

    def link(self, path: str, **more: Any) -> NewSource:  # noqa: ANN401
        return link_source(f"{self.site.url}{path}", allow=frozenset({self.site.place}), **more)

    async def take(self, source: NewSource) -> Outcome:
        return await self.desk.intake.take(self.owner, source.upload, source.body, LIMITS)

    def working(self, **settings: Any) -> AbstractAsyncContextManager[None]:  # noqa: ANN401
        fetch = GuardedClient(frozenset({self.site.place}))
        return working(self.desk, self._sandbox, self._folder, fetch, youtube_url=self.site.url, **settings)

    async def work(self, document: UUID, **settings: Any) -> Any:  # noqa: ANN401 - the document when it is done
        async with self.working(**settings):
            return await finished(self.desk, self.owner, document)

    async def process(self, source: NewSource, **settings: Any) -> Any:  # noqa: ANN401
        return await self.work((await self.take(source)).document_id, **settings)

    async def process_all(self, names: Iterable[str], **settings: Any) -> dict[str, Any]:  # noqa: ANN401
        """The documents of these pages of the site, by name, processed together."""
        taken = {name: (await self.take(self.link(f"/{name}"))).document_id for name in names}
        async with self.working(**settings):
            return {name: await finished(self.desk, self.owner, document) for name, document in taken.items()}

    async def retry(self, document: UUID) -> None:
        async with self.desk.database.transaction() as connection:
            await changes.retry_document(connection, self.owner, document, None)

    async def source(self, document: UUID) -> tuple[File, bytes]:
        async with self.desk.database.connection() as connection:
            file = await find_file(connection, self.owner, document, "source")
        return file, await self.desk.bucket.read(file.key)

    async def text(self, document: UUID) -> str:
        return await text_of(self.desk, self.owner, document)

    async def chunks(self, document: UUID) -> list[Chunk]:
        async with self.desk.database.connection() as connection:
            return (await list_chunks(connection, self.owner, document)).items


@pytest.fixture
def library(desk: Desk, owner: UUID, site: Site, sandbox: Sandbox, folder: Path) -> Library:
    return Library(desk, owner, site, sandbox, folder)


# Pages -------------------------------------------------------------------------------------------------------------


async def test_a_page_becomes_a_document_and_its_source_can_be_downloaded(library: Library, site: Site) -> None:
    site.routes["/rivers/one"] = redirect("/final")
    site.routes["/final"] = page(HTML.format("<p>See <a href=/map>the map</a>.</p>"))
    shown = await library.process(library.link("/rivers/one?utm_source=x#top"))
    assert (shown.status, shown.quality, shown.title, shown.language) == ("completed", "full", "The River", "en")
    assert (shown.source_type, shown.source_url) == ("web", f"{site.url}/rivers/one")
    assert shown.filename == "127.0.0.1 - one"
    text = await library.text(shown.id)
    assert SENTENCE.strip() in text
    assert f"[the map]({site.url}/map)" in text
    file, body = await library.source(shown.id)
    assert (body, file.filename) == (site.routes["/final"].body, "127.0.0.1 - one.html")  # type: ignore[union-attr]
    assert [chunk.seconds for chunk in await library.chunks(shown.id)] == [None]
    await library.desk.check_books()


async def test_the_same_link_is_the_same_document(library: Library, site: Site) -> None:
    site.routes["/a"] = page(HTML.format(""))
    first = await library.take(library.link("/a"))
    again = await library.take(library.link("/a?fbclid=1#x"))
    assert (again.state, again.document_id) == ("deduplicated", first.document_id)
    await library.work(first.document_id)
    twin = await library.take(library.link("/a", duplicates="new"))
    assert twin.duplicate_of == first.document_id
    assert (await library.source(twin.document_id))[1] == (await library.source(first.document_id))[1]
    assert len(site.asked) == 1
    await library.desk.check_books()


async def test_a_retry_fetches_the_page_again(library: Library, site: Site) -> None:
    site.routes["/a"] = page(HTML.format("<p>As it was at first, in the old days.</p>"))
    shown = await library.process(library.link("/a"))
    site.routes["/a"] = page(HTML.format("<p>As it is now, in the new days.</p>"))
    await library.retry(shown.id)
    assert (await library.source(shown.id))[1].count(b"old days") == 1
    shown = await library.work(shown.id)
    assert shown.revision == 2
    assert "new days" in await library.text(shown.id)
    assert b"new days" in (await library.source(shown.id))[1]
    await library.desk.check_books()


async def test_a_page_that_could_not_be_read_is_fetched_again_by_a_retry(library: Library, site: Site) -> None:
    site.routes["/a"] = page("<html><body><div id=root></div></body></html>")
    shown = await library.process(library.link("/a"))
    assert (shown.status, shown.error.code) == ("failed", "EMPTY")
    assert "paste it" in shown.error.message
    assert (await library.source(shown.id))[1].startswith(b"<html>")
    site.routes["/a"] = page(HTML.format(""))
    await library.retry(shown.id)
    assert (await library.work(shown.id)).status == "completed"
    assert len(site.asked) == 2
    await library.desk.check_books()


async def test_the_source_of_what_was_not_fetched_is_the_link(library: Library, site: Site) -> None:
    shown = await library.process(library.link("/missing"))
    assert (shown.status, shown.error.code) == ("failed", "PAGE_NOT_FOUND")
    file, body = await library.source(shown.id)
    assert (file.content_type, body.split(b"\r\n")[1]) == ("text/uri-list", f"{site.url}/missing".encode())


TARGETS = {
    "markdown": Answer(body=b"# Notes\n\nSome **words** in [it](https://e.org/).\n"),
    "text": Answer(body=b"Just some words.\n", headers={"Content-Type": "text/plain"}),
    "pdf": Answer(body=Pdf([[Words("Some words.")]]).write(), headers={"Content-Type": "text/html"}),
}


async def test_the_target_of_a_link_gets_its_real_type(library: Library, site: Site) -> None:
    site.routes.update({f"/{name}": answer for name, answer in TARGETS.items()})
    found = await library.process_all(TARGETS)
    for source_type, answer in TARGETS.items():
        shown = found[source_type]
        assert (shown.source_type, shown.source_url) == (source_type, f"{site.url}/{source_type}")
        assert (shown.status, shown.quality) == ("completed", "full")
        assert (await library.source(shown.id))[1] == answer.body


REFUSED: dict[str, tuple[Answer, str, str]] = {
    "sign-in": (Answer(401), "PAGE_PAYWALL", "archive.today"),
    "pay": (Answer(402), "PAGE_PAYWALL", "web.archive.org"),
    "forbidden": (page("No.", status=403), "PAGE_FORBIDDEN", "archive.today"),
    "by-law": (Answer(451), "PAGE_FORBIDDEN", "web.archive.org"),
    "gone": (Answer(410), "PAGE_NOT_FOUND", "URL"),
    "odd": (Answer(418), "PAGE_REFUSED", "paste"),
    "film": (Answer(body=b"x", headers={"Content-Type": "video/mp4"}), "PAGE_NOT_TEXT", "paste"),
    "bytes": (Answer(body=bytes(range(256)) * 20), "PAGE_NOT_TEXT", "paste"),
    "nothing": (page(" \n"), "EMPTY", "paste"),
    "paywall": (
        page(f'<html><script>{{"isAccessibleForFree": false}}</script><body><p>{SENTENCE}</p></body></html>'),
        "PAGE_PAYWALL",
        "archive.today",
    ),
    "too-large": (page("x" * 60_000), "TOO_LARGE", "add the file"),
    "circle": (redirect("/circle"), "TOO_MANY_REDIRECTS", "Too many redirects"),
    "inside": (redirect("http://127.0.0.1:1/"), "FETCH_REFUSED", "Private addresses"),
    "out-of-the-web": (redirect("file:///etc/passwd"), "BAD_URL", "http"),
}  # fmt: skip


async def test_what_cannot_be_had_says_why_and_what_to_do(library: Library, site: Site) -> None:
    site.routes.update({f"/{name}": answer for name, (answer, *_) in REFUSED.items()})
    found = await library.process_all(REFUSED, fetch_bytes=50_000)
    for name, (_, code, said) in REFUSED.items():
        assert (found[name].status, found[name].error.code) == ("failed", code), name
        assert said in found[name].error.message, name
    await library.desk.check_books()


async def waiting(library: Library, names: Iterable[str], **settings: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401
    """The jobs of these pages of the site, each as it was after its first attempt.

    A job that waits without an error waits for another page of the same site.
    """
    taken = {(await library.take(library.link(f"/{name}"))).process_id: name for name in names}
    found: dict[str, dict[str, Any]] = {}
    async with library.working(**settings), asyncio.timeout(PATIENCE_SECONDS):
        while len(found) < len(taken):
            rows = await library.desk.rows(TRIED_ONCE, list(taken))
            found = {taken[row["id"]]: row for row in rows} | found  # a later attempt changes nothing here
            await asyncio.sleep(0.02)
    return found


TRIED_ONCE = """
    SELECT id, failures, note -> 'error' ->> 'code' AS code, extract(epoch FROM run_after - queued_at) AS wait
    FROM jobs WHERE id = ANY (%s) AND run_after IS NOT NULL AND note ? 'error'"""


LATER: dict[str, tuple[Callable[[Site], Answer], str, int]] = {
    "busy": (lambda _: Answer(429, headers={"Retry-After": "1234"}), "PAGE_RATE_LIMIT", 0),
    "broken": (lambda _: Answer(500), "PAGE_SITE_FAILED", 0),
    "away": (lambda _: Answer(503, headers={"Retry-After": "1234"}), "PAGE_SITE_FAILED", 0),
    "slow": (lambda site: Answer(pieces=site.drip(b"x")), "TIMEOUT", 1),
    "cut-off": (lambda _: Answer(headers={"Content-Length": "99"}, pieces=[b"x"]), "NETWORK", 0),
}


async def test_what_may_pass_is_tried_again(library: Library, site: Site) -> None:
    site.routes.update({f"/{name}": answer(site) for name, (answer, *_) in LATER.items()})
    # Only the slow one has a short time limit, which a busy machine would reach with the others too.
    jobs = await waiting(library, LATER.keys() - {"slow"}) | await waiting(library, ["slow"], fetch_seconds=1)
    for name, (_, code, charged) in LATER.items():
        assert (jobs[name]["code"], jobs[name]["failures"]) == (code, charged), name
    assert {name for name, job in jobs.items() if job["wait"] >= 1234} == {"busy", "away"}


async def test_a_site_that_answers_5xx_is_tried_again_after_5_25_and_125_seconds(library: Library, site: Site) -> None:
    site.routes["/a"] = Answer(502)
    outcome = await library.take(library.link("/a"))
    asked = "SELECT extract(epoch FROM run_after - queued_at) AS wait FROM jobs WHERE id = %s AND run_after IS NOT NULL"
    task = asyncio.create_task(library.work(outcome.document_id))
    waits: list[float] = []
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(waits) < 4:
                if rows := await library.desk.rows(f"{asked} AND waits = %s", outcome.process_id, len(waits) + 1):
                    waits.append(float(rows[0]["wait"]))
                    await library.desk.rows(SKIP_WAITS)
                await asyncio.sleep(0.02)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert all(0.9 * wanted <= wait <= 1.1 * wanted for wait, wanted in zip(waits, (5, 25, 125, 625), strict=True))


async def test_a_link_that_leads_inside_is_never_followed(library: Library) -> None:
    """Brought in past the check that is made at once: by a name, for example."""
    with canary() as inner:
        source = link_source(f"http://127.0.0.1:{inner.port}/", allow=frozenset({f"127.0.0.1:{inner.port}"}))
        shown = await library.process(source)
        assert (shown.status, shown.error.code) == ("failed", "FETCH_REFUSED")
        assert inner.visits() == 0


# Videos and text ---------------------------------------------------------------------------------------------------


async def test_a_video_becomes_text_whose_passages_open_it_at_their_second(library: Library, site: Site) -> None:
    stand_in(site, player(track("en")), text=timed_text(SPEECH))
    shown = await library.process(link_source("https://youtu.be/dQw4w9WgXcQ?t=9"))
    assert (shown.status, shown.source_type, shown.source_url) == ("completed", "youtube", WATCH)
    assert (shown.title, shown.author, shown.language) == ("About rivers", "A geographer", "en")
    text = await library.text(shown.id)
    assert text.count("of this speech") == len(SPEECH)
    chunks = await library.chunks(shown.id)
    assert len(chunks) > 1
    for chunk in chunks:
        number = int(chunk.content.split("number ")[1].split()[0])
        assert chunk.seconds == number * 4
        assert chunk.url == f"{WATCH}&t={number * 4}s"
    (hit, *_) = (await find(library.desk.database, open_local_gateway(), library.owner, "speech", mode="text")).items
    assert hit.url == f"{WATCH}&t={int(hit.seconds or 0)}s"
    file, body = await library.source(shown.id)
    raw = json.loads(body)
    assert (raw["video_id"], raw["kind"], len(raw["snippets"])) == ("dQw4w9WgXcQ", "manual", len(SPEECH))
    assert file.filename.endswith(".json")
    twin = await library.take(link_source(WATCH, duplicates="new"))
    assert [one.seconds for one in await library.chunks(twin.document_id)] == [one.seconds for one in chunks]
    await library.desk.check_books()


async def test_a_video_without_a_transcript_says_so(library: Library, site: Site) -> None:
    stand_in(site, player())
    shown = await library.process(link_source(WATCH))
    assert (shown.status, shown.error.code) == ("failed", "VIDEO_NO_TRANSCRIPT")
    assert "paste" in shown.error.message


async def test_a_pasted_transcript_knows_its_times(library: Library) -> None:
    stamped = "\n".join(f"{second // 60}:{second % 60:02}\nWord {second} is said here." for second in range(0, 400, 3))
    shown = await library.process(paste_source(stamped, title="A talk", attribution="https://youtu.be/dQw4w9WgXcQ"))
    assert (shown.source_type, shown.title, shown.source_url) == ("paste", "A talk", WATCH)
    assert shown.metadata["source"] == "https://youtu.be/dQw4w9WgXcQ"
    chunks = await library.chunks(shown.id)
    assert [chunk.seconds for chunk in chunks] == [int(chunk.content.split()[1]) for chunk in chunks]
    assert chunks[-1].url == f"{WATCH}&t={int(chunks[-1].seconds or 0)}s"
    assert (await library.source(shown.id))[1] == stamped.encode()


async def test_a_pasted_transcript_that_links_to_its_video_opens_it(library: Library) -> None:
    lines = [f"[[{at // 60:02}:{at % 60:02}]({WATCH}&t={at}s)] Word {at} is said here." for at in range(0, 400, 3)]
    shown = await library.process(paste_source("\n".join(lines), title="A talk"))
    assert (shown.source_type, shown.source_url) == ("paste", WATCH)
    chunks = await library.chunks(shown.id)
    assert [chunk.seconds for chunk in chunks] == [int(chunk.content.split()[1]) for chunk in chunks]
    assert [chunk.url for chunk in chunks] == [f"{WATCH}&t={int(chunk.seconds or 0)}s" for chunk in chunks]
    assert "[" not in await library.text(shown.id)


async def test_pasted_text_is_kept_and_structured(library: Library) -> None:
    shown = await library.process(paste_source("Some words.\n\n* one\n* two\n", attribution="A book"))
    assert (shown.status, shown.source_type, shown.source_url) == ("completed", "paste", None)
    assert (shown.title, shown.metadata["source"]) == ("Some words", "A book")
    assert "- one" in (await library.text(shown.id)).replace("* ", "- ")
