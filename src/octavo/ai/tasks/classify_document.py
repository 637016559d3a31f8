"""Title, author, summary, date, language, type and tags of a document, from its text."""

from __future__ import annotations

from octavo.ai.calls import Part, Quoted, Words
from octavo.ai.tasks.task import Task
from octavo.language.insights import DocumentInsight, Source

# What a document is stands at its beginning; its headings say what the rest is about.
MOST_CHARACTERS = 24_000
MOST_HEADINGS = 100
ANSWER_TOKENS = 400


def show(source: Source) -> list[Part]:
    parts: list[Part] = [Words(f"Catalogue this document. It came in as: {source.kind}.")]
    known = {"file name": source.filename, "title": source.title, "author": source.author, "date": source.date}
    told = "\n".join(f"{name}: {value}" for name, value in known.items() if value)
    if told:
        parts.append(Quoted("what-the-file-says", told))
    headings = list(dict.fromkeys(heading for passage in source.passages for heading in passage.headings))
    if headings:
        parts.append(Quoted("headings", "\n".join(headings[:MOST_HEADINGS])))
    text = "\n\n".join(passage.content for passage in source.passages)
    parts.append(Quoted("document", text[:MOST_CHARACTERS]))
    return parts


def classify_here(source: Source) -> DocumentInsight:
    from octavo.language import describe

    return describe(source).document


CLASSIFY_DOCUMENT: Task[Source, DocumentInsight] = Task(
    name="classify_document",
    output=DocumentInsight,
    show=show,
    expect=lambda _source: ANSWER_TOKENS,
    output_tokens=5 * ANSWER_TOKENS,
    check=lambda _source, answer: answer,
    local=classify_here,
)
