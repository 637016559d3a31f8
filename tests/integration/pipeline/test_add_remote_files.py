"""Objects in S3, files on WebDAV servers and entries of feeds become documents once each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest

from octavo.core.settings import Settings
from octavo.fetch import GuardedClient
from octavo.intake.sources.places import SourcePlan
from octavo.records.automation import SourceAccess
from octavo.sandbox import Sandbox
from tests.support.library import Desk
from tests.support.processing import OpenSandbox
from tests.support.s3 import S3Server
from tests.support.sites import Answer, Asked, running_site
from tests.support.sources import add_watched, adding
from tests.support.webdav import PASSWORD, USER, running_webdav

FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>Harbour</title>{}</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><entry><link rel="self" href="{0}/self"/>
<link href="/three"/></entry>
<entry><link href="javascript:alert(1)"/></entry></feed>"""


def listing(*names: str, date: str = "Tue, 17 Nov 2026 10:00:00 GMT") -> bytes:
    """The answer of a WebDAV server for a folder with these files."""
    entry = "<response><href>/dav/{}</href><propstat><prop><getcontentlength>9</getcontentlength>"
    entry += f"<getlastmodified>{date}</getlastmodified></prop></propstat></response>"
    return f"<multistatus xmlns='DAV:'>{''.join(map(entry.format, names))}</multistatus>".encode()


@pytest.fixture
def sandbox() -> OpenSandbox:
    """The files are the test's own."""
    return OpenSandbox()


def settings_for(folder: Path, *places: str) -> Settings:
    return Settings(data_dir=folder, fetch_allow=places)


