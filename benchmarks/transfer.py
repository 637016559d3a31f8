"""Exports a filled library, kills the export and the import on the way, and compares the two libraries.

    python -m benchmarks.transfer --documents 1000 [--prepared] [--corpus FOLDER]

Starts two installations in temporary folders. The first gets mixed documents: short texts in eleven formats, among them
PDFs, Office files and pictures of printed pages, and the files of a corpus, if one is named. The time to process them
is not part of the measurement. The export and the import are each killed twice, after a third and after two thirds.
With `--prepared`, a job prepares the export, its worker is killed twice, and the file is downloaded and unpacked.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID

import psutil

from octavo.client import SyncClient
from octavo.library.exporting import BATCH_DOCUMENTS
from tests.support.instance import Instance, instance_in
from tests.support.office import docx, paragraph, pptx, rows, shape, slide, xlsx
from tests.support.pdf import Pdf, Words
from tests.support.postgres import open_folder
from tests.support.scans import lines, saved, sheet
from tools.compare_libraries import Library, as_object, compare, open_library

WORDS = (
    *("harbour", "keeper", "lamp", "boat", "fee", "quay", "rope", "anchor", "pilot"),
    *("tide", "chart", "crane", "lease", "pier", "ferry", "cargo", "signal", "fog"),
)
# A file in which each of these texts is a page, slide, row or paragraph.
Write = Callable[[str, list[str]], bytes]


def write_html(title: str, texts: list[str]) -> bytes:
    body = "".join(f"<p>{text}</p>" for text in texts)
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>".encode()


def write_mail(title: str, texts: list[str]) -> bytes:
    head = f"From: a@example.org\nTo: b@example.org\nSubject: {title}\nDate: Tue, 3 Mar 2026 09:00:00 +0000\n\n"
    return (head + "\n\n".join(texts) + "\n").encode()


def write_pdf(title: str, texts: list[str]) -> bytes:
    head = [Words(title, size=18, font="bold")]
    return Pdf([[*head, *lines(textwrap.wrap(text, 80), top=140)] for text in texts], info={"Title": title}).write()


def write_docx(title: str, texts: list[str]) -> bytes:
    heading = '<w:style w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    return docx(paragraph(title, "Heading1") + "".join(map(paragraph, texts)), styles=heading)


def write_picture(title: str, texts: list[str]) -> bytes:
    words = lines([title, *textwrap.wrap(texts[0], 60)], top=60)
    with tempfile.TemporaryDirectory() as folder:
        return saved(sheet(words, Path(folder)), "PNG")


FORMATS: dict[str, Write] = {
    "md": lambda title, texts: "\n\n".join([f"# {title}", *texts, ""]).encode(),
    "txt": lambda title, texts: "\n\n".join([title, *texts, ""]).encode(),
    "html": write_html,
    "csv": lambda title, texts: "\n".join(["name,words", *(f"{title},{one}" for one in texts), ""]).encode(),
    "json": lambda title, texts: json.dumps({"title": title, "texts": texts}).encode(),
    "eml": write_mail,
    "pdf": write_pdf,
    "docx": write_docx,
    "pptx": lambda title, texts: pptx(slide(shape("title", title) + shape(None, one)) for one in texts),
    "xlsx": lambda title, texts: xlsx({title: rows(["Part", "Text"], *([n, one] for n, one in enumerate(texts)))}),
    "png": write_picture,
}


def write_documents(folder: Path, number: int, corpus: Path | None) -> None:
    chance = random.Random(7)
    found = (
        [
            one
            for one in sorted(corpus.rglob("*"))
            if one.is_file() and "bombs" not in one.parts and one.stat().st_size < 1 << 19
        ]
        if corpus
        else []
    )
    for place, source in enumerate(found[: number // 5]):
        (folder / f"{place:04d}-{source.name}").write_bytes(source.read_bytes())
    for place in range(number - len(found[: number // 5])):
        ending = list(FORMATS)[place % len(FORMATS)]
        (folder / f"note-{place:04d}.{ending}").write_bytes(FORMATS[ending](f"Note {place}", make_texts(chance)))


def make_texts(chance: random.Random) -> list[str]:
    sentences = (" ".join(chance.choices(WORDS, k=9)).capitalize() for _ in itertools.count())
    return [". ".join(itertools.islice(sentences, chance.randint(3, 8))) for _ in range(chance.randint(1, 3))]


def run_killed(instance: Instance, arguments: list[str], done: Callable[[], int], kills: Sequence[int] = ()) -> float:
    """Run a command, kill it when so many documents are done, and repeat it to its end. Returns the seconds."""
    began, most = time.monotonic(), 0
    for number in kills:
        process = start(instance, arguments)
        while done() < number:
            if process.poll() is not None:
                sys.exit(f"octavo {arguments[0]} ended before it was killed")
            time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        print(f"killed octavo {arguments[0]} after {time.monotonic() - began:.1f} s, with {done()} documents")
    process = start(instance, arguments)
    while process.poll() is None:
        most = max(most, memory_of(process.pid))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"octavo {arguments[0]} failed")
    print(f"most memory of octavo {arguments[0]}: {most >> 20} MB")
    return time.monotonic() - began


def prepare(instance: Instance, key: str, library: Library, folder: Path, kills: Sequence[int]) -> float:
    """Let a job prepare the export, kill its worker when so many documents are done, and unpack the file."""
    began = time.monotonic()
    with SyncClient(instance.address, key=key) as client:
        made = client.prepare_export()
        for number in kills:
            wait_for_documents(client, made.id, number)
            print(f"killed the worker after {time.monotonic() - began:.1f} s, with {number} documents or more")
            kill_workers(instance)
        wait_until_idle(library)
        archive = folder.with_suffix(".tar")
        size = client.download_prepared_export(made.id, archive)
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    print(f"a file of {size >> 20} MB")
    return time.monotonic() - began


def wait_for_documents(client: SyncClient, export: UUID, number: int) -> None:
    while (found := client.prepared_export(export)).documents < number:
        if found.status == "complete":
            sys.exit("the export ended before its worker was killed")
        time.sleep(0.02)


def kill_workers(instance: Instance) -> None:
    found = json.loads(instance.octavo("status", "--json").stdout)["processes"]
    for one in found:
        if one["name"].startswith("worker") and one["pid"]:
            os.kill(one["pid"], signal.SIGKILL)


def wait_until_idle(library: Library) -> None:
    """Wait until no job is waiting or running, because an export of a library that changes is not a snapshot."""
    while any(as_object(library.get("/jobs", status=one, limit=1))["items"] for one in ("queued", "processing")):
        time.sleep(1)


def count_exported(folder: Path) -> int:
    return BATCH_DOCUMENTS * len(list(folder.glob("documents/*.sha256")))


def start(instance: Instance, arguments: list[str], output: int | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "octavo", *arguments], env=instance.environment, stdout=output)


def memory_of(process: int) -> int:
    try:
        return psutil.Process(process).memory_info().rss
    except psutil.Error:
        return 0


def make_key(instance: Instance) -> str:
    made = instance.octavo("keys", "add", "transfer", "--scope", "write", "--json")
    return str(json.loads(made.stdout)["key"])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--documents", type=int, default=1000)
    options.add_argument("--corpus", type=Path)
    options.add_argument("--prepared", action="store_true", help="Use a prepared export instead of `octavo export`.")
    given = options.parse_args()
    with open_folder() as folder, instance_in(folder / "one") as one, instance_in(folder / "other") as other:
        for name in ("files", "one", "other"):
            (folder / name).mkdir()
        write_documents(folder / "files", given.documents, given.corpus)
        one.start()
        other.start()
        keys = [make_key(each) for each in (one, other)]
        libraries = [open_library(each.address, key) for each, key in zip((one, other), keys, strict=True)]
        start(one, ["add", str(folder / "files"), "--wait"], subprocess.DEVNULL).wait()
        wait_until_idle(libraries[0])
        total, out = len(libraries[0].documents()), folder / "export"
        kills = [total // 3, 2 * total // 3]
        if given.prepared:
            exported = prepare(one, keys[0], libraries[0], out, kills)
        else:
            exported = run_killed(one, ["export", str(out)], lambda: count_exported(out), kills)
        imported = run_killed(other, ["import", str(out)], lambda: len(libraries[1].documents()), kills)
        again = run_killed(other, ["import", str(out)], lambda: 0)
        found = list(compare(*libraries))
        print("\n".join(found[:20]))
        print(f"{total} documents: export {exported:.1f} s, import {imported:.1f} s, again {again:.1f} s")
        print(f"{len(found)} differences")
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
