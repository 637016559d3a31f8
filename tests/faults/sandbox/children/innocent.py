"""What an honest parser does; all of it must work under every layer."""

from __future__ import annotations

import os
import sys
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octavo.sandbox import Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import JSON


@sandboxed
def nothing(task: Task) -> None:
    """The cheapest task there is."""


@sandboxed
def echo(task: Task, **arguments: JSON) -> JSON:
    return arguments


@sandboxed
def has_loaded(task: Task, *, module: str) -> JSON:
    return module in sys.modules


@sandboxed
def copy(task: Task) -> JSON:
    data = task.input.read()
    task.output.write(data)
    return len(data)


@sandboxed
def read_twice(task: Task) -> JSON:
    first = task.input.read()
    task.input.seek(0)
    with open(task.input_path, "rb") as again:  # noqa: PTH123 - as a library would
        return first == task.input.read() == again.read()


@sandboxed
def use_threads(task: Task) -> JSON:
    sums = [0] * 8

    def add(index: int) -> None:
        sums[index] = sum(zlib.compress(bytes([index]) * 100_000))

    threads = [threading.Thread(target=add, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return all(sums)


@sandboxed
def import_late(task: Task) -> JSON:
    import sqlite3
    import xml.etree.ElementTree as ET
    import zoneinfo

    memory = sqlite3.connect(":memory:")
    row = memory.execute("select 1 + 1").fetchone()
    memory.close()
    return [ET.fromstring("<a>b</a>").text, row[0], bool(zoneinfo.available_timezones())]


@sandboxed
def describe_surroundings(task: Task) -> JSON:
    # The listing itself takes one descriptor, which is closed again when we look.
    descriptors = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208
    still_open: list[JSON] = [number for number in sorted(descriptors) if _is_open(number)]
    own = sorted([0, 1, 2, task.input.fileno(), task.output.fileno(), task.channel])
    return {
        "environment": dict(os.environ),
        "unexpected": [d for d in still_open if d not in own],
        "cwd": str(Path.cwd()),
    }


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@sandboxed
def open_pdf_by_path(task: Task) -> JSON:
    from octavo.extract.pdf.document import open_document

    with open_document(Path(task.input_path)) as document:
        return document.page_count


@sandboxed
def render_pdf(task: Task) -> JSON:
    import pypdfium2

    opened: Any = pypdfium2.PdfDocument(task.input)
    with opened as document:
        picture = document[0].render(scale=1).to_pil()
        picture.save(task.output, "PNG")
        return list(picture.size)


@sandboxed
def shrink_picture(task: Task) -> JSON:
    from PIL import Image

    with Image.open(task.input) as picture:
        picture.thumbnail((8, 8))
        picture.save(task.output, "JPEG")
        return list(picture.size)


@sandboxed
def count_up(task: Task) -> JSON:
    for done in range(1, 4):
        task.progress(done, 3, "pages")
    return None
