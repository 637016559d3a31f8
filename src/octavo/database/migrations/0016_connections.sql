-- What passages of different documents have to do with each other.

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

INSERT INTO job_kinds (name, max_attempts, time_limit, limit_renewed_by_stage)
VALUES ('detect_connections', 3, interval '10 minutes', true), ('index_vectors', 3, interval '2 hours', false);

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

CREATE INDEX chunk_concepts_concept ON chunk_concepts (lower(concept));

-- As before; connections stay with their documents.
CREATE OR REPLACE FUNCTION vectors_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE chunk_embeddings SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    UPDATE connections SET owner_id = NEW.owner_id
    WHERE NEW.id IN (source_document, target_document) AND owner_id <> NEW.owner_id;
    RETURN NULL;
END $$;

-- As before; what a visitor said about connections comes along, and what came is compared with what was there.
CREATE OR REPLACE FUNCTION merge_owner(visitor uuid, person uuid) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    moved integer;
    arrived uuid[] := ARRAY(SELECT id FROM documents WHERE owner_id = visitor);
BEGIN
    PERFORM FROM owners WHERE id IN (visitor, person) ORDER BY id FOR UPDATE;
    IF NOT EXISTS (SELECT FROM owners WHERE id = visitor AND kind = 'anonymous') THEN
        RAISE EXCEPTION 'owner % is not a visitor', visitor USING ERRCODE = 'check_violation';
    END IF;
    -- Jobs before documents, as a job that ends does it.
    PERFORM FROM jobs WHERE owner_id = visitor ORDER BY id FOR UPDATE;
    UPDATE documents d SET duplicate_of = twin.document_id
    FROM uploads u JOIN uploads twin ON twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical
    WHERE u.owner_id = visitor AND u.is_canonical AND d.id = u.document_id;
    UPDATE uploads u SET is_canonical = false
    WHERE owner_id = visitor AND is_canonical AND EXISTS (
        SELECT FROM uploads twin WHERE twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical);
    UPDATE uploads SET owner_id = person WHERE owner_id = visitor;
    -- Names that both used become one.
    UPDATE documents d SET collection_id = theirs.id
    FROM collections mine JOIN collections theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor AND d.collection_id = mine.id;
    DELETE FROM collections mine USING collections theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE collections SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO document_tags (document_id, tag_id, made_by)
    SELECT dt.document_id, theirs.id, dt.made_by FROM document_tags dt
    JOIN tags mine ON mine.id = dt.tag_id JOIN tags theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor
    ON CONFLICT DO NOTHING;
    DELETE FROM tags mine USING tags theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE tags SET owner_id = person WHERE owner_id = visitor;
    UPDATE jobs j SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM jobs same WHERE same.owner_id = person AND same.kind = j.kind AND same.key = j.key)
        THEN format('%s:%s', j.key, j.id) ELSE j.key END
    WHERE owner_id = visitor;
    UPDATE documents SET owner_id = person, updated_at = clock_timestamp() WHERE owner_id = visitor;
    GET DIAGNOSTICS moved = ROW_COUNT;
    UPDATE notifications SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO connection_verdicts (owner_id, digest, verdict, decided_at)
    SELECT person, digest, verdict, decided_at FROM connection_verdicts WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    INSERT INTO connection_weights (owner_id, semantic_similarity, contradiction_detection, thematic_bridge)
    SELECT person, semantic_similarity, contradiction_detection, thematic_bridge FROM connection_weights
    WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    PERFORM connect_documents(arrived, format('of:%s', visitor));
    DELETE FROM sessions WHERE owner_id = visitor;
    DELETE FROM owners WHERE id = visitor;
    RETURN moved;
END $$;
