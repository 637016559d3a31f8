"""Figures, regions and doubts about pages: from extraction to the API, the reader, cards and exports."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from PIL import Image

from octavo.extract.extracted import Box, Extracted, Figure, Page, Quality, Region, RegionKind, SourceType
from octavo.pipeline import process_document
from tests.integration.web.reader.conftest import Room
from tests.support.pdf import Pdf, paragraph
from tests.support.visitors import refused

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINES = ["A raised bog receives nothing but rain, and what it", "does with that water decides whether it grows."]
TEXT = "Before it.\n\n![Two gauges](figures/1.png)\n\n![](figures/2.png)\n\n![Elsewhere](figures/9.png)\n\nBehind it."
REASON = "Some letters could not be read."
BOX = Box(60.0, 110.0, 360.0, 160.0)


def extracted(figures: tuple[Figure, ...] | None = None, unsure: str | None = REASON) -> Extracted:
    known = (
        Figure(1, "chart", 12, 1, BOX, None, "Figure 1: Two gauges", "Two gauges"),
        Figure(2, "photo", 43, 1, BOX, None, 'The <quay> & "slip"'),
    )
    return Extracted(
        SourceType.PDF,
        TEXT,
        8,
        Quality.PARTIAL if unsure else Quality.FULL,
        pages=(Page(1, "1", 0, len(TEXT), 595.0, 842.0, unsure),),
        regions=(Region(1, RegionKind.FIGURE, BOX, 1, 0.9, "Two gauges"), Region(1, RegionKind.BODY, BOX, 0, 1.0, "x")),
        figures=known if figures is None else figures,
    )


async def add(room: Room, patch: pytest.MonkeyPatch, made: Extracted, name: str = "a.pdf") -> str:
    """Add a PDF whose text, figures and regions are these."""

    async def read_pdf(run: object, files: object, path: Path) -> Extracted:
        del run, files, path
        return made

    with patch.context() as patched:
        patched.setattr(process_document, "read_pdf", read_pdf)
        return await room.add(name, Pdf([paragraph([f"{uuid4()}", *LINES], 120)]).write())


def opened(answer: httpx.Response) -> Image.Image:
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png"), answer.text
    return Image.open(BytesIO(answer.content))


def path(document: str, rest: str) -> str:
    return f"/api/v1/documents/{document}/{rest}"


async def test_figures_are_listed_with_captions_and_paths(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    document = await add(room, monkeypatch, extracted())
    first, second = (await room.owner.get(path(document, "figures"))).json()["items"]
    assert (first["number"], first["kind"], first["page"], first["box"]) == (1, "chart", 1, list(BOX))
    assert (first["caption"], first["alternative"]) == ("Figure 1: Two gauges", "Two gauges")
    assert second["url"] == path(document, "figures/2.png")
    page = (await room.owner.get(path(document, "figures?limit=1"))).json()
    assert (len(page["items"]), page["next_cursor"]) == (1, "1")


async def test_a_figure_is_the_area_of_its_page_and_is_stored_once(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    document = await add(room, monkeypatch, extracted())
    answer = await room.owner.get(path(document, "figures/1.png"))
    picture = opened(answer)
    expected = BOX.right - BOX.left + 8, BOX.bottom - BOX.top + 8
    assert [side * 72 / 200 for side in picture.size] == pytest.approx(expected, abs=0.5)
    assert min(picture.convert("L").tobytes()) < 100  # it shows the words
    known = {"if-none-match": answer.headers["etag"]}
    assert (await room.owner.get(path(document, "figures/1.png"), headers=known)).status_code == 304
    opened(await room.owner.get(path(document, "figures/2.png")))
    keys = await room.house.rows("SELECT key FROM artifacts WHERE document_id = %s AND kind = 'figure'", document)
    assert len(keys) == 2
    assert len(set(keys)) == 1, "two figures that look the same share one file"
    assert opened(await room.owner.get(path(document, "figures/1.png?width=120"))).width == 120


async def test_a_stranger_finds_no_figure_page_or_region(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    document = await add(room, monkeypatch, extracted())
    stranger = await room.house.person(f"{uuid4()}@example.org")
    for rest in ("figures", "figures/1.png", "regions?page=1", "pages"):
        refused(await stranger.get(path(document, rest)), 404, "NOT_FOUND")
        assert (await room.owner.get(path(document, rest))).status_code == 200, rest
    refused(await room.owner.get(path(document, "figures/3.png")), 404, "NOT_FOUND")


async def test_regions_of_a_page_are_in_reading_order(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    document = await add(room, monkeypatch, extracted())
    items = (await room.owner.get(path(document, "regions?page=1"))).json()["items"]
    assert [(one["order"], one["kind"], one["page"]) for one in items] == [(0, "body", 1), (1, "figure", 1)]
    assert items[1] == {
        "page": 1,
        "kind": "figure",
        "box": list(BOX),
        "order": 1,
        "confidence": 0.9,
        "text": "Two gauges",
    }
    assert (await room.owner.get(path(document, "regions?page=2"))).json()["items"] == []
    refused(await room.owner.get(path(document, "regions")), 422, "VALIDATION")


async def test_a_figure_outside_its_page_cannot_be_drawn(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    far = Figure(1, "figure", 0, 1, Box(5000.0, 5000.0, 6000.0, 6000.0))
    document = await add(room, monkeypatch, extracted((far,)))
    answer = await room.owner.get(path(document, "figures/1.png"))
    refused(answer, 422, "PAGE_NOT_DRAWN")


async def test_the_reader_shows_known_figures_and_no_others(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    document = await add(room, monkeypatch, extracted())
    page = await room.read(f"/documents/{document}")
    assert f'<img src="{path(document, "figures/1.png")}?width=800" alt="Two gauges"' in page
    assert 'alt="The &lt;quay&gt; &amp; &quot;slip&quot;"' in page
    assert "figures/9.png?width" not in page
    assert '<span class="picture">Elsewhere</span>' in page


async def test_a_page_that_is_unsure_shows_its_reason_and_its_picture_first(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = await add(room, monkeypatch, extracted())
    page = await room.read(f"/documents/{document}")
    said = page.index(f"The text of this page may be wrong: {REASON}")
    assert said < page.index(f'src="{path(document, "pages/1.png?width=800")}"', said) < page.index("Behind it.")
    (one,) = (await room.owner.get(path(document, "pages"))).json()["items"]
    assert (one["number"], one["unsure"]) == (1, REASON)
    about = (await room.owner.get(f"/api/v1/documents/{document}")).json()
    assert (about["quality"], about["quality_reason"]) == ("partial", f"Page 1: {REASON}")
    assert f"Page 1: {REASON}" in await room.read("/library")


async def test_a_sure_page_has_no_warning(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    document = await add(room, monkeypatch, extracted(unsure=None))
    assert "may be wrong" not in await room.read(f"/documents/{document}")
    about = (await room.owner.get(f"/api/v1/documents/{document}")).json()
    assert about["quality_reason"] is None


async def test_the_bundle_contains_the_pictures_that_its_text_refers_to(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = await add(room, monkeypatch, extracted())
    answer = await room.owner.get(path(document, "export?format=zip"))
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(BytesIO(answer.content)) as bundle:
        assert bundle.namelist() == ["document.md", "figures/1.png", "figures/2.png"]
        assert bundle.read("document.md").decode() == TEXT
        assert Image.open(BytesIO(bundle.read("figures/1.png"))).format == "PNG"
    exported = (await room.owner.get(path(document, "export"))).json()
    assert [one["number"] for one in exported["figures"]] == [1, 2]


async def test_a_text_that_only_looks_like_it_has_figures_shows_none(room: Room) -> None:
    document = await room.add("a.md", f'# Words\n\n{TEXT}\n\n<span class="figure">1 x</span>')
    page = await room.read(f"/documents/{document}")
    assert "figures/1.png?width" not in page
    refused(await room.owner.get(path(document, "figures/1.png")), 404, "NOT_FOUND")


async def test_new_processing_replaces_figures_and_their_files(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    document = await add(room, monkeypatch, extracted())
    opened(await room.owner.get(path(document, "figures/1.png")))
    async with room.working():
        await room.owner.post(path(document, "retry"), json={})
        await room.until_done()
    assert (await room.owner.get(path(document, "figures"))).json()["items"] == []
    assert not await room.house.rows("SELECT FROM artifacts WHERE document_id = %s AND kind = 'figure'", document)
    assert not await room.house.rows("SELECT FROM objects WHERE starts_with(key, %s)", f"figures/{document}")
