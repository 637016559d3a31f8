"""Pages as browsers ask for them, on the real application and a fresh database."""

from __future__ import annotations

import html
import re

import httpx

from octavo.owners import make_sign_in_link
from tests.support.visitors import House

AS_PAGE = {"accept": "text/html,application/xhtml+xml"}


async def guest(house: House) -> httpx.AsyncClient:
    """Somebody with a browser who was never here."""
    browser = await house.browser()
    browser.headers.update(AS_PAGE)
    return browser


async def person(house: House, email: str) -> httpx.AsyncClient:
    browser = await house.person(email)
    browser.headers.update(AS_PAGE)
    return browser


async def administrator(house: House) -> httpx.AsyncClient:
    browser = await guest(house)
    await browser.post("/sign-in", data={"token": await make_sign_in_link(house.database)})
    return browser


def heading(answer: httpx.Response) -> str:
    found: list[str] = re.findall(r"<h1[^>]*>(.*?)</h1>", answer.text, re.DOTALL)
    assert len(found) == 1, answer.text
    return html.unescape(re.sub(r"<[^>]+>", "", found[0])).strip()


def words(answer: httpx.Response) -> str:
    """What is read on a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


def went_to(answer: httpx.Response, address: str) -> None:
    assert (answer.status_code, answer.headers.get("location")) == (303, address), answer.text


def is_page(answer: httpx.Response, status: int = 200) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-store"
    assert " style=" not in answer.text
    assert "<script>" not in answer.text
