"""Pages and their text side by side, for people who judge them.

`python -m benchmarks.extraction.report FOLDER --out OUT`: a seed chooses pages of several kinds of files; a kind is a
folder and a file ending. OUT gets `report.html` and `verdicts.json`, in which a person sets `order` and `content` of
each page to true or false.

`python -m benchmarks.extraction.report --verdicts OUT/verdicts.json` counts them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

from benchmarks.extraction.rows import files_in, report
from octavo.cli.extract import HEAD, draw_page, marks_of, write_page
from octavo.core.errors import OctavoError
from octavo.extract.extracted import PAGED, Extracted, Page, SourceType
from octavo.extract.file_reader import FileReader, open_reader
from octavo.extract.pictures.page_images import PRELOAD

KINDS, PAGES, GOAL = 20, 60, 57
PAGES_OF_A_FILE = 3
MOST_CHARACTERS, MOST_BYTES = 6000, 20 << 20
# Truth and templates beside the files, files that are made to be refused, and photos without text.
NOT_DOCUMENTS = {".md", ".json", ".yml", ".txt", ".tsv", ".static", ".qry", ".1400", ""}
NOT_KINDS = {"bombs", "heic", "text", "retrieval", "youtube"}


class Sample(NamedTuple):
    """A page to judge; `page` is None for files without pages."""

    kind: str
    path: Path
    extracted: Extracted
    page: Page | None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction.report", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--kinds", type=int, default=KINDS)
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--verdicts", type=Path)
    options = parser.parse_args()
    if options.verdicts:
        return count_verdicts(json.loads(options.verdicts.read_text()))
    if not options.folder or not options.out:
        parser.error("FOLDER and --out are required")
    options.out.mkdir(parents=True, exist_ok=True)
    return asyncio.run(make_report(options))


def count_verdicts(verdicts: Sequence[dict[str, object]]) -> None:
    judged = [one for one in verdicts if one["order"] is not None and one["content"] is not None]
    right = [one for one in judged if one["order"] and one["content"]]
    print(
        f"{len(right)} of {len(judged)} judged pages are right in order and content; {len(verdicts)} pages, goal {GOAL}"
    )
    for one in judged:
        if one not in right:
            print(f"{one['number']:3} {one['kind']}: {one['file']}, page {one['page']}: {one['remark']}")


async def make_report(options: argparse.Namespace) -> None:
    kinds = find_kinds(files_in(options.folder, "*"), options.folder, random.Random(options.seed))
    verdicts: list[dict[str, object]] = []
    with (options.out / "report.html").open("w", encoding="utf-8", errors="replace") as html:
        html.write(HEAD + f"<p>Pages of {options.kinds} kinds, chosen with seed {options.seed}.</p>\n")
        async with open_reader(more=PRELOAD) as reader:
            for sample in await choose_pages(reader, kinds, options):
                verdicts.append(as_verdict(len(verdicts) + 1, sample, options.folder))
                html.write(await write_sample(reader, sample, verdicts[-1]))
        html.write("</body></html>\n")
    (options.out / "verdicts.json").write_text(json.dumps(verdicts, indent=1, ensure_ascii=False) + "\n")
    count = len({one["kind"] for one in verdicts})
    print(f"{len(verdicts)} pages of {count} kinds: report.html and verdicts.json are in {options.out}")


def find_kinds(files: Sequence[Path], folder: Path, chance: random.Random) -> dict[str, list[Path]]:
    """All kinds of files, those with page pictures first, because text is best judged beside a picture."""
    kinds: dict[str, list[Path]] = defaultdict(list)
    for path in {path.name: path for path in files}.values():  # the same file may be in two folders
        place = path.relative_to(folder)
        if path.is_file() and path.suffix not in NOT_DOCUMENTS and place.parts[0] not in NOT_KINDS:
            kinds[f"{place.parent.as_posix()} {path.suffix}"].append(path)
    names = sorted(kinds)
    chance.shuffle(names)
    names.sort(key=lambda name: not name.endswith((".pdf", ".tif", ".png", ".jpg", ".heic", ".html")))
    return {name: sorted(kinds[name]) for name in names}


async def choose_pages(reader: FileReader, kinds: dict[str, list[Path]], options: argparse.Namespace) -> list[Sample]:
    """The same number of pages of each kind, of as many files as possible. Kinds with more pages make up for others."""
    share = -(-options.pages // options.kinds)
    found: list[list[Sample]] = []
    for kind, files in kinds.items():
        chance = random.Random(f"{options.seed} {kind}")
        read: list[list[Sample]] = []
        for path in chance.sample(files, len(files)):
            if len(read) < 2 * share and (samples := await read_pages(reader, kind, path, chance)):
                read.append(samples)
        # One page of each file, then a second one, and so on.
        samples = list(filter(None, chain.from_iterable(zip_longest(*read))))
        report(f"{kind}: {len(samples)} pages to choose from")
        found += [samples] if samples else []
        if len(found) == options.kinds:
            break
    rounds = list(filter(None, chain.from_iterable(zip_longest(*found))))[: options.pages]
    return sorted(rounds, key=lambda sample: sample.kind)


async def read_pages(reader: FileReader, kind: str, path: Path, chance: random.Random) -> list[Sample]:
    """Some pages of a file in random order."""
    if path.stat().st_size > MOST_BYTES:  # noqa: ASYNC240 - one file at a time
        return []
    try:
        extracted = await reader.read(path)
    except OctavoError as error:
        report(f"{path.name} is left out: {error.code}")
        return []
    pages: list[Page | None] = list(extracted.pages) if extracted.source_type in PAGED else [None]
    return [Sample(kind, path, extracted, page) for page in chance.sample(pages, min(len(pages), PAGES_OF_A_FILE))]


def as_verdict(number: int, sample: Sample, folder: Path) -> dict[str, object]:
    return {
        "number": number,
        "kind": sample.kind,
        "file": sample.path.relative_to(folder).as_posix(),
        "page": sample.page.number if sample.page else None,
        "quality": sample.extracted.quality,
        "order": None,
        "content": None,
        "remark": "",
    }


async def write_sample(reader: FileReader, sample: Sample, verdict: dict[str, object]) -> str:
    about = f"{escape(str(verdict['file']))}, {verdict['quality']}"
    head = f"<h1>{verdict['number']}. {escape(sample.kind)}</h1><p>{about}</p>\n"
    if sample.page:
        picture = await draw_page(reader.sandbox, sample.path, sample.extracted, sample.page)
        text = sample.extracted.markdown[sample.page.start : sample.page.end]
        return head + write_page(sample.page, picture, marks_of(sample.extracted, sample.page.number), text)
    text = sample.extracted.markdown[:MOST_CHARACTERS]
    return head + f'<div class="page"><div>{"".join(original(sample))}</div><pre>{escape(text)}</pre></div>\n'


def original(sample: Sample) -> Iterator[str]:
    """A web page without its scripts, or the Markdown of another program, if it lies beside the file."""
    other = sample.path.with_name(sample.path.name + ".md")
    if sample.extracted.source_type is SourceType.HTML:
        page = escape(sample.path.read_text(errors="replace"))
        yield f'<iframe sandbox="" srcdoc="{page}" style="width:100%;height:70vh;background:#fff"></iframe>'
    elif other.exists():
        yield f"<pre>{escape(other.read_text()[:MOST_CHARACTERS])}</pre>"
    else:
        yield "<p>No picture of this file.</p>"


if __name__ == "__main__":
    main()
