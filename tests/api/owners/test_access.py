"""Invitations, new passwords, the second factor and sessions: links work once, and codes too."""

from __future__ import annotations

import html
import re
import time
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import SecretStr

from octavo.owners import accounts
from octavo.owners.sessions import code_at
from octavo.web.rooms.account import access_pages
from tests.api.rooms.conftest import administrator, guest, heading, is_page, person, went_to, words
from tests.support.deliveries import Mailbox, mail_server
from tests.support.passwords import PASSWORD
from tests.support.visitors import House, OpenHouse, me, refused

KEY = SecretStr("k" * 32)
NEW = "a completely new password"
PROGRAM = {"accept": "*/*"}
PUBLIC = "https://docs.example.org"


def path_of(link: str) -> str:
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"


def token_of(link: str) -> str:
    return link.rpartition("=")[2]


async def invite(ada: httpx.AsyncClient, email: str, role: str = "reader") -> str:
    answer = await ada.post("/api/v1/invitations", json={"email": email, "role": role})
    assert answer.status_code == 201, answer.text
    return answer.json()["link"]


# Invitations -------------------------------------------------------------------------------------------------------


async def test_an_invited_person_creates_an_account_and_joins_once(open_house: OpenHouse) -> None:
    house = await open_house()
    ada = await person(house, "ada@example.org")
    link = await invite(ada, "Bob@example.org")
    closed = await open_house(sign_up=False)
    browser, late = await guest(closed), await guest(closed)
    page = await browser.get(path_of(link))
    is_page(page)
    assert "You are invited to join the library of ada@example.org as a reader." in words(page)
    weak = await browser.post("/invitation", data={"token": token_of(link), "password": "short"})
    assert "This password is too short." in words(weak)
    went_to(await browser.post("/invitation", data={"token": token_of(link), "password": PASSWORD}), "/library")
    seen = await me(browser)
    assert (seen["email"], seen["role"], seen["owner_id"]) == ("bob@example.org", "reader", (await me(ada))["owner_id"])
    is_page(await late.get(path_of(link)), 403)
    again = await late.post("/invitation", data={"token": token_of(link), "password": PASSWORD})
    assert heading(again) == "Link not valid"
    assert (await ada.get("/api/v1/invitations")).json()["items"] == []


async def test_a_visitor_who_accepts_an_invitation_keeps_the_documents(house: House) -> None:
    ada, visitor = await person(house, "ada@example.org"), await guest(house)
    headers = PROGRAM | {"x-upload-filename": "peat.txt"}
    added = await visitor.post("/api/v1/documents", content=b"Peat keeps rain.", headers=headers)
    data = {"token": token_of(await invite(ada, "bob@example.org")), "password": PASSWORD}
    went_to(await visitor.post("/invitation", data=data), "/library")
    (home,) = [one["owner_id"] for one in (await me(visitor))["owners"] if one["role"] == "owner"]
    documents = await house.rows("SELECT id::text, owner_id::text FROM documents")
    assert documents == [(added.json()["document_id"], home)]


async def test_a_person_with_an_account_signs_in_and_joins(house: House) -> None:
    ada, bob = await person(house, "ada@example.org"), await person(house, "bob@example.org")
    link = await invite(ada, "bob@example.org", "member")
    outside = await (await guest(house)).get(path_of(link))
    assert "An account with your email address already exists. Sign in to join." in words(outside)
    assert "/sign-in?next=%2Finvitation%3Ftoken%3D" in outside.text
    went_to(await bob.post("/invitation", data={"token": token_of(link)}), "/library")
    assert (await me(bob))["owner_id"] == (await me(ada))["owner_id"]
    second = await invite(ada, "bob@example.org")
    taken = await bob.post("/invitation", data={"token": token_of(second)})
    is_page(taken, 409)
    assert "This person is already a member." in words(taken)


async def test_invitations_expire_are_withdrawn_and_replaced(house: House) -> None:
    ada = await person(house, "ada@example.org")
    browser = await guest(house)
    first, second = await invite(ada, "bob@example.org"), await invite(ada, "bob@example.org")
    assert (await browser.get(path_of(first))).status_code == 403
    (open_one,) = (await ada.get("/api/v1/invitations")).json()["items"]
    page = words(await ada.get("/settings/account"))
    assert "bob@example.org Reader, expires" in page
    went_to(
        await ada.post(f"/settings/account/invitations/{open_one['id']}/withdraw"),
        "/settings/account?said=withdrawn#members",
    )
    assert (await browser.get(path_of(second))).status_code == 403
    third = await invite(ada, "bob@example.org")
    await house.run("UPDATE invitations SET expires_at = clock_timestamp()")
    assert (await browser.get(path_of(third))).status_code == 403
    assert (await browser.post("/invitation", data={"token": token_of(third), "password": PASSWORD})).status_code == 403
    kinds = await house.rows(
        "SELECT kind, actor_id IS NOT NULL FROM events WHERE kind LIKE 'invitation.%%' ORDER BY id"
    )
    assert kinds == [("invitation.add", True)] * 2 + [("invitation.withdraw", True), ("invitation.add", True)]


