"""The way out, with real sockets: it reaches what it may, for as long as it may, and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import httpcore
import pytest

from octavo.core.errors import NetworkFailed, TimedOut, TooLarge
from octavo.fetch import (
    AddressRefused,
    BadUrl,
    CertificateRefused,
    FetchLimits,
    GuardedClient,
    NameUnknown,
    TooManyRedirects,
)
from octavo.fetch.client import GuardedBackend
from tests.support.certificates import server_context, trusting_context
from tests.support.sites import Answer, Asked, Canary, Site, canary, page, redirect, running_site

LIMITS = FetchLimits(bytes=100_000, seconds=10)


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as site:
        yield site


@pytest.fixture
def inner() -> Iterator[Canary]:
    with canary() as bird:
        yield bird


@pytest.fixture
async def client(site: Site) -> AsyncIterator[GuardedClient]:
    async with GuardedClient(frozenset({site.place})) as client:
        yield client


class Names:
    """Answers for names, one after the other; the last answer stays."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self._answers = answers
        self.asked = Counter[str]()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        del port
        name = host.partition(".")[0]
        self.asked[host] += 1
        found = self._answers.get(name, [[host]])
        return found[min(self.asked[host], len(found)) - 1]


class Wires(httpcore.AsyncNetworkBackend):
    """Where connections would go to, without making any."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    async def connect_tcp(self, host: str, *_: object, **__: object) -> httpcore.AsyncNetworkStream:
        self.tried.append(host)
        raise httpcore.ConnectError("nobody is there")


async def test_a_page_comes_with_its_status_and_headers(site: Site, client: GuardedClient) -> None:
    site.routes["/a"] = page("<p>Hello.</p>")
    got = await client.get(f"{site.url}/a?b=c#d", LIMITS)
    assert (got.status, got.body, got.content_type) == (200, b"<p>Hello.</p>", "text/html; charset=utf-8")
    assert got.url == f"{site.url}/a?b=c"
    assert got.headers["content-length"] == "13"
    (asked,) = site.asked
    assert (asked.method, asked.query) == ("GET", "b=c")
    assert asked.headers["user-agent"].startswith("Octavo/")
    assert asked.headers["host"] == site.place


@pytest.mark.parametrize("status", [304, 400, 403, 404, 429, 500, 503], ids=str)
async def test_any_status_is_an_answer(site: Site, client: GuardedClient, status: int) -> None:
    site.routes["/a"] = Answer(status, headers={"Retry-After": "7"})
    got = await client.get(f"{site.url}/a", LIMITS)
    assert (got.status, got.headers["retry-after"]) == (status, "7")


async def test_redirects_are_followed_without_cookies(site: Site, client: GuardedClient) -> None:
    site.routes["/a"] = Answer(301, headers={"Location": "b?x=1", "Set-Cookie": "secret=1"})
    site.routes["/b"] = redirect(f"{site.url}/c", 307)
    site.routes["/c"] = page("<p>Here.</p>")
    got = await client.get(f"{site.url}/a", LIMITS)
    assert (got.url, got.body) == (f"{site.url}/c", b"<p>Here.</p>")
    assert [(one.path, one.query) for one in site.asked] == [("/a", ""), ("/b", "x=1"), ("/c", "")]
    assert not any("cookie" in one.headers for one in site.asked)


async def test_secrets_stay_with_the_host_that_they_were_meant_for(site: Site) -> None:
    with running_site() as other:
        site.routes["/a"] = redirect("/b")
        site.routes["/b"] = redirect(f"{other.url}/c")
        other.routes["/c"] = page("x")
        sent = {"Authorization": "Bearer secret", "Cookie": "a=b", "X-Token": "t", "Accept": "text/html"}
        async with GuardedClient(frozenset({site.place, other.place})) as client:
            await client.get(f"{site.url}/a", LIMITS, sent)
    assert all(one.headers["authorization"] == "Bearer secret" for one in site.asked)
    (asked,) = other.asked
    assert not {"authorization", "cookie", "x-token"} & asked.headers.keys()
    assert asked.headers["accept"] == "text/html"


async def test_a_circle_of_redirects_ends(site: Site, client: GuardedClient) -> None:
    site.routes["/a"] = redirect("/a")
    with pytest.raises(TooManyRedirects):
        await client.get(f"{site.url}/a", FetchLimits(1000, 10, redirects=3))
    assert len(site.asked) == 4


async def test_a_posted_body_is_never_sent_to_a_redirect_target(
    site: Site, client: GuardedClient, inner: Canary
) -> None:
    site.routes["/a"] = redirect(f"http://127.0.0.1:{inner.port}/", 307)
    got = await client.post(f"{site.url}/a", b"{}", {"Content-Type": "application/json"}, LIMITS)
    assert got.status == 307
    (asked,) = site.asked
    assert (asked.method, asked.body, asked.headers["content-type"]) == ("POST", b"{}", "application/json")
    assert inner.visits() == 0


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f.1:{port}/",
        "http://127.1:{port}/",
        "http://0.0.0.0:{port}/",
        "http://[::1]:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "//127.0.0.1:{port}/",
        "http://inside.example:{port}/",
        "http://half.example:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1/",
    ],
    ids=str,
)
async def test_no_redirect_leads_inside(site: Site, inner: Canary, to: str) -> None:
    names = Names(
        inside=[["127.0.0.1"]],
        half=[["93.184.216.34", "127.0.0.1"]],
        localhost=[["::1", "127.0.0.1"]],
        **{"2130706433": [["127.0.0.1"]], "0x7f": [["127.0.0.1"]]},
    )
    site.routes["/a"] = redirect(to.format(port=inner.port))
    async with GuardedClient(frozenset({site.place}), resolve=names) as client:
        with pytest.raises(AddressRefused):
            await client.get(f"{site.url}/a", LIMITS)
    assert len(site.asked) == 1
    assert inner.visits() == 0


@pytest.mark.parametrize("to", ["file:///etc/passwd", "gopher://x/", "http://a:b@example.org/", "http://[x/"], ids=str)
async def test_no_redirect_leads_out_of_the_web(site: Site, client: GuardedClient, to: str) -> None:
    site.routes["/a"] = redirect(to)
    with pytest.raises(BadUrl):
        await client.get(f"{site.url}/a", LIMITS)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0.0.0.0", "2130706433"], ids=str)
async def test_the_systems_own_names_lead_nowhere_inside(inner: Canary, host: str) -> None:
    async with GuardedClient() as client:
        with pytest.raises(AddressRefused):
            await client.get(f"http://{host}:{inner.port}/", LIMITS)
        with pytest.raises(AddressRefused):
            await client.post(f"http://{host}:{inner.port}/", b"x", {}, LIMITS)
    assert inner.visits() == 0


async def test_a_name_that_changes_its_mind_is_asked_once_and_taken_by_its_word() -> None:
    """First a public address, so that it passes; then an inner one, to be connected to. Only the first is ever used."""
    names = Names(rebinding=[["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"], ["127.0.0.1"]])
    wires = Wires()
    backend = GuardedBackend(frozenset(), names, wires)
    with pytest.raises(httpcore.ConnectError):
        await backend.connect_tcp("rebinding.example", 80)
    assert wires.tried == ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"]
    assert names.asked["rebinding.example"] == 1
    with pytest.raises(AddressRefused):
        await backend.connect_tcp("rebinding.example", 80)
    assert len(wires.tried) == 2


async def test_an_allowed_name_is_allowed_on_its_port_only(site: Site, inner: Canary) -> None:
    names = Names(wiki=[["127.0.0.1"]])
    site.routes["/"] = page("The wiki.")
    async with GuardedClient(frozenset({f"wiki.example:{site.port}"}), resolve=names) as client:
        assert (await client.get(f"http://wiki.example:{site.port}/", LIMITS)).body == b"The wiki."
        with pytest.raises(AddressRefused):
            await client.get(f"http://wiki.example:{inner.port}/", LIMITS)
    assert inner.visits() == 0


async def test_proxies_of_the_environment_are_not_asked(
    site: Site, inner: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{inner.port}")
    site.routes["/"] = page("Straight.")
    async with GuardedClient(frozenset({site.place})) as client:
        assert (await client.get(site.url, LIMITS)).body == b"Straight."
    assert inner.visits() == 0


# How much and how long --------------------------------------------------------------------------------------------


async def test_a_body_that_says_it_is_too_large_is_not_read(site: Site, client: GuardedClient) -> None:
    site.routes["/a"] = Answer(headers={"Content-Length": "100001"}, pieces=[])
    with pytest.raises(TooLarge):
        await client.get(f"{site.url}/a", LIMITS)


async def test_a_body_that_does_not_say_so_is_cut_off(site: Site, client: GuardedClient) -> None:
    site.routes["/a"] = Answer(pieces=site.drip(b"x" * 20_000, 0))
    with pytest.raises(TooLarge):
        await client.get(f"{site.url}/a", LIMITS)


async def test_a_bomb_does_not_go_off(site: Site, client: GuardedClient) -> None:
    site.routes["/a"] = Answer(body=gzip.compress(bytes(50 << 20)), headers={"Content-Encoding": "gzip"})
    with pytest.raises(TooLarge):
        await client.get(f"{site.url}/a", LIMITS)
    site.routes["/a"] = Answer(body=gzip.compress(b"fine" * 99), headers={"Content-Encoding": "gzip"})
    assert (await client.get(f"{site.url}/a", LIMITS)).body == b"fine" * 99


@pytest.mark.parametrize("part", ["body", "redirects", "headers"])
async def test_the_time_is_for_everything(site: Site, client: GuardedClient, part: str) -> None:
    def wait(asked: Asked) -> Answer:
        del asked
        site.stopping.wait(0.4 if part == "redirects" else 60)
        return redirect("/headers" if part == "headers" else "/redirects")

    site.routes["/body"] = Answer(pieces=site.drip(b"x"))
    site.routes["/redirects"] = site.routes["/headers"] = wait
    began = time.monotonic()
    with pytest.raises(TimedOut):
        await client.get(f"{site.url}/{part}", FetchLimits(100_000, 1, redirects=50))
    assert time.monotonic() - began < 10


# When nobody is there ----------------------------------------------------------------------------------------------


async def test_nobody_there_is_a_failure_of_the_network(inner: Canary) -> None:
    place = f"127.0.0.1:{inner.port}"
    inner.close()
    async with GuardedClient(frozenset({place})) as client:
        with pytest.raises(NetworkFailed) as failed:
            await client.get(f"http://{place}/", LIMITS)
    assert type(failed.value) is NetworkFailed


async def test_an_unknown_name_is_reported_as_unknown() -> None:
    async with GuardedClient() as client:
        with pytest.raises(NetworkFailed) as failed:
            await client.get("http://no-such-name.invalid/", LIMITS)
    # Where there is no network at all nobody can say that there is no such name.
    assert type(failed.value) in {NameUnknown, NetworkFailed}


async def test_a_server_that_does_not_speak_http_is_a_failure_of_the_network(site: Site, client: GuardedClient) -> None:
    site.routes["/a"] = Answer(pieces=[b"half"], headers={"Content-Length": "100"})
    with pytest.raises(NetworkFailed):
        await client.get(f"{site.url}/a", LIMITS)


async def test_https_without_a_certificate_is_a_failure(site: Site, client: GuardedClient) -> None:
    with pytest.raises(NetworkFailed):
        await client.get(f"https://{site.place}/", LIMITS)


async def test_a_site_has_to_prove_that_it_is_the_one_in_the_address(tmp_path: Path) -> None:
    """Also when the connection goes to a number: what is proved is the name."""
    names = Names(right=[["127.0.0.1"]], wrong=[["127.0.0.1"]])
    with running_site(server_context(tmp_path)) as site:
        site.routes["/"] = page("Proved.")
        allow = frozenset({f"right.example:{site.port}", f"wrong.example:{site.port}"})
        async with GuardedClient(allow, resolve=names, ssl_context=trusting_context()) as client:
            assert (await client.get(f"https://right.example:{site.port}/", LIMITS)).body == b"Proved."
            with pytest.raises(CertificateRefused):
                await client.get(f"https://wrong.example:{site.port}/", LIMITS)
        async with GuardedClient(allow, resolve=names) as client:
            with pytest.raises(CertificateRefused):
                await client.get(f"https://right.example:{site.port}/", LIMITS)
        assert len(site.asked) == 1


async def test_a_download_that_takes_too_long_while_its_caller_is_busy_is_reported(
    client: GuardedClient, site: Site
) -> None:
    site.routes["/"] = Answer(pieces=site.drip(b"x", 0.01))
    limits, loop = FetchLimits(bytes=100_000, seconds=0.1), asyncio.get_running_loop()
    ends = loop.time() + 0.2
    with pytest.raises(TimedOut):
        async for _ in client.download(f"{site.url}/", {}, limits):
            await asyncio.sleep(ends - loop.time())  # as if the caller stored the bytes
