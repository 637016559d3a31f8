# /// script
# requires-python = ">=3.11"
# dependencies = ["octavo"]
# ///
"""Tries an installation: start it, add a PDF, a web page, a book and a picture, search, ask and stop.

    /path/to/environment/bin/python tools/try_installation.py

Run it with the Python of the environment in which Octavo is installed. It uses a temporary data folder and a free port,
and prints the times. The exit code is 0 only if everything was found.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

OCTAVO = Path(sys.executable).with_name("octavo")
# What each file says, and a question with its answer.
PDF = "The lighthouse keeper counted nineteen herring boats at dusk."
HTML = "The orchard by the canal grows seven kinds of apples."
BOOK = "The clockmaker of the village repaired the astronomical clock in 1874."
PICTURE = "MARBLE QUARRY"
QUESTION, ANSWER = "How many herring boats did the lighthouse keeper count?", "nineteen"
START_SECONDS = 120


def write_files(folder: Path) -> list[Path]:
    page = f"<html><head><title>Orchard</title></head><body><h1>Orchard</h1><p>{HTML}</p></body></html>"
    files = {
        "keeper.pdf": pdf(PDF),
        "orchard.html": page.encode(),
        "clock.epub": epub(BOOK),
        "quarry.png": png(PICTURE),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in files]


def pdf(text: str) -> bytes:
    stream = f"BT /F1 14 Tf 72 700 Td ({text}) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            "/Resources << /Font << /F1 5 0 R >> >> >>"
        ),
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    body, places = "%PDF-1.4\n", list[int]()
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{one}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{end}".encode()


def epub(text: str) -> bytes:
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        )
        archive.writestr(
            "book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
            "<dc:title>Clock</dc:title></metadata><manifest>"
            '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
        )
        page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>Clock</h1><p>{text}</p></body></html>'
        archive.writestr("a.xhtml", page)
    return book.getvalue()


def png(text: str) -> bytes:
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (900, 240), "white")
    ImageDraw.Draw(picture).text((60, 70), text, fill="black", font=ImageFont.load_default(72))
    content = io.BytesIO()
    picture.save(content, "PNG")
    return content.getvalue()


def environment(folder: Path) -> dict[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OCTAVO_", "PYTHON"))}
    return {**clean, "OCTAVO_DATA_DIR": str(folder / "data"), "OCTAVO_PORT": str(port), "HOME": str(folder)}


@contextmanager
def running(settings: dict[str, str], folder: Path) -> Generator[None]:
    """Octavo while it runs. It is stopped as a person stops it, or killed if that takes too long."""
    log = folder / "up.log"
    with log.open("wb") as output:
        process = subprocess.Popen([OCTAVO, "up"], env=settings, cwd=folder, stdout=output, stderr=output)
    try:
        end = time.monotonic() + START_SECONDS
        while "Ctrl-C stops everything" not in log.read_text():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"octavo up did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()


def call(settings: dict[str, str], *arguments: str) -> str:
    done = subprocess.run([OCTAVO, *arguments], env=settings, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise SystemExit(f"octavo {arguments[0]}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def try_everything(folder: Path) -> dict[str, object]:
    settings, files, began = environment(folder), write_files(folder), time.monotonic()
    with running(settings, folder):
        ready = time.monotonic()
        call(settings, "add", *(str(file) for file in files), "--wait")
        added = time.monotonic()
        for text, words in (
            ("herring boats", "herring"),
            ("apples", "orchard"),
            ("clockmaker", "1874"),
            (PICTURE, "marble"),
        ):
            if words.lower() not in call(settings, "search", text, "--json").lower():
                raise SystemExit(f"not found: {text}")
        if ANSWER not in call(settings, "ask", QUESTION).lower():
            raise SystemExit(f"no answer: {QUESTION}")
        call(settings, "doctor")
        asked = time.monotonic()
    seconds = {"start": ready - began, "add": added - ready, "search and ask": asked - added}
    rounded = {name: round(value, 1) for name, value in seconds.items()}
    python = ".".join(map(str, sys.version_info[:3]))
    return {"octavo": version("octavo"), "python": python, "machine": os.uname().machine, "seconds": rounded}


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="octavo-trial-"))
    folder.chmod(0o755)  # root's database runs under another account
    try:
        print(json.dumps(try_everything(folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
