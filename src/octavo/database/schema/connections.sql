-- connections

-- A connection has no direction, so each pair is kept once, in one order. A quote is a place in its passage and is read
-- from there: it cannot say what the passage does not. What goes with a passage, a revision or a document goes by itself.
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
    CONSTRAINT kept_once UNIQUE (source_chunk, target_chunk, engine),
    CONSTRAINT without_direction CHECK (source_chunk < target_chunk),
    CONSTRAINT between_documents CHECK (source_document <> target_document)
);

COMMENT ON COLUMN connections.source_start IS 'In characters of the passage; from there to source_end is what is quoted.';
COMMENT ON COLUMN connections.digest IS 'Of what both sides say; a person''s verdict is remembered by it.';

CREATE INDEX connections_target ON connections (target_chunk);
CREATE INDEX connections_source_document ON connections (source_document);
CREATE INDEX connections_target_document ON connections (target_document);
CREATE INDEX connections_owner ON connections (owner_id);

-- What a person said about a connection, by what it says: it outlives rows, revisions and documents.
CREATE TABLE connection_verdicts (
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    digest     bytea NOT NULL CHECK (length(digest) = 32),
    verdict    text NOT NULL CHECK (verdict IN ('confirmed', 'dismissed')),
    decided_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_id, digest)
);

-- The page on which a place in a passage is.
CREATE FUNCTION page_of(passage chunks, place integer) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN passage.page_from = passage.page_to THEN passage.page_from ELSE (
        SELECT max(p.number) FROM pages p
        WHERE p.document_id = passage.document_id AND p.revision = passage.revision
          AND p.number BETWEEN passage.page_from AND passage.page_to
          AND (p.char_start <= passage.char_start + place OR p.number = passage.page_from)) END
$$;

-- How much the engines matter to an owner, from 0 to 100; who has no row has the usual weights.
CREATE TABLE connection_weights (
    owner_id                uuid PRIMARY KEY REFERENCES owners ON DELETE CASCADE,
    semantic_similarity     smallint NOT NULL CHECK (semantic_similarity BETWEEN 0 AND 100),
    contradiction_detection smallint NOT NULL CHECK (contradiction_detection BETWEEN 0 AND 100),
    thematic_bridge         smallint NOT NULL CHECK (thematic_bridge BETWEEN 0 AND 100)
);

-- Have documents compared with all others of their owner. A document's revision is put in line once; whoever has it
-- compared again says why, and that only once, too. What lies in the trash or has no vectors is left out.
CREATE FUNCTION connect_documents(of_documents uuid[], because text) RETURNS integer LANGUAGE sql AS $$
    SELECT count(*)::integer FROM enqueue_jobs((
        SELECT coalesce(jsonb_agg(jsonb_build_object(
            'id', gen_random_uuid(), 'kind', 'detect_connections', 'owner_id', d.owner_id, 'document_id', d.id,
            'key', concat_ws(':', 'connections', d.id, d.revision, because),
            'priority', 6, 'input', jsonb_build_object('revision', d.revision)) ORDER BY d.created_at, d.id), '[]')
        FROM documents d WHERE d.id = ANY (of_documents) AND d.embeddings_ready AND d.deleted_at IS NULL)) AS put
    WHERE put.made;
$$;

-- Documents are compared as soon as their vectors are there, and when they come back from the trash: what came in meanwhile
-- was not compared with them.
CREATE FUNCTION connect_when_ready() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM connect_documents(ARRAY[NEW.id], CASE WHEN OLD.deleted_at IS NOT NULL THEN format('restored:%s', OLD.deleted_at) END);
    RETURN NULL;
END $$;
CREATE TRIGGER connect_when_ready AFTER UPDATE OF embeddings_ready, deleted_at ON documents FOR EACH ROW
    WHEN (NEW.embeddings_ready AND NEW.deleted_at IS NULL AND (NOT OLD.embeddings_ready OR OLD.deleted_at IS NOT NULL))
    EXECUTE FUNCTION connect_when_ready();

-- A text whose passages were described only after they had vectors is compared again: bridges are made of descriptions.
CREATE FUNCTION connect_when_described() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM job_stages s JOIN jobs j ON j.document_id = NEW.id AND j.kind = 'detect_connections'
               WHERE s.job_id = NEW.process_id AND s.stage = 'enriched' AND s.finished_at > j.created_at) THEN
        PERFORM connect_documents(ARRAY[NEW.id], 'described');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER connect_when_described AFTER UPDATE OF status ON documents FOR EACH ROW
    WHEN (NEW.status = 'completed' AND OLD.status <> 'completed' AND NEW.embeddings_ready AND NOT NEW.needs_classification)
    EXECUTE FUNCTION connect_when_described();
