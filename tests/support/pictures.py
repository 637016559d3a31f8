"""Makes the pictures of the documentation: `python -m tests.support.pictures docs/images`, as `make pictures` calls it.

A real installation reads real files, and a real Chromium shows its pages.
"""

from __future__ import annotations

import sys
import textwrap
from io import BytesIO
from pathlib import Path
from typing import Literal, TypeAlias, cast

from PIL import Image
from playwright.sync_api import Browser

from tests.support.browser import DESKTOP, PHONE, SESSION_COOKIE, Place, Program, Stage
from tests.support.instance import instance_in
from tests.support.pdf import Bookmark, Part, Pdf, Words
from tests.support.postgres import open_folder
from tests.support.processes import wait_until
from tests.support.tree import ROOT, SOURCE

SAMPLES = SOURCE / "octavo/web/rooms/library/samples"
COLOURS = 256
LETTERS, LINES, LEADING, TOP = 78, 31, 20, 96
# How long ago what was read came, in hours, from the newest on; else all of it would have come just now.
AGES = (0.1, 2, 5, 26, 27, 50, 75, 120, 170)

Colour: TypeAlias = tuple[int, int, int]


def typeset(markdown: str) -> bytes:
    """A PDF with a bookmark for each heading, and without tables."""
    title, *blocks = [block.strip() for block in markdown.split("\n\n") if block.strip() and block[0] != "|"]
    lines: list[tuple[str, int]] = [(title.lstrip("# "), 1)]
    for block in blocks:
        level = len(block) - len(block.lstrip("#"))
        rows = textwrap.wrap(" ".join(block.split()), LETTERS)
        lines += [("", 0), *((row.lstrip("# ").replace("*", ""), level) for row in rows)]
    pages = [lines[start : start + LINES] for start in range(0, len(lines), LINES)]
    marks = [Bookmark(level, text, number) for number, page in enumerate(pages, 1) for text, level in page if level]
    return Pdf([sheet(page) for page in pages], marks, info={"Title": lines[0][0]}, language="en").write()


def sheet(lines: list[tuple[str, int]]) -> list[Part]:
    sizes = {0: (12.0, "regular"), 1: (20.0, "bold"), 2: (14.0, "bold")}
    return [
        Words(text, 72, TOP + LEADING * row, *sizes.get(level, (12.0, "bold")))
        for row, (text, level) in enumerate(lines)
        if text
    ]


def fill(owner: Program) -> str:
    """A shelf with one of most states; answers the document to read in."""
    essay, interview, letter = (
        (SAMPLES / name).read_text()
        for name in (
            "How a bog keeps its rain.md",
            "Interview with a bog ranger.txt",
            "Letter from the Lower Farm.txt",
        )
    )
    files = {
        "search.md": (ROOT / "docs/how-to/search.md").read_bytes(),
        "conversions.pdf": typeset((ROOT / "docs/how-to/conversions.md").read_text()),
        "architecture.md": (ROOT / "docs/architecture.md").read_bytes(),
        "Interview with a bog ranger.txt": interview.encode(),
        "Letter from the Lower Farm.txt": letter.encode(),
        "bog-and-rain.pdf": typeset(essay),
        "survey-rasters.zip": b"PK\x05\x06" + bytes(18),
        "webhooks.md": (ROOT / "docs/how-to/webhooks.md").read_bytes(),
        "contract-signed-final.pdf": Pdf([[Words("Signed by both")]]).write("secret"),
    }
    documents = {name: owner.upload(name, content) for name, content in files.items()}
    owner.wait_for_all(documents.values())
    for hours, document in zip(AGES, reversed(documents.values()), strict=True):
        aged = "UPDATE documents SET created_at = created_at - make_interval(secs => %s) WHERE id = %s"
        owner.place.database.run(aged, hours * 3600, document)
    read = documents["bog-and-rain.pdf"]
    wait_until(lambda: owner.ask("GET", f"/documents/{read}/connections")["items"], "it is compared")
    wait_until(lambda: not owner.ask("GET", "/jobs?status=processing")["items"], "nothing is worked on")
    return read


def photograph(
    browser: Browser, place: Place, path: str, *, phone: bool = False, scheme: Literal["light", "dark"] = "light"
) -> Image.Image:
    width, height = PHONE if phone else DESKTOP
    context = browser.new_context(
        base_url=place.address,
        viewport={"width": width, "height": height},
        device_scale_factor=2 if phone else 1,
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    context.add_cookies([{"name": SESSION_COOKIE, "value": place.admin(), "url": place.address}])
    page = context.new_page()
    # Fonts that are not there at once are not used at all; the second time they are.
    page.goto(path, wait_until="networkidle")
    page.goto("/search", wait_until="networkidle")
    page.goto(path, wait_until="load")
    page.wait_for_function("[...document.images].every((one) => one.complete || one.loading === 'lazy')")
    page.wait_for_timeout(500)
    taken = Image.open(BytesIO(page.screenshot()))
    context.close()
    return taken.convert("RGB")


def shrink(picture: Image.Image) -> Image.Image:
    """A third of the bytes: 256 colours, which are those that are there most and those that are most unlike them."""
    counted = cast("list[tuple[int, Colour]]", picture.getcolors(picture.width * picture.height))
    kept = [colour for _, colour in sorted(counted, reverse=True)[: COLOURS // 2]]
    apart = {colour: min(distance(colour, one) for one in kept) for _, colour in counted}
    while len(kept) < COLOURS:
        farthest = max(apart, key=lambda colour: apart[colour])
        kept.append(farthest)
        apart = {colour: min(far, distance(colour, farthest)) for colour, far in apart.items()}
    nearest = {colour: min(range(COLOURS), key=lambda index: distance(colour, kept[index])) for colour in apart}
    data = picture.tobytes()
    made = Image.frombytes(
        "P", picture.size, bytes(map(nearest.__getitem__, zip(data[::3], data[1::3], data[2::3], strict=True)))
    )
    made.putpalette([part for colour in kept for part in colour])
    return made


def distance(one: Colour, other: Colour) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def main(folder: Path) -> None:
    with open_folder() as data, instance_in(data) as instance:
        instance.start()
        place, stage = Place(instance), Stage()
        owner = Program(place, place.admin())
        read = fill(owner)
        with place.workers_held(), stage.shown() as windows:
            for name in ("field-notes-2019.pdf", "Annual report 2024.pdf"):
                owner.upload(name, typeset(f"# {name}\n\n{(ROOT / 'docs/architecture.md').read_text()}"))
            taken = {
                "library-light": photograph(windows.browser, place, "/library"),
                "library-dark": photograph(windows.browser, place, "/library", scheme="dark"),
                "library-phone": photograph(windows.browser, place, "/library", phone=True),
                "reader-light": photograph(windows.browser, place, f"/documents/{read}?p=2#p-2"),
            }
        owner.end()
        stage.end()
        place.end()
    for name, picture in taken.items():
        shrink(picture).save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
