"""Pages in other languages than English, and programs, which always get English."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from pydantic import SecretStr

from octavo.core.errors import NotFound
from octavo.core.texts import Catalogue
from octavo.web.http import languages
from tests.api.rooms.conftest import administrator, guest, is_page, person, went_to
from tests.support.deliveries import Mailbox, mail_server
from tests.support.page_texts import OPEN, Marked, unmarked_in_page
from tests.support.passwords import PASSWORD
from tests.support.visitors import House, OpenHouse

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
            "access",
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
    r"bog|^TEXT$|Python|\d\d:\d\d$|https?:|^[\w.:/-]+[_\d-][\w.:-]*$|^(?:convert|deliver)$|MemberNumber|"
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


async def test_the_language_is_kept_with_the_person_and_programs_get_english(house: House) -> None:
    browser = await person(house, "ann@example.org")
    await browser.post("/settings/appearance", data={"language": "fr"})
    other = await guest(house)  # another browser, without the cookie
    await other.post("/api/v1/session", json={"email": "ann@example.org", "password": PASSWORD})
    assert '<html lang="fr"' in (await other.get("/library", headers={"accept-language": "de"})).text
    session = (await other.get("/api/v1/session")).json()
    assert session["language"] == "fr"
    refused = await other.get(f"/api/v1/documents/{uuid4()}", headers={"accept": "*/*"})
    assert refused.json()["title"] == NotFound().title  # the API is always in English
    changed = await other.patch("/api/v1/session", json={"language": "zh"})
    assert changed.json()["language"] == "zh"
    # The choice of the person counts more than the cookie of a browser.
    assert '<html lang="zh"' in (await browser.get("/library")).text
    assert (await other.patch("/api/v1/session", json={"language": "tlh"})).status_code == 422
    await other.patch("/api/v1/session", json={"language": None})
    assert '<html lang="fr"' in (await browser.get("/library")).text  # the cookie
    stranger = await guest(house)
    assert '<html lang="en"' in (await stranger.get("/sign-in")).text


async def test_the_administrator_and_visitors_choose_a_language(house: House) -> None:
    admin, visitor = await administrator(house), await guest(house)
    await admin.post("/settings/appearance", data={"language": "de"})
    assert '<html lang="de"' in (await (await administrator(house)).get("/library")).text
    await visitor.post("/api/v1/documents", json={"text": "The bog keeps the rain."})
    await visitor.post("/settings/appearance", data={"language": "es"})
    assert '<html lang="es"' in (await visitor.get("/library")).text
    assert await house.rows("SELECT FROM owners WHERE kind = 'anonymous' AND language IS NOT NULL") == []


async def test_mails_are_in_the_language_of_the_person_who_gets_them(open_house: OpenHouse) -> None:
    mailbox = Mailbox()
    with mail_server(mailbox) as port:
        house = await open_house(smtp_url=SecretStr(f"smtp://127.0.0.1:{port}"), public_url="https://docs.example.org")
        ada, bob = await person(house, "ada@example.org"), await person(house, "bob@example.org")
        for browser, language in ((ada, "de"), (bob, "fr")):
            await browser.patch("/api/v1/session", json={"language": language})
        for email in ("bob@example.org", "new@example.org"):  # the second one has no language, so it is that of Ada
            assert (await ada.post("/api/v1/invitations", json={"email": email})).status_code == 201
        await (await guest(house)).post("/reset-password/link", data={"email": "bob@example.org"})
    subjects = [(to, mail["subject"]) for _, to, mail in mailbox.mails]
    assert subjects == [
        (["bob@example.org"], "Invitation à Octavo"),
        (["new@example.org"], "Einladung zu Octavo"),
        (["bob@example.org"], "Nouveau mot de passe pour Octavo"),
    ]


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
