"""Passages, vectors and connections written straight into the database, for tests of what is done with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from octavo.connect.evidence import digest_of
from octavo.core.types import new_id
from octavo.records.search import Engine

Execute = Callable[..., Awaitable[object]]
CONTENT = "The bridge is safe."


async def put_passage(execute: Execute, document: UUID, content: str = CONTENT, index: int = 0) -> UUID:
    """A passage of the revision that is read."""
    passage = new_id()
    await execute(
        "INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count) "
        "SELECT %s, id, revision, %s, %s, 0, %s, 4 FROM documents WHERE id = %s",
        *(passage, index, content, len(content), document),
    )
    return passage


async def put_vector(execute: Execute, passage: UUID, vector: Sequence[float], model: str = "test") -> None:
    await execute(
        "INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector) "
        "SELECT embedding_model(%s, %s), c.id, d.owner_id, d.id, %s::vector "
        "FROM chunks c JOIN documents d ON d.id = c.document_id WHERE c.id = %s",
        *(model, len(vector), str(list(vector)), passage),
    )


async def connect(execute: Execute, owner: UUID, one: UUID, other: UUID, engine: Engine = Engine.CONTRADICTION) -> UUID:
    """Two documents by a passage each that is made for it."""
    ident, passages = new_id(), [(await put_passage(execute, document), document) for document in (one, other)]
    (source, source_document), (target, target_document) = sorted(passages)
    await execute(
        "INSERT INTO connections (id, owner_id, engine, source_chunk, target_chunk, source_document, target_document, "
        "strength, source_start, source_end, target_start, target_end, explanation, status, made_by, digest) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, 0.8, 0, 10, 0, 10, 'Both say it.', 'possible', 'local', %s)",
        *(ident, owner, engine, source, target, source_document, target_document),
        digest_of(engine, [CONTENT[:10], f"{CONTENT[:10]}{ident}"]),
    )
    return ident
