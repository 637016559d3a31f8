"""A person exports the library or a collection from a page, without scripts."""

from __future__ import annotations

import io
import re
import tarfile
from html import unescape

from tests.api.rooms.conftest import guest, is_page, words
from tests.support.visitors import House

HERE = "/settings/export"


async def test_the_library_and_each_collection_can_be_downloaded(house: House) -> None:
    browser = await guest(house)
    for name, collection in (("One", "Tax & law"), ("Two", None)):
        added = (await browser.post("/api/v1/documents", json={"text": f"Words of {name}.", "title": name})).json()
        if collection:
            path = f"/api/v1/documents/{added['document_id']}"
            assert (await browser.patch(path, json={"collection": collection})).is_success
    is_page(page := await browser.get(HERE))
    assert "Tax & law 1 Download Tax & law" in words(page)
    library, collection = re.findall(r'href="(/api/v1/export[^"]*)" download', page.text)
    for address, titles in ((library, {"one", "two"}), (collection, {"one"})):
        answer = await browser.get(unescape(address))
        assert answer.headers["content-type"] == "application/x-tar"
        assert answer.headers["content-disposition"].startswith("attachment;")
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
            names = archive.getnames()
        folders = {name.split("/")[2] for name in names if re.match(r"documents/\d+/.", name)}
        assert {folder.partition("-")[0] for folder in folders} == titles
        assert "complete.json" in names
    assert "Tax" not in words(await (await guest(house)).get(HERE))


async def test_an_export_is_prepared_without_scripts(house: House) -> None:
    browser = await guest(house)
    assert (await browser.post("/api/v1/documents", json={"text": "Words.", "title": "One"})).is_success
    assert "Prepared export" not in words(await browser.get(HERE))
    assert (await browser.post(HERE, data={"collection": ""})).headers["location"] == HERE
    is_page(page := await browser.get(HERE))
    assert "Prepared export Whole library Waiting" in words(page)
    refused = await browser.post(HERE, data={"collection": ""})
    assert refused.status_code == 409
    assert "Prepared export" not in words(await (await guest(house)).get(HERE))
