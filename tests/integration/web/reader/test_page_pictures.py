"""Pictures of pages: whose they are, made once and in the sandbox, with boxes where a passage stands."""

from __future__ import annotations

import asyncio
from io import BytesIO
from math import ceil
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from PIL import Image

from octavo.core.errors import BadInput
from octavo.database import Database
from octavo.library.files import forget_pictures
from octavo.sandbox import Call, Outcome
from octavo.web.app import create_app
from octavo.web.context.services import Services
from octavo.web.http.limits import ConcurrencyLimit
from tests.integration.web.reader.conftest import Room
from tests.support.pdf import HEIGHT, WIDTH, Bookmark, Pdf, Words, paragraph
from tests.support.processing import OpenSandbox
from tests.support.visitors import House, refused

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINES = ["A raised bog receives nothing but rain, and what it", "does with that water decides whether it grows."]
MARKED = (255, 230, 143)


def book(pages: int) -> bytes:
    return Pdf([paragraph([f"Page {n}. {LINES[0]}", LINES[1]], 120) for n in range(1, pages + 1)]).write()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two_pages(house: House) -> tuple[Room, str]:
    """A PDF that tests only read. Tests that count pictures add their own document."""
    room = Room(house, await house.person(f"{uuid4()}@example.org"))
    return room, await room.add("a.pdf", book(2))


def opened(answer: httpx.Response) -> Image.Image:
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png"), answer.text
    return Image.open(BytesIO(answer.content))


def path(document: str, number: object = 1, more: str = "") -> str:
    return f"/api/v1/documents/{document}/pages/{number}.png{more}"


def marked_box(picture: Image.Image) -> tuple[float, ...]:
    """Around all that has the colour of the marker, in points."""
    marker = picture.convert("RGB").point([*(int(v == c) * 255 for c in MARKED for v in range(256))])
    red, green, blue = marker.split()
    both = Image.composite(green, Image.new("L", red.size), red)
    found = Image.composite(blue, Image.new("L", red.size), both).getbbox()
    assert found
    return tuple(side * WIDTH / picture.width for side in found)


async def count_pictures(room: Room, document: str) -> int:
    ((number,),) = await room.house.rows(
        "SELECT count(*) FROM artifacts WHERE document_id = %s AND kind = 'page_picture'", document
    )
    return number


# Whose they are ----------------------------------------------------------------------------------------------------


async def test_a_stranger_gets_the_same_response_as_for_a_missing_document(room: Room) -> None:
    document = await room.upload("a.pdf", book(1))
    opened(await room.owner.get(path(document)))
    stranger = await room.house.person(f"{uuid4()}@example.org")
    for one in (document, str(uuid4())):
        refused(await stranger.get(path(one)), 404, "NOT_FOUND")
    await room.owner.delete(f"/api/v1/documents/{document}")
    refused(await room.owner.get(path(document)), 404, "NOT_FOUND")


async def test_a_browser_caches_a_picture_only_for_the_same_user(two_pages: tuple[Room, str]) -> None:
    room, document = two_pages
    answer = await room.owner.get(path(document))
    assert answer.headers["cache-control"].startswith("private")
    assert answer.headers["vary"] == "cookie, authorization"


# What there is -----------------------------------------------------------------------------------------------------


async def test_what_is_not_there_has_a_name_of_its_own(two_pages: tuple[Room, str]) -> None:
    room, pdf = two_pages
    text = await room.upload("a.md", "# Words")
    refused(await room.owner.get(path(pdf, 3)), 404, "PAGE_MISSING")
    refused(await room.owner.get(path(text)), 404, "NO_PAGE_PICTURES")
    for nothing in (path(pdf, 0), path(pdf, "x")):
        refused(await room.owner.get(nothing), 404, "NOT_FOUND")
    for wrong in (path(pdf, 1, "?width=799"), path(pdf, 1, "?box=1,2,3")):
        refused(await room.owner.get(wrong), 422, "VALIDATION")
    refused(await room.owner.get(path(pdf, 1, f"?chunk={uuid4()}")), 404, "NOT_FOUND")