async def test_invitations_are_limited_because_they_are_mailed_to_anybody(house: House) -> None:
    ada = await person(house, "ada@example.org")
    await invite(ada, "a@example.org")
    await house.run("UPDATE allowances SET tokens = 0 WHERE key LIKE 'invitations of %%'")
    refused(await ada.post("/api/v1/invitations", json={"email": "b@example.org"}, headers=PROGRAM), 429, "RATE_LIMIT")
    page = await ada.post("/settings/account/invitations", data={"email": "b@example.org"})
    is_page(page, 429)
    assert "Too many invitations. Try again in" in words(page)
    assert len(await house.rows("SELECT FROM invitations")) == 1
    machine = await administrator(house)
    await invite(machine, "c@example.org")


async def test_the_page_shows_the_link_once_and_mails_it(open_house: OpenHouse) -> None:
    mailbox = Mailbox()
    with mail_server(mailbox) as port:
        settings = {"smtp_url": SecretStr(f"smtp://127.0.0.1:{port}"), "public_url": PUBLIC}
        house = await open_house(**settings)
        ada = await person(house, "ada@example.org")
        data = {"email": "bob@example.org", "role": "member"}
        page = await ada.post("/settings/account/invitations", data=data)
        is_page(page, 201)
        assert "The link was sent by email." in words(page)
        (link,) = re.findall(r'value="(https://docs.example.org/invitation[^"]+)"', page.text)
        ((_, recipients, mail),) = mailbox.mails
        assert recipients == ["bob@example.org"]
        assert html.unescape(link) in mail.get_content()
        assert link not in (await ada.get("/settings/account")).text
        wrong = await ada.post("/settings/account/invitations", data={"email": "bob"})
        is_page(wrong, 422)


# New passwords -----------------------------------------------------------------------------------------------------


async def test_a_forgotten_password_is_replaced_with_a_link_by_mail(open_house: OpenHouse) -> None:
    mailbox = Mailbox()
    with mail_server(mailbox) as port:
        house = await open_house(smtp_url=SecretStr(f"smtp://127.0.0.1:{port}"), public_url=PUBLIC)
        ada, browser = await person(house, "ada@example.org"), await guest(house)
        known = await browser.post("/reset-password/link", data={"email": "Ada@example.org"})
        unknown = await browser.post("/reset-password/link", data={"email": "eve@example.org"})
        assert (known.status_code, known.text) == (unknown.status_code, unknown.text)
        ((_, recipients, mail),) = mailbox.mails
        assert recipients == ["ada@example.org"]
        (link,) = re.findall(r"https://\S+", mail.get_content())
        assert link.startswith(f"{PUBLIC}/reset-password?token=")
        is_page(await browser.get(path_of(link)))
        data = {"token": token_of(link), "password": NEW}
        weak = await browser.post("/reset-password", data={**data, "password": "short"})
        is_page(weak, 422)
        went_to(await browser.post("/reset-password", data=data), "/")
        assert (await me(browser))["email"] == "ada@example.org"
        refused(await ada.get("/api/v1/members", headers={"accept": "*/*"}), 401, "UNAUTHENTICATED")
        assert heading(await browser.post("/reset-password", data=data)) == "Link not valid"
        old = await ada.post("/api/v1/session", json={"email": "ada@example.org", "password": PASSWORD})
        refused(old, 401, "WRONG_CREDENTIALS")
        new = await ada.post("/api/v1/session", json={"email": "ada@example.org", "password": NEW})
        assert new.status_code == 200


async def test_asking_for_links_is_limited_and_needs_a_mail_server(house: House) -> None:
    browser = await guest(house)
    assert "This server does not send emails." in words(await browser.get("/reset-password"))
    answers = [await browser.post("/reset-password/link", data={"email": "a@example.org"}) for _ in range(11)]
    assert [one.status_code for one in answers] == [200] * 10 + [429]
    assert await house.rows("SELECT FROM account_links") == []


