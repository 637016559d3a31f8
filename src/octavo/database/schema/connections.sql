-- Connections between chunks of different documents.

-- A connection has no direction, so each pair of quotes is stored once, in a fixed order. A quote is a range in its chunk and is read
-- from there, so it always matches the text. Connections are deleted with their chunk, revision or document.
CREATE TABLE connections (
    id              uuid PRIMARY KEY,
    owner_id        uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    engine          text NOT NULL CHECK (engine IN ('semantic_similarity', 'contradiction_detection', 'thematic_bridge')),
    source_chunk    uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    target_chunk    uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    source_document uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    target_document uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    strength        real NOT NULL CHECK (strength BETWEEN 0 AND 1),
    source_start    integer NOT NULL CHECK (source_start >= 0),
    source_end      integer NOT NULL CHECK (source_end > source_start),
    target_start    integer NOT NULL CHECK (target_start >= 0),
    target_end      integer NOT NULL CHECK (target_end > target_start),
    explanation     text NOT NULL,
    status          text NOT NULL CHECK (status IN ('found', 'possible', 'confirmed')),
    made_by         text NOT NULL,
    digest          bytea NOT NULL CHECK (length(digest) = 32),
    detail          jsonb NOT NULL DEFAULT '{}',
    found_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT kept_once UNIQUE (source_chunk, target_chunk, engine, digest),
    CONSTRAINT without_direction CHECK (source_chunk < target_chunk),
    CONSTRAINT between_documents CHECK (source_document <> target_document)
);

COMMENT ON COLUMN connections.source_start IS 'In characters of the chunk; the quote goes from here to source_end.';
COMMENT ON COLUMN connections.digest IS 'Hash of both quotes. The verdict of a person is stored under it.';

-- Only contradictions can have several pairs of quotes in the same two chunks.
CREATE UNIQUE INDEX connections_one_of_a_kind ON connections (source_chunk, target_chunk, engine)
WHERE engine <> 'contradiction_detection';
CREATE INDEX connections_target ON connections (target_chunk);
CREATE INDEX connections_source_document ON connections (source_document);
CREATE INDEX connections_target_document ON connections (target_document);
CREATE INDEX connections_owner ON connections (owner_id);

-- The verdict of a person on a connection. Its key is the hash of both quotes, so it also applies to new revisions.
CREATE TABLE connection_verdicts (
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    digest     bytea NOT NULL CHECK (length(digest) = 32),
    verdict    text NOT NULL CHECK (verdict IN ('confirmed', 'dismissed')),
    decided_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_id, digest)
);

-- The page of a position in a chunk.
CREATE FUNCTION page_of(chunk chunks, place integer) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN chunk.page_from = chunk.page_to THEN chunk.page_from ELSE (
        SELECT max(p.number) FROM pages p
        WHERE p.document_id = chunk.document_id AND p.revision = chunk.revision
          AND p.number BETWEEN chunk.page_from AND chunk.page_to
          AND (p.char_start <= chunk.char_start + place OR p.number = chunk.page_from)) END
$$;

-- The weight of each engine for an owner, from 0 to 100. Owners without a row use the default weights.
CREATE TABLE connection_weights (
    owner_id                uuid PRIMARY KEY REFERENCES owners ON DELETE CASCADE,
    semantic_similarity     smallint NOT NULL CHECK (semantic_similarity BETWEEN 0 AND 100),
    contradiction_detection smallint NOT NULL CHECK (contradiction_detection BETWEEN 0 AND 100),
    thematic_bridge         smallint NOT NULL CHECK (thematic_bridge BETWEEN 0 AND 100)
);