async def test_a_locked_or_damaged_file_says_so(room: Room) -> None:
    locked = await room.add("locked.pdf", Pdf([[Words("Secret")]]).write("password"))
    refused(await room.owner.get(path(locked)), 422, "ENCRYPTED")
    damaged = await room.upload("damaged.pdf", b"%PDF-1.7\nno objects at all")
    refused(await room.owner.get(path(damaged)), 422, "VALIDATION")


async def test_a_page_is_there_before_its_text(room: Room) -> None:
    document = await room.upload("a.pdf", book(2))
    assert opened(await room.owner.get(path(document, 2, "?width=120"))).width == 120
    refused(await room.owner.get(path(document, 3)), 404, "PAGE_MISSING")
    refused(await room.owner.get(path(document, 1, "?box=1,2,3,4")), 409, "NOT_READY")


@pytest.mark.parametrize("width", [120, 800, 1600])
async def test_a_page_has_the_width_that_is_asked_for(two_pages: tuple[Room, str], width: int) -> None:
    room, document = two_pages
    picture = opened(await room.owner.get(path(document, 1, f"?width={width}")))
    assert picture.size == (width, ceil(width * HEIGHT / WIDTH))


async def test_every_sheet_of_an_image_is_a_page(room: Room) -> None:
    sheets = [Image.new("RGB", (300, 200), colour) for colour in ("red", "blue")]
    body = BytesIO()
    sheets[0].save(body, "TIFF", save_all=True, append_images=sheets[1:])
    document = await room.upload("scan.tiff", body.getvalue())
    second = opened(await room.owner.get(path(document, 2)))
    assert (second.size, second.getpixel((9, 9))) == ((300, 200), (0, 0, 255))
    refused(await room.owner.get(path(document, 3)), 404, "PAGE_MISSING")


# Made once ---------------------------------------------------------------------------------------------------------


async def test_an_image_is_drawn_from_its_copy_and_not_read_a_second_time(room: Room) -> None:
    body = BytesIO()
    Image.new("RGB", (3000, 1500), "white").save(body, "PNG")
    document = await room.add("wide.png", body.getvalue())
    ((source,),) = await room.house.rows(
        "SELECT key FROM artifacts WHERE document_id = %s AND kind = 'source'", document
    )
    await room.house.app.state.services.bucket.delete([source])
    picture = opened(await room.owner.get(path(document)))
    assert picture.width == 2 * picture.height


