"""Pages in other languages than English, and programs, which always get English."""

from __future__ import annotations

import re

import pytest

from octavo.core.texts import Catalogue
from octavo.web.http import languages
from tests.api.rooms.conftest import administrator, guest, is_page, person, went_to
from tests.support.page_texts import OPEN, Marked, unmarked_in_page
from tests.support.visitors import House

MADE_UP = "xx"
PAGES = [
    "/library",
    "/library?view=cards",
    "/library?q=nothing",
    "/trash",
    "/uploads",
    "/search",
    "/search?q=bog",
    "/ask",
    "/connections",
    "/highlights",
    "/analyses",
    "/analyses/new",
    "/conversions",
    "/notifications",
    "/share",
    "/share?url=https://example.org/ferries",
    "/nowhere",
    "/sign-out",
    *(
        f"/settings/{name}"
        for name in (
            "account",
            "account/second-factor",
            "appearance",
            "audit",
            "budgets",
            "export",
            "fields",
            "keys",
            "mappings",
            "models",
            "prompts",
            "retention",
            "rules",
            "shares",
            "sources",
            "users",
            "webhooks",
            "weights",
        )
    ),
]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> str:
    """A language in which every text is between brackets."""
    known = languages.catalogue_of
    marked = Catalogue(MADE_UP, "de", "rtl", Marked())
    monkeypatch.setattr(languages, "LANGUAGES", {**languages.LANGUAGES, MADE_UP: "Made up"})

    def catalogue_of(name: str) -> Catalogue:
        return marked if name == MADE_UP else known(name)

    monkeypatch.setattr(languages, "catalogue_of", catalogue_of)
    return MADE_UP


async def test_every_text_of_the_pages_can_be_translated(house: House, made_up: str) -> None:
    browser = await administrator(house)
    browser.headers["accept-language"] = made_up
    added = await browser.post("/api/v1/documents", json={"text": "# The bog\n\nPeat keeps the rain of the winter."})
    document = f"/documents/{added.json()['document_id']}"
    about = [document, f"{document}?panel=highlights", f"{document}/edit", f"{document}/history", f"{document}/link"]
    unmarked: dict[str, list[str]] = {}
    for path in [*PAGES, *about, "/operations", "/operations/jobs"]:
        answer = await browser.get(path)
        assert f'<html lang="{made_up}" dir="rtl"' in answer.text, path
        if found := [text for text in unmarked_in_page(answer.text, made_up) if not CONTENT.search(text)]:
            unmarked[path] = found
    assert not unmarked


# The document, built-in prompts and mappings, dates, addresses, and names of models, jobs and programs.
CONTENT = re.compile(
    r"bog|^TEXT$|Python|\d\d:\d\d$|https?:|^[\w.:-]+[_\d-][\w.:-]*$|^(?:convert|deliver)$|MemberNumber|"
    r"Invoices of|Receipts of|Summar|People and organisations|Which |Dates and|^Money$|Obligations|Who has"
)


async def test_texts_of_pages_without_an_account_can_be_translated(house: House, made_up: str) -> None:
    browser = await guest(house)
    browser.headers["accept-language"] = made_up
    for path in (
        "/sign-in",
        "/sign-up",
        "/reset-password",
        "/sign-in?token=guess",
        "/invitation?token=guess",
        "/library",
    ):
        answer = await browser.get(path, follow_redirects=True)
        assert OPEN in answer.text
        assert not unmarked_in_page(answer.text, made_up), path


async def test_a_page_is_in_the_language_of_the_browser_until_a_person_chooses_one(house: House) -> None:
    browser = await person(house, "ann@example.org")
    page = await browser.get("/library", headers={"accept-language": "de-CH,de;q=0.9"})
    is_page(page)
    assert '<html lang="de"' in page.text
    assert re.search(r'<script defer src="/static/[0-9a-f]+/locale/de\.js">', page.text)
    assert {"accept-language", "cookie"} <= {name.strip() for name in page.headers["vary"].lower().split(",")}
    here = "/settings/appearance"
    went_to(await browser.post(here, data={"language": "fr"}), f"{here}?said=appearance")
    assert '<html lang="fr"' in (await browser.get("/library", headers={"accept-language": "de"})).text
    went_to(await browser.post(here, data={"language": ""}), f"{here}?said=appearance")
    page = await browser.get("/library", headers={"accept-language": "nl"})
    assert '<html lang="en"' in page.text
    assert "/locale/" not in page.text  # English loads nothing more


async def test_somebody_who_is_not_signed_in_can_choose_a_language(house: House) -> None:
    browser = await guest(house)
    went_to(await browser.post("/language", data={"language": "de", "back": "/sign-in"}), "/sign-in")
    assert ">Anmelden<" in (await browser.get("/sign-in")).text
    went_to(await browser.post("/language", data={"language": "tlh", "back": "https://elsewhere.example"}), "/")
    assert ">Sign in<" in (await browser.get("/sign-in")).text


async def test_programs_get_english(house: House) -> None:
    browser = await person(house, "ann@example.org")
    browser.headers["accept-language"] = "de"
    answer = await browser.get("/api/v1/documents/6f0f7a3e-3b7a-4a52-8f0b-6a1f5b0c0a11")
    assert answer.json()["title"] == "Not found, or you do not have access to it."
    page = await browser.get("/documents/6f0f7a3e-3b7a-4a52-8f0b-6a1f5b0c0a11")
    assert "Nicht gefunden, oder Sie haben keinen Zugriff darauf." in page.text
    assert '<html lang="en"' in (await browser.get("/api/docs")).text