async def test_objects_of_a_bucket_are_added_and_changed_ones_become_versions(
    s3_server: S3Server, desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    prefix = f"scans-{uuid4()}"

    def put(key: str, text: str) -> None:
        httpx.put(s3_server.signed_url("PUT", f"{prefix}/{key}"), content=text.encode()).raise_for_status()

    put("Harbour/a.txt", "About the harbour.")
    put("b.txt", "About the ferry.")
    strange = "Zürich & a+b/c #1? 100%/Screenshot\u202fPM.txt"
    put(strange, "About the pier.")
    put(".hidden/c.txt", "Left out.")
    place = s3_server.endpoint.removeprefix("http://")
    access = SourceAccess(s3_server.access_key, endpoint=s3_server.endpoint, region=s3_server.region)
    plan = SourcePlan("s3", f"s3://{s3_server.bucket}/{prefix}", options={"subfolders": "collections"})
    plan = replace(plan, access=access, password=s3_server.secret_key)
    async with GuardedClient(frozenset({place})) as client:
        watched = await add_watched(desk, owner, settings_for(folder, place), plan, client)
        async with adding(watched, sandbox, folder):
            found = await watched.until(lambda found, _: len(found) == 3)
            assert {one.collection for one in found} == {"Harbour", "Zürich & a+b", None}
            put("b.txt", "About the ferry, again.")
            found = await watched.until(lambda found, _: len(found) == 4)
    versions = [("a.txt", 1), ("b.txt", 1), ("b.txt", 2)]
    assert sorted((one.filename, one.version) for one in found if len(one.filename) == len("a.txt")) == versions
    assert {row["path"] for row in await desk.rows("SELECT path FROM source_files")} == {
        "Harbour/a.txt",
        "b.txt",
        strange,
    }
    await desk.check_books()


@pytest.mark.parametrize(("bucket", "error"), [("nowhere", "has no bucket"), ("octavo", "refused the access key")])
async def test_a_bucket_that_cannot_be_read_says_why(
    s3_server: S3Server, desk: Desk, owner: UUID, folder: Path, *, bucket: str, error: str
) -> None:
    access = SourceAccess(s3_server.access_key, endpoint=s3_server.endpoint)
    secret = "wrong" if bucket == s3_server.bucket else s3_server.secret_key
    plan = SourcePlan("s3", f"s3://{bucket}/x", access=access, password=secret)
    place = s3_server.endpoint.removeprefix("http://")
    async with GuardedClient(frozenset({place})) as client:
        watched = await add_watched(desk, owner, settings_for(folder, place), plan, client)
        await watched.look()
    assert error in str((await watched.view()).error)


OBJECT = """<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>{more}</IsTruncated>
<NextContinuationToken>{token}</NextContinuationToken><Contents><Key>scans/{name}</Key>
<LastModified>2026-11-17T10:00:00.000Z</LastModified><ETag>"1"</ETag><Size>16</Size></Contents></ListBucketResult>"""


async def test_a_long_bucket_is_listed_page_by_page_and_a_refused_object_does_not_stop_the_others(
    desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    with running_site() as site:

        def listing_of(asked: Asked) -> Answer:
            is_last = "continuation-token=1%2F%2B%3D" in asked.query
            body = OBJECT.format(
                more="false" if is_last else "true", token="1/+=", name="b.txt" if is_last else "a.txt"
            )
            return Answer(200, body.encode())

        site.routes["/bucket/"] = listing_of
        site.routes["/bucket/scans/a.txt"] = Answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        site.routes["/bucket/scans/b.txt"] = Answer(200, b"About the ferry.")
        access = SourceAccess("key", endpoint=site.url)
        plan = SourcePlan("s3", "s3://bucket/scans", access=access, password="secret")
        watched = await add_watched(desk, owner, settings_for(folder, site.place), plan)
        async with adding(watched, sandbox, folder):
            await watched.until(lambda found, view: len(found) == 1 and view.counts.failed == 1)
    failed = await desk.rows("SELECT path, error FROM source_files WHERE state = 'failed'")
    assert [row["path"] for row in failed] == ["a.txt"]
    assert "does not allow reading this object" in failed[0]["error"]


async def test_a_bucket_never_leads_to_a_private_server(desk: Desk, owner: UUID, folder: Path) -> None:
    """Neither by a redirect, nor by a name: each connection uses the address that was checked."""

    async def resolve(host: str, port: int) -> list[str]:
        del host, port
        return ["127.0.0.1"]

    with running_site() as site, running_site() as other:
        site.routes["/bucket/"] = Answer(307, b"", {"Location": f"{other.url}/bucket/"})
        access = SourceAccess("key", endpoint=site.url)
        plan = SourcePlan("s3", "s3://bucket/x", access=access, password="secret")
        watched = await add_watched(desk, owner, settings_for(folder, site.place, other.place), plan)
        await watched.look()
        assert "redirects to another address" in str((await watched.view()).error)
        assert not other.asked
        await desk.rows("DELETE FROM sources")
        plan = replace(plan, access=SourceAccess("key", endpoint=f"https://s3.example.org:{other.port}"))
        async with GuardedClient(resolve=resolve) as client:
            watched = await add_watched(desk, owner, settings_for(folder), plan, client)
            await watched.look()
        assert "Private addresses are blocked" in str((await watched.view()).error)
        assert not other.asked


async def test_files_of_a_webdav_server_are_added_once(
    desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "Ä & B").mkdir()
    (tmp_path / "Ä & B" / "a #1 100%.txt").write_text("About the harbour.")
    (tmp_path / "b.txt").write_text("About the ferry.")
    (tmp_path / "Screenshot\u202fPM.txt").write_text("About the pier.")
    (tmp_path / "c.part").write_text("Not complete.")
    with running_webdav(tmp_path) as port:
        plan = SourcePlan("webdav", f"http://127.0.0.1:{port}", options={"subfolders": "tags"})
        plan = replace(plan, access=SourceAccess(USER), password=PASSWORD)
        watched = await add_watched(desk, owner, settings_for(folder, f"127.0.0.1:{port}"), plan)
        async with adding(watched, sandbox, folder):
            found = await watched.until(lambda found, _: len(found) == 3)
            tags = {one.filename: one.tags for one in found}
            assert tags == {"a #1 100%.txt": ["Ä & B"], "b.txt": [], "Screenshot\u202fPM.txt": []}
            await watched.look()
            assert len(await watched.documents()) == 3
            (tmp_path / "b.txt").write_text("About the ferry, which is late.")
            found = await watched.until(lambda found, _: len(found) == 4)
        assert max(one.version for one in found) == 2
        await desk.rows("UPDATE sources SET secret = NULL")
        await watched.look()
        assert "refused the sign-in" in str((await watched.view()).error)


async def test_a_file_that_the_server_refuses_does_not_stop_the_others(
    desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    with running_site() as site:
        site.routes["/dav/"] = Answer(207, listing("a.txt", "b.txt", "c.txt"))
        site.routes |= {"/dav/a.txt": Answer(403), "/dav/b.txt": Answer(200, b"About the ferry.")}
        site.routes["/dav/c.txt"] = Answer(200, b"About the pier.")
        plan = SourcePlan("webdav", f"{site.url}/dav/")
        watched = await add_watched(desk, owner, settings_for(folder, site.place), plan)
        async with adding(watched, sandbox, folder):
            await watched.until(lambda found, view: len(found) == 2 and view.counts.failed == 1)
    failed = await desk.rows("SELECT path, error FROM source_files WHERE state = 'failed'")
    assert failed == [{"path": "a.txt", "error": "The server does not allow reading this file."}]


async def test_a_strange_list_of_files_does_not_stop_the_source(desk: Desk, owner: UUID, folder: Path) -> None:
    long_name = "".join(str(uuid4()) for _ in range(150))  # cannot be compressed to the size of the index
    with running_site() as site:
        plan = SourcePlan("webdav", f"{site.url}/dav/")
        watched = await add_watched(desk, owner, settings_for(folder, site.place), plan)
        body = listing("a.txt", "%61.txt", long_name, date="Fri, 31 Dec 9999 23:59:59 GMT")
        site.routes["/dav/"] = Answer(207, body)
        await watched.look()
    assert await desk.rows("SELECT path, modified FROM source_files") == [{"path": "a.txt", "modified": 0}]


async def test_a_strange_tag_of_a_feed_is_not_sent_back(desk: Desk, owner: UUID, folder: Path) -> None:
    with running_site() as site:
        site.routes["/feed"] = Answer(200, FEED.format("").encode(), {"ETag": '"caf\xe9"'})
        plan = SourcePlan("rss", f"{site.url}/feed")
        watched = await add_watched(desk, owner, settings_for(folder, site.place), plan)
        for _ in range(2):
            await watched.look()
            assert (await watched.view()).error is None


async def test_each_entry_of_a_feed_is_added_as_a_link_once(
    desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    with running_site() as site:

        def entries(*names: str) -> Answer:
            items = "".join(f"<item><link>{site.url}/{name}?utm_source=feed</link></item>" for name in names)
            return Answer(200, FEED.format(items).encode(), {"ETag": f'"{len(names)}"'})

        def unchanged(asked: Asked) -> Answer:
            return Answer(304) if asked.headers.get("if-none-match") == '"2"' else Answer(500)

        site.routes["/feed"] = entries("one", "one")
        watched = await add_watched(
            desk, owner, settings_for(folder, site.place), SourcePlan("rss", f"{site.url}/feed", every_seconds=60)
        )
        async with adding(watched, sandbox, folder):
            await watched.until(lambda found, _: len(found) == 1)
            site.routes["/feed"] = entries("one", "two")
            found = await watched.until(lambda found, _: len(found) == 2)
            site.routes["/feed"] = unchanged
            await watched.look()
            assert (await watched.view()).error is None
            site.routes["/feed"] = Answer(200, ATOM.format(site.url).encode())
            found = await watched.until(lambda found, _: len(found) == 3)
        assert sorted(str(one.source_url) for one in found) == [
            f"{site.url}/{name}" for name in ("one", "three", "two")
        ]
        for body in (b"<html/>", b"", b"<!DOCTYPE r [<!ENTITY a 'b'>]><rss>&a;</rss>"):
            site.routes["/feed"] = Answer(200, body)
            await watched.look()
            assert "not an RSS or Atom feed" in str((await watched.view()).error)
