"""Small files that grow without end, given to parsers that check nothing: one task fails, the worker stays as it is."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from octavo.sandbox import Call, Limits, OutOfMemory, OutOfTime, Sandbox

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1 << 20
LIMITS = Limits(memory_bytes=256 * MIB, cpu_seconds=3, wall_seconds=10, output_bytes=MIB)
LARGE = 300 * MIB


def zeros_deflated(size: int) -> bytes:
    packer = zlib.compressobj(1)
    return b"".join([*(packer.compress(bytes(MIB)) for _ in range(size // MIB)), packer.flush()])


def make_zip(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("zeros", "w") as member,
    ):
        for _ in range(LARGE // MIB):
            member.write(bytes(MIB))


def make_picture(path: Path) -> None:
    """30 000 by 30 000 pixels of one bit each; decoded, a pixel takes a byte."""
    side = 30_000
    rows = zeros_deflated((1 + side // 8) * side)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def make_pdf(path: Path, *, catalog: bytes = b"", resources: bytes = b"", contents: bytes, more: bytes = b"") -> None:
    """Without a cross-reference table, which readers rebuild by themselves."""
    path.write_bytes(
        b"%PDF-1.5\n"
        b"1 0 obj\n<</Type/Catalog/Pages 2 0 R" + catalog + b">>\nendobj\n"
        b"2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n"
        b"3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<<" + resources + b">>"
        b"/Contents 5 0 R>>\nendobj\n"
        b"5 0 obj\n" + contents + b"endobj\n" + more + b"trailer\n<</Root 1 0 R>>\n%%EOF\n"
    )


def stream(data: bytes, dictionary: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream\n" % (dictionary, len(data), data)


def make_flate_pdf(path: Path) -> None:
    make_pdf(path, contents=stream(zeros_deflated(LARGE), b"/Filter/FlateDecode"))


def make_double_flate_pdf(path: Path) -> None:
    twice = zlib.compress(zeros_deflated(LARGE))
    make_pdf(path, contents=stream(twice, b"/Filter[/FlateDecode/FlateDecode]"))


def make_nested_forms_pdf(path: Path) -> None:
    """Ten times ten times ten: a hundred million drawings in three kilobytes."""
    forms = b"".join(
        b"%d 0 obj\n" % number
        + stream(b"/X Do " * 10, b"/Subtype/Form/BBox[0 0 99 99]/Resources<</XObject<</X %d 0 R>>>>" % (number + 1))
        + b"endobj\n"
        for number in range(10, 18)
    )
    last = b"18 0 obj\n" + stream(b"0 0 9 9 re f", b"/Subtype/Form/BBox[0 0 99 99]") + b"endobj\n"
    make_pdf(path, resources=b"/XObject<</X 10 0 R>>", contents=stream(b"/X Do"), more=forms + last)


def make_outline_loop_pdf(path: Path) -> None:
    loop = (
        b"6 0 obj\n<</First 7 0 R/Last 7 0 R/Count 1>>\nendobj\n"
        b"7 0 obj\n<</Title(a)/Parent 6 0 R/Next 7 0 R/First 7 0 R>>\nendobj\n"
    )
    make_pdf(path, catalog=b"/Outlines 6 0 R", contents=stream(b""), more=loop)


def make_deep_pdf(path: Path) -> None:
    make_pdf(path, contents=stream(b"q " * 500_000 + b"[" * 500_000))


BOMBS: list[tuple[Callable[[Path], None], str]] = [
    (make_zip, "read_zip"),
    (make_picture, "read_picture"),
    (make_flate_pdf, "read_pdf"),
    (make_double_flate_pdf, "read_pdf"),
    (make_nested_forms_pdf, "read_pdf"),
]


@pytest.mark.parametrize(("make", "parser"), BOMBS)
async def test_bomb_ends_at_a_limit(
    sandbox: Sandbox, tmp_path: Path, make: Callable[[Path], None], parser: str
) -> None:
    bomb = tmp_path / "bomb"
    make(bomb)
    await sandbox.run(Call("innocent:nothing"))
    worker = psutil.Process()
    [parent] = [child for child in worker.children() if "octavo.sandbox.parent" in child.cmdline()]
    before = [process.memory_info().rss for process in (worker, parent)]
    with pytest.raises((OutOfMemory, OutOfTime)):
        await sandbox.run(Call(f"naive:{parser}"), input_file=bomb, limits=LIMITS)
    after = [process.memory_info().rss for process in (worker, parent)]
    assert all(end - start < 4 * MIB for start, end in zip(before, after, strict=True))


@pytest.mark.parametrize("make", [make_outline_loop_pdf, make_deep_pdf])
async def test_trap_that_pdfium_avoids_ends_within_the_limits(
    sandbox: Sandbox, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """These bring down other readers; the day they bring down ours, it is a crash and no hang."""
    make(tmp_path / "trap")
    outcome = await sandbox.run(Call("naive:read_pdf"), input_file=tmp_path / "trap", limits=LIMITS)
    assert isinstance(outcome.value, list)
    assert outcome.value[0] == 1