async def test_a_picture_is_made_once_however_many_ask(room: Room) -> None:
    document = await room.upload("a.pdf", book(1))
    answers = await asyncio.gather(*(room.owner.get(path(document)) for _ in range(8)))
    assert len({answer.content for answer in answers}) == 1
    assert await count_pictures(room, document) == 1
    again = await room.owner.get(path(document), headers={"if-none-match": answers[0].headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_two_processes_keep_one_picture(room: Room) -> None:
    document = await room.upload("a.pdf", book(1))
    other = create_app(room.house.app.state.services.settings)
    async with other.router.lifespan_context(other), httpx.AsyncClient(
        transport=httpx.ASGITransport(other), base_url="http://127.0.0.1:8400", cookies=room.owner.cookies
    ) as elsewhere:  # fmt: skip
        await asyncio.gather(*(client.get(path(document)) for client in (room.owner, elsewhere)))
    assert await count_pictures(room, document) == 1
    ((objects,),) = await room.house.rows(
        "SELECT count(*) FROM objects WHERE key LIKE 'pictures/%%' AND key LIKE %s", f"%{document}%"
    )
    assert objects == 1


async def test_pictures_go_with_their_document_and_with_time(room: Room) -> None:
    services: Services = room.house.app.state.services
    kept, purged = await room.upload("a.pdf", book(1)), await room.upload("b.pdf", book(2))
    for document in (kept, purged):
        opened(await room.owner.get(path(document)))
    await room.owner.delete(f"/api/v1/documents/{purged}?purge=true")
    assert [one async for one in services.bucket.list(f"pictures/{purged}")] == []
    database: Database = services.database
    assert await forget_pictures(database, services.bucket) == 0
    assert await forget_pictures(database, services.bucket, days=0) >= 1
    assert [one async for one in services.bucket.list(f"pictures/{kept}")] == []
    opened(await room.owner.get(path(kept)))


async def test_a_full_queue_returns_429(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    document = await room.upload("a.pdf", book(1))
    monkeypatch.setattr(room.house.app.state.services.pictures, "_limit", ConcurrencyLimit(1, 0, 2.0))
    answer = await room.owner.get(path(document))
    refused(answer, 429, "RATE_LIMIT")
    assert int(answer.headers["retry-after"]) >= 1


# Boxes -------------------------------------------------------------------------------------------------------------


async def test_a_passage_is_marked_at_its_position(room: Room) -> None:
    document = await room.add("a.pdf", book(2))
    (chunk,) = (await room.owner.get(f"/api/v1/documents/{document}/chunks")).json()["items"]
    assert [box["page"] for box in chunk["boxes"]] == [1, 2]
    plain = await room.owner.get(path(document, 2, "?width=800"))
    answer = await room.owner.get(path(document, 2, f"?width=800&chunk={chunk['id']}"))
    for found, wanted in zip(marked_box(opened(answer)), chunk["boxes"][1]["box"], strict=True):
        assert abs(found - wanted) < 4
    assert await count_pictures(room, document) == 1, "what is marked is not kept"
    assert answer.headers["etag"] != plain.headers["etag"]
    again = await room.owner.get(str(answer.url), headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304


async def test_any_box_can_be_marked(two_pages: tuple[Room, str]) -> None:
    room, document = two_pages
    answer = await room.owner.get(path(document, 1, "?box=100,300,200,350.5&box=100,400,200,500"))
    for found, wanted in zip(marked_box(opened(answer)), (100, 300, 200, 500), strict=True):
        assert abs(found - wanted) < 4


async def test_a_twin_has_the_same_places(two_pages: tuple[Room, str]) -> None:
    room, first = two_pages
    headers = {"x-upload-filename": "b.pdf"}
    copied = await room.owner.post("/api/v1/documents?duplicates=new", content=book(2), headers=headers)
    places = [
        (await room.owner.get(f"/api/v1/documents/{one}/chunks")).json()["items"][0]["boxes"]
        for one in (first, copied.json()["document_id"])
    ]
    assert places[0] == places[1] != []


# Pages of the text -------------------------------------------------------------------------------------------------


class NoChunks(OpenSandbox):
    """Ends the work where a document can be read already and has no passages yet."""

    async def run(self, call: Call, **more: Any) -> Outcome:  # noqa: ANN401
        if call.function.startswith("octavo.extract.chunks"):
            raise BadInput
        return await super().run(call, **more)


async def test_pages_are_there_as_soon_as_the_text_is(room: Room) -> None:
    document = await room.upload("a.pdf", book(2))
    async with room.working(NoChunks()):
        await room.until_done()
    html = await room.read(f"/documents/{document}?p=2")
    assert f'id="p-2" lang="en" dir="ltr"><a href="{path(document, 2)}"' in html
    assert "data-page-now>2<" in html


async def test_the_outline_has_what_only_the_files_own_contents_say(room: Room) -> None:
    pages = [[Words("The Slow Water", top=90, size=20, font="bold"), *paragraph(LINES, 130)], paragraph(LINES, 90)]
    bookmarks = [Bookmark(1, "The Slow Water", 1), Bookmark(2, "A plate without words", 2)]
    document = await room.add("a.pdf", Pdf(pages, bookmarks).write())
    html = await room.read(f"/documents/{document}")
    assert html.count('data-heading="h-') == 1
    assert f'<a href="/documents/{document}?p=2#p-2" data-heading="p-2"' in html
    assert "A plate without words" in html
