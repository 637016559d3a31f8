"""How well searching finds German and Spanish texts: nDCG@10 by words alone, by meaning, and by both.

`python -m benchmarks.search.languages FOLDER`: FOLDER contains the folders `de-DE` and `es-ES` of the Debian
Administrator's Handbook in HTML (Debian package debian-handbook 11.20220922, /usr/share/doc/debian-handbook/html). Each
section is a document of up to 220 words without its heading; the heading is the query that must find it. Headings of
one word, those of several sections, and sections that are not translated are left out. Both must not be worse than
words alone.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Iterator
from math import log2
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import psycopg
from lxml import html

from benchmarks.search.library import Passage, Text, add_texts, empty_database, new_owner
from octavo.ai.vectors import Vectors
from octavo.database import Database
from octavo.language import NAME, Embedder
from octavo.language.languages import detect_language
from octavo.search import Mode, search

MODES: tuple[Mode, ...] = ("text", "semantic", "hybrid")
LANGUAGES = {"de": "de-DE", "es": "es-ES"}
MIN_WORDS, MAX_WORDS = 40, 220
_NUMBER = re.compile(r"^(?:\d+\.)*\d*\.?\s*")
_SYNTAX = re.compile(r'["-]')


def main(folder: Path) -> int:
    worse = 0
    print("language  sections  queries" + "".join(f"{mode:>10}" for mode in MODES))
    for language, name in LANGUAGES.items():
        sections = [one for one in dict.fromkeys(read_sections(folder / name)) if detect_language(one[1]) == language]
        counts = Counter(heading for heading, _ in sections)
        queries = [(place, heading) for place, (heading, _) in enumerate(sections) if counts[heading] == 1]
        queries = [(place, heading) for place, heading in queries if len(heading.split()) > 1]
        scores = measure(language, [text for _, text in sections], queries)
        print(f"{language:<8}{len(sections):>10}{len(queries):>9}" + "".join(f"{scores[mode]:10.4f}" for mode in MODES))
        worse += scores["hybrid"] < scores["text"]
    return min(worse, 1)


def read_sections(folder: Path) -> Iterator[tuple[str, str]]:
    """The heading and the text of each section."""
    for path in sorted(folder.glob("*.html")):
        heading, words = "", list[str]()
        for element in cast("Any", html).parse(path).getroot().iter("h1", "h2", "h3", "h4", "div"):
            text: list[str] = element.text_content().split()
            if element.tag == "div":
                words += text if element.get("class") == "para" else []
                continue
            if heading and len(words) >= MIN_WORDS:
                yield heading, " ".join(words[:MAX_WORDS])
            heading, words = _NUMBER.sub("", " ".join(text)).strip(), []
        if heading and len(words) >= MIN_WORDS:
            yield heading, " ".join(words[:MAX_WORDS])


def measure(language: str, texts: list[str], queries: list[tuple[int, str]]) -> dict[Mode, float]:
    embedder = Embedder(threads=2)
    vectors = embedder.embed(texts).tolist()
    asked = [Vectors(NAME, [vector]) for vector in embedder.embed([heading for _, heading in queries]).tolist()]
    with empty_database() as info:
        with psycopg.connect(info, autocommit=True) as connection:
            owner = new_owner(connection)
            documents = [
                Text("x", [Passage(text, vector)], language) for text, vector in zip(texts, vectors, strict=True)
            ]
            ids = add_texts(connection, owner, documents, NAME)
            connection.execute("ANALYZE")
        places = {chunk: number for number, (chunk,) in enumerate(ids)}
        return {mode: asyncio.run(score(info, owner, queries, asked, mode, places)) for mode in MODES}


async def score(
    info: str,
    owner: UUID,
    queries: list[tuple[int, str]],
    asked: list[Vectors],
    mode: Mode,
    places: dict[UUID, int],
) -> float:
    """One section is right, so nDCG depends on its place alone."""
    gains = 0.0
    async with Database(info) as database, database.transaction() as connection:
        for (right, heading), vector in zip(queries, asked, strict=True):
            plain = _SYNTAX.sub(" ", heading)
            hits = await search(connection, owner, plain, mode=mode, limit=10, vectors=[vector])
            found = [places[hit.chunk_id] for hit in hits if hit.chunk_id]
            gains += 1 / log2(found.index(right) + 2) if right in found else 0.0
    return gains / len(queries)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
