"""An export is prepared, downloaded and imported on a page, with its progress and the reasons of failures."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from playwright.sync_api import Locator, Page, Route, expect

from octavo.convert.mappings.stored_mappings import DEFAULT_MAPPING
from tests.browser.conftest import OpenBrowser
from tests.support.browser import Place, Program, check_axe
from tests.support.invoices import make_invoice
from tests.support.processes import wait_until

HERE = "/settings/export"
# Returns the new content of a file, or None to leave it out.
Change: TypeAlias = Callable[[str, bytes], bytes | None]
BILL = make_invoice(4).pdf
TITLES = ("Lamps of the cape", "Boats at night", "Ältere Gebühren")


def fill(place: Place) -> str:
    """A library with three documents in a collection. Returns its session."""
    owner = Program(place, session := place.sign_up())
    documents = [
        owner.upload(f"{title}.txt", f"{title}\n\nThe keeper wrote about {title} in May. It was late.", title=title)
        for title in TITLES
    ]
    owner.wait_for_all(documents)
    owner.ask("PATCH", f"/documents/{documents[0]}", json={"collection": "Harbour", "tags": ["lamps"]})
    # A conversion whose file is not in the library.
    headers = {"content-type": "application/pdf", "x-upload-filename": "bill.pdf"}
    owner.ask("POST", f"/conversions?mapping={DEFAULT_MAPPING}", content=BILL, headers=headers)
    wait_until(lambda: bool(converted(owner)), "it is converted")
    owner.api.close()
    return session


def converted(program: Program) -> list[str]:
    found = program.ask("GET", "/conversions")["items"]
    return [one["id"] for one in found if one["status"] in {"complete", "needs_review"}]


def choose(page: Page, path: Path) -> None:
    page.set_input_files("#import-file", path)
    page.get_by_role("button", name="Import", exact=True).click()


def line(page: Page) -> Locator:
    return page.locator("[data-import] [data-line]")


def changed(path: Path, change: Change) -> Path:
    """A copy of the archive, with each file as `change` returns it."""
    target = path.with_name("changed.tar")
    with tarfile.open(path) as source, tarfile.open(target, "w") as made:
        for member in source:
            stream = source.extractfile(member)
            body = change(member.name, stream.read() if stream else b"")
            if body is not None:
                about = tarfile.TarInfo(member.name)
                about.size = len(body)
                made.addfile(about, io.BytesIO(body))
    return target


def test_an_export_is_prepared_and_imported_by_somebody_else(
    place: Place, open_browser: OpenBrowser, tmp_path: Path
) -> None:
    visitor = open_browser(fill(place))
    page = visitor.open(HERE)
    page.get_by_role("button", name="Prepare an export of the whole library").click()
    link = page.get_by_role("link", name=re.compile(r"Download \(.*\)"))
    expect(link).to_be_visible()
    check_axe(page)
    with page.expect_download() as download:
        link.click()
    download.value.save_as(archive := tmp_path / "library.tar")

    other = open_browser(place.sign_up())
    page = other.open(HERE)
    choose(page, archive)
    expect(line(page)).to_contain_text("Import finished. 3 documents added. 0 already here.")
    check_axe(page)
    found = {one["title"]: one for one in other.documents()}
    assert set(found) == set(TITLES)
    assert (found[TITLES[0]]["collection"], found[TITLES[0]]["tags"]) == ("Harbour", ["lamps"])
    (conversion,) = converted(other)
    assert other.api.get(f"/api/v1/conversions/{conversion}/source").content == BILL
    choose(page, archive)
    expect(line(page)).to_contain_text("Import finished. 0 documents added. 3 already here.")


def test_an_interrupted_import_continues_and_names_what_failed(
    place: Place, open_browser: OpenBrowser, tmp_path: Path
) -> None:
    owner = Program(place, fill(place))
    (archive := tmp_path / "library.tar").write_bytes(owner.api.get("/api/v1/export").content)
    owner.api.close()
    visitor = open_browser(place.sign_up())
    page = visitor.open(HERE)

    sent: list[str] = []

    def refuse_second(route: Route) -> None:
        sent.append(route.request.url)
        if len(sent) == 2:
            route.fulfill(status=403, json={"code": "QUOTA_EXCEEDED", "title": "Storage full", "status": 403})
        else:
            route.continue_()

    visitor.watch.expect("status of 403")
    page.route("**/api/v1/import/documents?**", refuse_second)
    choose(page, archive)
    expect(line(page)).to_contain_text("Import stopped: ")
    expect(line(page)).to_contain_text("QUOTA_EXCEEDED")
    page.unroute("**/api/v1/import/documents?**")
    choose(page, archive)
    expect(line(page)).to_contain_text("Import finished.")
    assert {one["title"] for one in visitor.documents()} == set(TITLES)

    other = open_browser(place.sign_up())
    page = other.open(HERE)
    other.watch.expect("status of 4")
    choose(page, changed(archive, lambda name, body: b"Other words" if name.endswith("Boats at night.txt") else body))
    expect(line(page)).to_contain_text("2 documents added. 0 already here.")
    expect(line(page)).to_contain_text("1 failed.")
    expect(page.locator("[data-failed] li")).to_contain_text("Boats at night: ")


def test_files_that_are_not_exports_are_refused(place: Place, open_browser: OpenBrowser, tmp_path: Path) -> None:
    owner = Program(place, fill(place))
    (archive := tmp_path / "library.tar").write_bytes(owner.api.get("/api/v1/export").content)
    owner.api.close()
    visitor = open_browser(place.sign_up())
    page = visitor.open(HERE)
    cases: list[tuple[Change, str]] = [
        (lambda name, body: None if name == "complete.json" else body, "not a complete Octavo export"),
        (lambda name, body: body + b"{}\n" if name == "documents/00001.jsonl" else body, "damaged or incomplete"),
    ]
    for change, says in cases:
        choose(page, changed(archive, change))
        expect(line(page)).to_contain_text(says)
    (tmp_path / "cut.tar").write_bytes(archive.read_bytes()[:600])
    choose(page, tmp_path / "cut.tar")
    expect(line(page)).to_contain_text("damaged or incomplete (incomplete)")
    (tmp_path / "other.tar").write_bytes(b"no tar file " * 100)
    choose(page, tmp_path / "other.tar")
    expect(line(page)).to_contain_text("not a tar file")
    assert visitor.documents() == []
