"""Small PDFs for tests, written by hand: text where a test wants it, bookmarks, labels, pictures and passwords."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.pdf.assemble import assemble_pages, merge_pages
from octavo.extract.pdf.page_batches import BATCH_PAGES, Batch, PdfFacts, batch_ranges
from octavo.extract.pdf.page_text import open_pdf, read_batch

WIDTH, HEIGHT = 612.0, 792.0
_FONTS = {"regular": "Helvetica", "bold": "Helvetica-Bold", "italic": "Helvetica-Oblique", "code": "Courier"}
_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
_EVERYTHING_ALLOWED = -4


@dataclass(frozen=True, slots=True)
class Words:
    """One run of text; `top` is the distance of its base line from the upper edge. `grey` is 1 for white letters."""

    text: str
    left: float = 72.0
    top: float = 100.0
    size: float = 11.0
    font: str = "regular"
    grey: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A stroke, as tables have them."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Picture:
    """A grey square over the whole page, as a scanner makes them."""


@dataclass(frozen=True, slots=True)
class Link:
    """A place on the page that leads elsewhere."""

    left: float
    top: float
    right: float
    bottom: float
    url: str


Part = Words | Line | Picture | Link


@dataclass(frozen=True, slots=True)
class Bookmark:
    level: int
    title: str
    page: int


@dataclass(frozen=True, slots=True)
class Pdf:
    """`labels` are the entries of the page label tree, as (index of the first page, dictionary)."""

    pages: Sequence[Sequence[Part]]
    bookmarks: Sequence[Bookmark] = ()
    labels: Sequence[tuple[int, str]] = ()
    info: dict[str, str] = field(default_factory=dict[str, str])
    language: str = ""

    def write(self, password: str | None = None, *, owner_password: str = "owner") -> bytes:
        """With a password, encrypted as PDF 1.3 does it; an empty one opens for everybody."""
        writer = _Writer()
        content = _Content(writer)
        pages = [content.page(parts) for parts in self.pages]
        writer.put(
            content.tree, f"<</Type/Pages/Count {len(pages)}/Kids[{' '.join(f'{page} 0 R' for page in pages)}]>>"
        )
        catalog = f"<</Type/Catalog/Pages {content.tree} 0 R"
        if self.bookmarks:
            catalog += f"/Outlines {_outline(writer, self.bookmarks, pages)} 0 R"
        if self.labels:
            catalog += f"/PageLabels<</Nums[{' '.join(f'{index}{label}' for index, label in self.labels)}]>>"
        if self.language:
            catalog += f"/Lang({self.language})"
        root = writer.add(catalog + ">>")
        info = writer.add("<<" + "".join(f"/{name} {_text(value)}" for name, value in self.info.items()) + ">>")
        return writer.finish(root, info, password, owner_password)


class _Writer:
    """Numbers objects and puts them into a file."""

    def __init__(self) -> None:
        self._objects: list[bytes] = []
        self._streams: dict[int, bytes] = {}

    def add(self, body: str = "") -> int:
        self._objects.append(body.encode("latin-1"))
        return len(self._objects)

    def put(self, number: int, body: str) -> None:
        self._objects[number - 1] = body.encode("latin-1")

    def stream(self, head: str, data: bytes) -> int:
        number = self.add(f"<<{head}/Length {len(data)}>>")
        self._streams[number] = data
        return number

    def finish(self, root: int, info: int, password: str | None, owner_password: str) -> bytes:
        lock = _Lock(password, owner_password) if password is not None else None
        out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
        places: list[int] = []
        for number, body in enumerate(self._objects, 1):
            places.append(len(out))
            out += b"%d 0 obj\n" % number + (lock.strings(number, body) if lock else body)
            if (data := self._streams.get(number)) is not None:
                out += b"\nstream\n" + (lock.apply(number, data) if lock else data) + b"\nendstream"
            out += b"\nendobj\n"
        table = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
        out += b"".join(b"%010d 00000 n \n" % place for place in places)
        trailer = f"<</Size {len(places) + 1}/Root {root} 0 R/Info {info} 0 R"
        out += b"trailer\n" + trailer.encode() + (lock.trailer() if lock else b"") + b">>\n"
        return bytes(out + b"startxref\n%d\n%%%%EOF\n" % table)


class _Content:
    """Pages and what they share: fonts, and a picture that all of them show."""

    def __init__(self, writer: _Writer) -> None:
        self._writer = writer
        self.tree = writer.add()
        fonts = "".join(
            f"/{name} {writer.add(f'<</Type/Font/Subtype/Type1/BaseFont/{font}/Encoding/WinAnsiEncoding>>')} 0 R"
            for name, font in _FONTS.items()
        )
        self._wide: dict[str, int] = {}
        self._wide_font = writer.add()
        head = "/Type/XObject/Subtype/Image/Width 2/Height 2/BitsPerComponent 8/ColorSpace/DeviceGray"
        picture = writer.stream(head, b"\x40\x80\xa0\xc0")
        self._resources = f"<</Font<<{fonts}/wide {self._wide_font} 0 R>>/XObject<</picture {picture} 0 R>>>>"
        self._write_wide_font()

    def page(self, parts: Sequence[Part]) -> int:
        content = "\n".join(self._operators(parts)).encode("latin-1")
        links = "".join(_link(part) for part in parts if isinstance(part, Link))
        stream = self._writer.stream("", content)
        self._write_wide_font()
        return self._writer.add(
            f"<</Type/Page/Parent {self.tree} 0 R/MediaBox[0 0 {WIDTH:g} {HEIGHT:g}]/Resources {self._resources}"
            f"/Contents {stream} 0 R/Annots[{links}]>>"
        )

    def _operators(self, parts: Iterable[Part]) -> Iterable[str]:
        for part in parts:
            match part:
                case Words():
                    yield self._words(part)
                case Line(left, top, right, bottom):
                    yield f"1 w {left:g} {HEIGHT - top:g} m {right:g} {HEIGHT - bottom:g} l S"
                case Picture():
                    yield f"q {WIDTH:g} 0 0 {HEIGHT:g} 0 0 cm /picture Do Q"
                case Link():
                    pass

    def _words(self, words: Words) -> str:
        font, shown = words.font, ""
        try:
            shown = "(" + _escaped(words.text.encode("cp1252").decode("latin-1")) + ")"
        except UnicodeEncodeError:
            font = "wide"
            shown = "<" + "".join(f"{self._code(letter):04x}" for letter in words.text) + ">"
        place = f"1 0 0 1 {words.left:g} {HEIGHT - words.top:g} Tm"
        return f"{words.grey} g BT /{font} {words.size:g} Tf {place} {shown} Tj ET"

    def _code(self, letter: str) -> int:
        return self._wide.setdefault(letter, len(self._wide) + 1)

    def _write_wide_font(self) -> None:
        """A font without outlines that says which letters its codes are, so that any script can be written."""
        pairs = "".join(f"<{code:04x}> <{letter.encode('utf-16-be').hex()}>\n" for letter, code in self._wide.items())
        cmap = (
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
            "1 begincodespacerange <0000> <ffff> endcodespacerange\n"
            f"{len(self._wide)} beginbfchar\n{pairs}endbfchar\nendcmap end end"
        )
        # Made anew with every page that adds letters; a test document has few.
        to_unicode = self._writer.stream("", cmap.encode())
        self._writer.put(
            self._wide_font,
            f"<</Type/Font/Subtype/Type0/BaseFont/Wide/Encoding/Identity-H/ToUnicode {to_unicode} 0 R"
            "/DescendantFonts[<</Type/Font/Subtype/CIDFontType2/BaseFont/Wide/DW 500"
            "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>"
            "/FontDescriptor<</Type/FontDescriptor/FontName/Wide/Flags 4/FontBBox[0 -200 1000 800]/ItalicAngle 0"
            "/Ascent 800/Descent -200/CapHeight 700/StemV 80>>>>]>>",
        )


def _link(link: Link) -> str:
    place = f"{link.left:g} {HEIGHT - link.bottom:g} {link.right:g} {HEIGHT - link.top:g}"
    return f"<</Type/Annot/Subtype/Link/Rect[{place}]/Border[0 0 0]/A<</S/URI/URI({_escaped(link.url)})>>>>"


def _outline(writer: _Writer, bookmarks: Sequence[Bookmark], pages: Sequence[int]) -> int:
    """Each entry knows its neighbours, so all numbers are given first."""
    root = writer.add()
    numbers = [writer.add() for _ in bookmarks]
    parents: list[int] = []
    open_levels: list[tuple[int, int]] = [(0, root)]
    for bookmark, number in zip(bookmarks, numbers, strict=True):
        while open_levels[-1][0] >= bookmark.level:
            open_levels.pop()
        parents.append(open_levels[-1][1])
        open_levels.append((bookmark.level, number))
    children = {owner: [n for n, p in zip(numbers, parents, strict=True) if p == owner] for owner in (root, *numbers)}
    for bookmark, number, parent in zip(bookmarks, numbers, parents, strict=True):
        row = children[parent]
        place = row.index(number)
        body = f"<</Title {_text(bookmark.title)}/Parent {parent} 0 R/Dest[{pages[bookmark.page - 1]} 0 R/Fit]"
        body += f"/Prev {row[place - 1]} 0 R" if place else ""
        body += f"/Next {row[place + 1]} 0 R" if place + 1 < len(row) else ""
        writer.put(number, body + _ends(children[number]) + ">>")
    writer.put(root, f"<</Type/Outlines{_ends(children[root])}>>")
    return root


def _ends(children: Sequence[int]) -> str:
    return f"/First {children[0]} 0 R/Last {children[-1]} 0 R/Count {len(children)}" if children else ""


def _text(value: str) -> str:
    return f"<feff{value.encode('utf-16-be').hex()}>"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


class _Lock:
    """RC4 with 40 bits: weak, old, and short enough to be written here."""

    def __init__(self, password: str, owner_password: str) -> None:
        user, owner = (_PADDING if not text else (text.encode() + _PADDING)[:32] for text in (password, owner_password))
        self._owner = _rc4(hashlib.md5(owner, usedforsecurity=False).digest()[:5], user)
        rights = _EVERYTHING_ALLOWED.to_bytes(4, "little", signed=True)
        seed = user + self._owner + rights + self._identity
        self._key = hashlib.md5(seed, usedforsecurity=False).digest()[:5]

    _identity = b"0123456789abcdef"

    def apply(self, number: int, data: bytes) -> bytes:
        seed = self._key + number.to_bytes(3, "little") + b"\0\0"
        return _rc4(hashlib.md5(seed, usedforsecurity=False).digest()[:10], data)

    def strings(self, number: int, body: bytes) -> bytes:
        """Only strings in hexadecimal are met outside of streams where it matters."""
        start = body.find(b"<feff")
        while start >= 0:
            end = body.index(b">", start)
            body = (
                body[: start + 1]
                + self.apply(number, bytes.fromhex(body[start + 1 : end].decode())).hex().encode()
                + body[end:]
            )
            start = body.find(b"<feff", end)
        return body

    def trailer(self) -> bytes:
        entry = b"<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P %d>>" % (
            self._owner.hex().encode(),
            _rc4(self._key, _PADDING).hex().encode(),
            _EVERYTHING_ALLOWED,
        )
        return b"/Encrypt" + entry + b"/ID[<%s><%s>]" % ((self._identity.hex().encode(),) * 2)


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    other = 0
    for index in range(256):
        other = (other + state[index] + key[index % len(key)]) % 256
        state[index], state[other] = state[other], state[index]
    out = bytearray()
    first = second = 0
    for byte in data:
        first = (first + 1) % 256
        second = (second + state[first]) % 256
        state[first], state[second] = state[second], state[first]
        out.append(byte ^ state[(state[first] + state[second]) % 256])
    return bytes(out)


def paragraph(text: Iterable[str], top: float, *, left: float = 72.0, size: float = 11.0) -> list[Words]:
    """Lines below each other, as close as in a book."""
    return [Words(line, left, top + number * size * 1.25, size) for number, line in enumerate(text)]


def assemble(facts: PdfFacts, batches: Iterable[Batch], source_type: SourceType = SourceType.PDF) -> Extracted:
    """One document of all batches, as the sandbox makes it."""
    return assemble_pages(facts, merge_pages(facts, batches), source_type)


def read_pdf(path: Path, password: str | None = None, *, size: int = BATCH_PAGES) -> Extracted:
    """All steps in this process."""
    facts = open_pdf(path, password)
    ranges = batch_ranges(facts.page_count, size=size)
    return assemble(facts, [read_batch(path, *pages, password) for pages in ranges])