async def test_no_password_is_hashed_for_a_wrong_token(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = list[str]()

    async def hash_password(password: str) -> str:
        hashed.append(password)
        return await accounts.hash_password(password)

    monkeypatch.setattr(access_pages, "hash_password", hash_password)
    browser = await guest(house)
    is_page(await browser.post("/reset-password", data={"token": "wrong", "password": NEW}), 403)
    assert hashed == []


async def test_the_host_header_never_decides_where_a_mailed_link_leads(open_house: OpenHouse) -> None:
    mailbox = Mailbox()
    with mail_server(mailbox) as port:
        anywhere = {"smtp_url": SecretStr(f"smtp://127.0.0.1:{port}"), "host": "0.0.0.0", "sign_up": True}
        house = await open_house(**anywhere)
        await house.person("ada@example.org")
        eve = await guest(house)
        data, headers = {"email": "ada@example.org"}, {"host": "203.0.113.9"}
        asked = await eve.post("/reset-password/link", data=data, headers=headers)
        assert "This server does not send emails." in words(asked)
        assert (mailbox.mails, await house.rows("SELECT FROM account_links")) == ([], [])
        named = await guest(await open_house(**anywhere, public_url=PUBLIC))
        is_page(await named.post("/reset-password/link", data=data, headers=headers))
        ((_, _, mail),) = mailbox.mails
        assert PUBLIC in mail.get_content()
        assert "203.0.113.9" not in mail.get_content()


async def test_an_administrator_makes_a_link(house: House) -> None:
    await house.person("ada@example.org")
    machine, browser = await administrator(house), await guest(house)
    links = [
        (await machine.post("/api/v1/admin/reset-links", json={"email": "ada@example.org"})).json()["link"]
        for _ in range(2)
    ]
    assert (await browser.get(path_of(links[0]))).status_code == 403
    await house.run("UPDATE account_links SET expires_at = clock_timestamp()")
    assert (
        await browser.post("/reset-password", data={"token": token_of(links[1]), "password": NEW})
    ).status_code == 403
    unknown = await machine.post("/api/v1/admin/reset-links", json={"email": "eve@example.org"})
    refused(unknown, 404, "NOT_FOUND")


async def test_an_administrator_sets_the_language_of_a_person(house: House) -> None:
    ada = await house.person("ada@example.org")
    machine = await administrator(house)
    page = {"accept": "text/html"}
    for language, shown in (("fr", "fr"), ("de", "de"), (None, "en")):
        body = {"email": "Ada@example.org", "language": language}
        assert (await machine.patch("/api/v1/admin/users", json=body)).status_code == 204
        assert f'<html lang="{shown}"' in (await ada.get("/library", headers=page)).text
    refused(await ada.patch("/api/v1/admin/users", json=body), 403, "FORBIDDEN")
    unknown = await machine.patch("/api/v1/admin/users", json={**body, "email": "eve@example.org"})
    refused(unknown, 404, "NOT_FOUND")


# Second factor -----------------------------------------------------------------------------------------------------


def code_now(secret: str) -> str:
    """It is valid for at least 30 seconds."""
    return code_at(secret, int(time.time()) // 30)


async def next_code(house: House, secret: str) -> str:
    """As if the last code had been used long ago."""
    await house.run("UPDATE second_factors SET last_step = 0")
    return code_now(secret)


async def set_up(ada: httpx.AsyncClient) -> tuple[str, list[str]]:
    """Returns the secret and the recovery codes."""
    assert "Wrong password." in words(await ada.post("/settings/account/second-factor", data={"password": "wrong"}))
    begun = await ada.post("/settings/account/second-factor", data={"password": PASSWORD})
    went_to(begun, "/settings/account/second-factor")
    page = await ada.get("/settings/account/second-factor")
    is_page(page)
    (secret,) = re.findall(r'id="totp-key" value="([A-Z2-7]+)"', page.text)
    assert "<svg" in page.text
    wrong = await ada.post("/settings/account/second-factor/confirm", data={"code": "000000x"})
    is_page(wrong, 401)
    done = await ada.post("/settings/account/second-factor/confirm", data={"code": code_now(secret)})
    is_page(done)
    codes = re.findall(r"<li>([a-z2-7-]{19})</li>", done.text)
    assert len(codes) == 10
    return secret, codes


async def test_a_password_alone_no_longer_signs_in(open_house: OpenHouse) -> None:
    house = await open_house(secret_key=KEY)
    ada = await person(house, "ada@example.org")
    secret, recovery = await set_up(ada)
    assert (await house.rows("SELECT secret FROM second_factors"))[0][0] != secret
    browser = await guest(house)
    form = {"email": "ada@example.org", "password": PASSWORD, "back": "/library"}
    page = await browser.post("/sign-in", data=form)
    assert (heading(page), "octavo_session" in browser.cookies) == ("Enter your code", False)
    (token,) = re.findall(r'name="token" value="([^"]+)"', page.text)
    send = {"token": token, "back": "/library"}
    code = await next_code(house, secret)
    went_to(await browser.post("/sign-in/code", data={**send, "code": code}), "/library")
    assert (await me(browser))["email"] == "ada@example.org"
    is_page(await (await guest(house)).post("/sign-in/code", data={**send, "code": code}), 403)
    program = await house.browser()
    credentials = {"email": "ada@example.org", "password": PASSWORD}
    refused(await program.post("/api/v1/session", json=credentials), 401, "SECOND_FACTOR_REQUIRED")
    refused(await program.post("/api/v1/session", json={**credentials, "code": code}), 401, "WRONG_CODE")
    by_recovery = await program.post("/api/v1/session", json={**credentials, "code": recovery[0].upper()})
    assert by_recovery.status_code == 200
    again = await program.post("/api/v1/session", json={**credentials, "code": recovery[0]})
    refused(again, 401, "WRONG_CODE")
    assert "Recovery codes left: 9." in words(await ada.get("/settings/account"))


async def test_guessing_codes_is_slowed_down(open_house: OpenHouse) -> None:
    house = await open_house(secret_key=KEY)
    secret, _ = await set_up(await person(house, "ada@example.org"))
    browser = await house.browser()
    credentials = {"email": "ada@example.org", "password": PASSWORD}
    for _ in range(10):
        refused(await browser.post("/api/v1/session", json={**credentials, "code": "abcdef"}), 401, "WRONG_CODE")
    right = await browser.post("/api/v1/session", json={**credentials, "code": await next_code(house, secret)})
    refused(right, 429, "RATE_LIMIT")


async def test_the_second_factor_is_removed_with_a_code_or_by_an_administrator(open_house: OpenHouse) -> None:
    house = await open_house(secret_key=KEY)
    ada = await person(house, "ada@example.org")
    _, recovery = await set_up(ada)
    wrong = await ada.post("/settings/account/second-factor/disable", data={"code": "not-a-code"})
    is_page(wrong, 401)
    off = await ada.post("/settings/account/second-factor/disable", data={"code": recovery[3]})
    went_to(off, "/settings/account?said=second_factor_off#second-factor")
    secret, _ = await set_up(ada)
    machine, browser = await administrator(house), await guest(house)
    body = {"email": "ada@example.org"}
    link = (await machine.post("/api/v1/admin/reset-links", json=body)).json()["link"]
    # Setting a password does not replace the code.
    went_to(await browser.post("/reset-password", data={"token": token_of(link), "password": NEW}), "/sign-in")
    assert "octavo_session" not in browser.cookies
    cleared = {**body, "clear_second_factor": True}
    link = (await machine.post("/api/v1/admin/reset-links", json=cleared)).json()["link"]
    went_to(await browser.post("/reset-password", data={"token": token_of(link), "password": NEW}), "/")
    assert (await me(browser))["email"] == "ada@example.org"
    assert secret not in (await browser.get("/settings/account/second-factor")).text


async def test_without_a_secret_of_the_installation_there_is_no_second_factor(house: House) -> None:
    ada = await person(house, "ada@example.org")
    answer = await ada.post("/settings/account/second-factor", data={"password": PASSWORD})
    is_page(answer, 409)
    assert "Set the same OCTAVO_SECRET_KEY" in words(answer)


# Sessions ----------------------------------------------------------------------------------------------------------


async def test_a_person_lists_and_ends_their_own_sessions(house: House) -> None:
    ada, bob = await person(house, "ada@example.org"), await person(house, "bob@example.org")
    phone = await guest(house)
    phone.headers["user-agent"] = "Mozilla/5.0 (Android 16; Mobile) Firefox/145.0"
    await phone.post("/api/v1/session", json={"email": "ada@example.org", "password": PASSWORD})
    first, second = (await ada.get("/api/v1/sessions")).json()["items"]
    assert (first["current"], second["current"], second["browser"]) == (True, False, phone.headers["user-agent"])
    assert "Firefox on Android" in words(await ada.get("/settings/account"))
    refused(await bob.delete(f"/api/v1/sessions/{second['id']}", headers={"accept": "*/*"}), 404, "NOT_FOUND")
    went_to(
        await ada.post(f"/settings/account/sessions/{second['id']}/revoke"),
        "/settings/account?said=session#sessions",
    )
    refused(await phone.get("/api/v1/members", headers={"accept": "*/*"}), 401, "UNAUTHENTICATED")
    assert len((await ada.get("/api/v1/sessions")).json()["items"]) == 1
