"""Puts texts into a database as documents with passages, without reading files: what is measured is only searching."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

import psycopg

from octavo.core.types import new_id
from octavo.database.embedded.cluster import NEWEST
from tests.support.postgres import run_server

AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Passage:
    content: str
    vector: Sequence[float]


@dataclass(frozen=True, slots=True)
class Text:
    """A document: its title, its pieces, and the language that it is said to have."""

    title: str
    passages: Sequence[Passage]
    language: str = "en"


@contextmanager
def empty_database() -> Generator[str]:
    with run_server(NEWEST) as server, server.database() as info:
        yield info


def new_owner(connection: psycopg.Connection) -> UUID:
    owner = new_id()
    connection.execute("INSERT INTO owners (id, kind) VALUES (%s, 'user')", [owner])
    return owner


def add_texts(connection: psycopg.Connection, owner: UUID, texts: Sequence[Text], model: str) -> list[list[UUID]]:
    """The ids of their passages, in order."""
    size = len(texts[0].passages[0].vector)
    (number,) = connection.execute("SELECT embedding_model(%s, %s)", [model, size]).fetchone() or (0,)
    ids = [[new_id() for _ in text.passages] for text in texts]
    documents = [new_id() for _ in texts]
    with connection.cursor() as cursor:
        with cursor.copy(
            "COPY documents (id, owner_id, process_id, status, title, filename, content_type, source_type, sha256, "
            "bytes, revision, last_revision, text_ready, language) FROM STDIN"
        ) as copy:
            for document, text in zip(documents, texts, strict=True):
                copy.write_row(
                    [document, owner, new_id(), "completed", text.title, "note.md", "text/markdown", "markdown",
                     bytes(32), 1, 1, 1, True, text.language]
                )  # fmt: skip
        rows = [
            (chunk, document, index, passage)
            for document, text, chunks in zip(documents, texts, ids, strict=True)
            for index, (chunk, passage) in enumerate(zip(chunks, text.passages, strict=True))
        ]
        for start in range(0, len(rows), AT_ONCE):
            part = rows[start : start + AT_ONCE]
            with cursor.copy(
                "COPY chunks (id, document_id, revision, index, content, char_start, char_end, word_count) FROM STDIN"
            ) as copy:
                for chunk, document, index, passage in part:
                    words = len(passage.content.split())
                    copy.write_row([chunk, document, 1, index, passage.content, 0, len(passage.content), words])
            with cursor.copy(
                "COPY chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector) FROM STDIN"
            ) as copy:
                for chunk, document, _, passage in part:
                    copy.write_row([number, chunk, owner, document, str(list(passage.vector))])
    return ids
