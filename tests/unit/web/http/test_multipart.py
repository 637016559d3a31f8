"""A form is read the same however it arrives, never taken for whole when it broke off, and never kept in memory."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from octavo.core.errors import BadInput, OctavoError, TooLarge
from octavo.web.http.multipart import (
    BESIDE_FILE_BYTES,
    FIELD_BYTES,
    MOST_PARTS,
    BrokenMultipart,
    FormReader,
    SeveralFiles,
)

BOUNDARY = "a-boundary"
CONTENT_TYPE = f"multipart/form-data; boundary={BOUNDARY}"
END = f"--{BOUNDARY}--".encode()


@dataclass(frozen=True, slots=True)
class Got:
    """All that a form holds."""

    fields: dict[str, str]
    filename: str
    content_type: str
    file: bytes


def part(name: str, body: bytes, filename: str | None = None, more: bytes = b"") -> bytes:
    disposition = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename is not None else "")
    return b"\r\n".join([f"--{BOUNDARY}\r\nContent-Disposition: {disposition}".encode() + more, b"", body, b""])


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + END + b"\r\n"


def read(pieces: Iterable[bytes], content_type: str = CONTENT_TYPE) -> Got:
    async def arrive() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def run() -> Got:
        got = await FormReader(content_type, arrive()).read()
        file = b"".join([chunk async for chunk in got.file])
        return Got(got.fields, got.filename, got.content_type, file)

    return asyncio.run(run())


def cut(whole: bytes, places: Iterable[int]) -> list[bytes]:
    ends = sorted({0, len(whole), *(place % (len(whole) + 1) for place in places)})
    return [whole[start:end] for start, end in pairwise(ends)]


NAMES = st.from_regex(r"[a-z_]{1,20}", fullmatch=True)
# Made of what a boundary is made of, so that halves of one are everywhere.
ALMOST_BOUNDARIES = st.lists(
    st.sampled_from([b"\r", b"\n", b"-", b"--", b"\r\n--", b"\r\n--a-", BOUNDARY.encode(), b"\r\n--a-boundar", b"x"])
).map(b"".join)
BODIES = (st.binary(max_size=300) | ALMOST_BOUNDARIES).filter(lambda body: b"\r\n--" + BOUNDARY.encode() not in body)
FIELDS = st.dictionaries(
    NAMES, st.text(st.characters(codec="utf-8", exclude_characters="\r\n-"), max_size=50), max_size=3
)
PLACES = st.lists(st.integers(0, 2000), max_size=30)


@given(FIELDS, FIELDS, BODIES, PLACES)
@example({}, {}, b"\r\n--a-boundar", [1, 2, 3])
@example({}, {}, b"\r\n--a-boundar-\r\n--a-boundarx\r", list(range(500)))
def test_a_form_is_parsed_the_same_in_pieces_of_any_size(
    before: dict[str, str], after: dict[str, str], body: bytes, places: list[int]
) -> None:
    first = [part(name, value.encode()) for name, value in before.items()]
    last = [part(name, value.encode()) for name, value in after.items()]
    whole = form(*first, part("file", body, "a.txt", b"\r\nContent-Type: text/plain"), *last)
    assert read(cut(whole, places)) == Got(before | after, "a.txt", "text/plain", body)


@given(BODIES, st.data())
def test_a_form_that_broke_off_is_never_a_whole_file(body: bytes, data: st.DataObject) -> None:
    whole = form(part("title", b"T"), part("file", body, "a.txt"), part("more", b"M"))
    last = data.draw(st.integers(0, whole.rindex(END) + len(END) - 1))
    with pytest.raises(BrokenMultipart):
        read(cut(whole[:last], data.draw(PLACES)))


def test_every_single_place_to_break_off_is_noticed() -> None:
    whole = form(part("title", b"T"), part("file", b"the file", "a.txt"))
    for last in range(whole.rindex(END) + len(END)):
        with pytest.raises(BrokenMultipart):
            read([whole[:last]])


@given(st.binary(max_size=400), PLACES)
def test_rubbish_is_refused_by_name(body: bytes, places: list[int]) -> None:
    with pytest.raises(OctavoError):
        read(cut(body, places))


@given(st.binary(max_size=200).filter(lambda value: b"\r" not in value), PLACES)
@example(b"form-data; name=\xff\xfe; filename*0*=x", [])
@example(b'form-data; name="a"; filename="\xe2\x82\xac', [])
def test_a_part_may_describe_itself_in_any_bytes(disposition: bytes, places: list[int]) -> None:
    described = f"--{BOUNDARY}\r\nContent-Disposition: ".encode() + disposition + b"\r\nContent-Type: "
    whole = form(described + disposition + b"\r\n\r\nbody\r\n")
    try:
        got = read(cut(whole, places))
    except BadInput:
        return
    assert got.file == b"body"
    assert 0 < len(got.content_type) <= 200


# Names and types ---------------------------------------------------------------------------------------------------

FILENAMES: dict[str, tuple[bytes, str]] = {
    "plain": (b'filename="a.txt"', "a.txt"),
    "without quotes": (b"filename=a.txt", "a.txt"),
    "in another script": ('filename="отчёт €.pdf"'.encode(), "отчёт €.pdf"),
    "with accents": ('filename="résumé.pdf"'.encode(), "résumé.pdf"),
    "not UTF-8": (b'filename="\xff\xfe.bin"', "\ufffd\ufffd.bin"),
    "with quotes": (b'filename="a \\"b\\".txt"', 'a "b".txt'),
    "with a semicolon": (b'filename="a; filename=b.txt"', "a; filename=b.txt"),
    "with a NUL": (b'filename="a\0.txt"', "a\0.txt"),
    "with a bare newline": (b'filename="a\nb.txt"', "a\nb.txt"),
    "a path of Windows": (b'filename="C:\\evil\\a.txt"', "a.txt"),
    "a way up": (b'filename="../../a.txt"', "../../a.txt"),
    "percent-encoded": (b'filename="%2e%2e%2fa.txt"', "%2e%2e%2fa.txt"),
    "empty": (b'filename=""', ""),
    "the last of two": (b'filename="a.txt"; filename="b.txt"', "b.txt"),
    "plain beside an extended one": (b"filename=\"a.txt\"; filename*=UTF-8''evil.exe", "a.txt"),
}


@pytest.mark.parametrize("case", FILENAMES)
def test_the_name_of_a_file_is_read_as_it_was_sent(case: str) -> None:
    written, name = FILENAMES[case]
    described = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; '.encode() + written
    assert read([form(described + b"\r\n\r\nbody\r\n")]).filename == name


@pytest.mark.parametrize(
    ("header", "content_type"),
    [
        (b"", "application/octet-stream"),
        (b"\r\nContent-Type: text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        (b"\r\nCONTENT-TYPE:   image/png  ", "image/png"),
        (b"\r\nContent-Type: ", "application/octet-stream"),
        (b"\r\nContent-Type: " + b"x" * 201, "application/octet-stream"),
        (b"\r\nContent-Type: multipart/mixed; boundary=inner", "multipart/mixed; boundary=inner"),
    ],
)
def test_the_type_of_a_file_is_what_its_part_says(header: bytes, content_type: str) -> None:
    assert read([form(part("file", b"body", "a", header))]).content_type == content_type


def test_a_form_inside_a_form_is_only_bytes() -> None:
    inner = b"--inner\r\nContent-Disposition: form-data; name=x; filename=evil\r\n\r\nevil\r\n--inner--\r\n"
    assert read([form(part("file", inner, "a.txt"))]).file == inner


def test_of_a_field_that_comes_twice_the_last_one_counts() -> None:
    whole = form(part("title", b"one"), part("title", b"two"), part("file", b"body", "a.txt"))
    assert read([whole]).fields == {"title": "two"}


def test_what_follows_the_end_is_not_read() -> None:
    after = part("title", b"evil") + part("file", b"evil", "evil.txt")
    assert read([form(part("file", b"body", "a.txt")) + after]) == Got({}, "a.txt", "application/octet-stream", b"body")


# Refusals ----------------------------------------------------------------------------------------------------------

GOOD = form(part("file", b"body", "a.txt"))
BAD: dict[str, tuple[type[OctavoError], bytes, str]] = {
    "another boundary": (BrokenMultipart, GOOD, "multipart/form-data; boundary=another"),
    "a longer boundary": (BrokenMultipart, GOOD, f"{CONTENT_TYPE}-and-more"),
    "no boundary": (BrokenMultipart, GOOD, "multipart/form-data"),
    "an empty boundary": (BrokenMultipart, GOOD, 'multipart/form-data; boundary=""'),
    "a boundary without end": (BrokenMultipart, GOOD, f"multipart/form-data; boundary={'b' * 10_000}"),
    "another kind": (BrokenMultipart, GOOD, f"multipart/mixed; boundary={BOUNDARY}"),
    "nothing": (BrokenMultipart, b"", CONTENT_TYPE),
    "only the end": (BadInput, END, CONTENT_TYPE),
    "no file": (BadInput, form(part("title", b"T")), CONTENT_TYPE),
    "a file without a name": (BadInput, form(part("file", b"body")), CONTENT_TYPE),
    "two files": (SeveralFiles, form(part("file", b"1", "1"), part("file", b"2", "2")), CONTENT_TYPE),
    "a huge field": (TooLarge, form(part("title", b"x" * (FIELD_BYTES + 1)), GOOD), CONTENT_TYPE),
    "a huge field behind the file": (
        *(TooLarge, form(part("file", b"", "a"), part("x", b"x" * (FIELD_BYTES + 1)))),
        CONTENT_TYPE,
    ),
    "fields that are huge together": (TooLarge, form(*[part("x", b"x" * 8192)] * 9, GOOD), CONTENT_TYPE),
    "ten thousand parts": (TooLarge, form(*(part(f"f{n}", b"") for n in range(10_000)), GOOD), CONTENT_TYPE),
    "ten thousand parts of one name": (TooLarge, form(*[part("f", b"")] * 10_000, GOOD), CONTENT_TYPE),
    "ten thousand parts without names": (TooLarge, form(*[part("", b"")] * 10_000, GOOD), CONTENT_TYPE),
    "a huge header": (BrokenMultipart, form(part("f", b"", more=b"\r\nX: " + b"x" * 10_000)), CONTENT_TYPE),
    "a huge name of a header": (BrokenMultipart, form(part("f", b"", more=b"\r\n" + b"x" * 10_000)), CONTENT_TYPE),
    "a hundred headers": (BrokenMultipart, form(part("f", b"", more=b"\r\nX: y" * 100)), CONTENT_TYPE),
    "a name of ten thousand characters": (BrokenMultipart, form(part("f", b"", "x" * 10_000)), CONTENT_TYPE),
    "a header in two lines": (BrokenMultipart, form(part("f", b"", more=b"\r\n folded")), CONTENT_TYPE),
    "a NUL in the name of a header": (BrokenMultipart, form(part("f", b"", more=b"\r\nA\0: b")), CONTENT_TYPE),
    "a header without a colon": (BrokenMultipart, form(part("f", b"", more=b"\r\nrubbish")), CONTENT_TYPE),
    "lines without carriage returns": (BrokenMultipart, GOOD.replace(b"\r\n", b"\n"), CONTENT_TYPE),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_form_is_refused_by_name(case: str) -> None:
    error, body, content_type = BAD[case]
    with pytest.raises(error) as refused:
        read(cut(body, range(0, len(body), 1000)), content_type)
    assert type(refused.value) is error


def test_as_many_parts_as_are_allowed_are_read() -> None:
    whole = form(*(part(f"f{n}", b"v") for n in range(MOST_PARTS - 1)), part("file", b"body", "a.txt"))
    got = read([whole])
    assert (len(got.fields), got.file) == (MOST_PARTS - 1, b"body")


# Memory ------------------------------------------------------------------------------------------------------------

PIECE = b"\r\n--a-b" * 8192


def endless(count: int, before: bytes = b"", after: bytes = b"") -> Iterator[bytes]:
    yield before
    for _ in range(count):
        yield PIECE
    yield after


def test_a_large_file_goes_through_without_being_kept() -> None:
    async def run() -> tuple[int, int]:
        async def arrive() -> AsyncIterator[bytes]:
            for piece in endless(500, part("file", b"", "a.bin").removesuffix(b"\r\n"), b"\r\n" + END):
                yield piece

        got = await FormReader(CONTENT_TYPE, arrive()).read()
        total = largest = 0
        async for chunk in got.file:
            total, largest = total + len(chunk), max(largest, len(chunk))
        return total, largest

    tracemalloc.start()
    try:
        total, largest = asyncio.run(run())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total == 500 * len(PIECE)
    assert largest <= len(PIECE) + 100
    assert peak < 10 * len(PIECE)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(b"\r\n", id="before the first part"),
        pytest.param(part("file", b"body", "a.txt") + END, id="after the last part"),
    ],
)
def test_what_belongs_to_no_part_has_an_end(before: bytes) -> None:
    seen = 0

    def counted() -> Iterator[bytes]:
        nonlocal seen
        for piece in endless(1000, before):
            seen += len(piece)
            yield piece.replace(b"-", b"x") if seen > len(before) else piece

    with pytest.raises(TooLarge):
        read(counted())
    assert seen <= BESIDE_FILE_BYTES + 2 * len(PIECE)
