-- Threads: questions to documents, their follow-up questions, and the answers.

CREATE TABLE threads (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    title      text NOT NULL CHECK (title <> ''),
    scope      jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN threads.title IS 'The first question.';
COMMENT ON COLUMN threads.scope IS 'The documents that the last question was asked about: a collection, a query or document_ids; {} for all.';

CREATE INDEX threads_owner ON threads (owner_id, updated_at DESC, id DESC);
CREATE INDEX threads_updated ON threads (updated_at);

-- A turn is stored when its question is asked, and its answer in one statement when it is complete. If answering is interrupted, the
-- turn stays unfinished.
CREATE TABLE turns (
    id            uuid PRIMARY KEY,
    thread_id     uuid NOT NULL REFERENCES threads ON DELETE CASCADE,
    number        integer NOT NULL CHECK (number > 0),
    question      text NOT NULL CHECK (question <> ''),
    understood_as text,
    status        text NOT NULL DEFAULT 'unfinished' CHECK (status IN ('unfinished', 'answered', 'failed', 'removed')),
    attempt       integer NOT NULL DEFAULT 1 CHECK (attempt > 0),
    answer        text,
    statements    jsonb NOT NULL DEFAULT '[]',
    citations     jsonb NOT NULL DEFAULT '[]',
    found         boolean,
    note          text,
    made_by       text,
    cost_usd      numeric(12, 6) NOT NULL DEFAULT 0,
    error         jsonb,
    asked_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_at   timestamptz,
    UNIQUE (thread_id, number),
    CONSTRAINT answered_with_result CHECK ((status = 'answered') = (found IS NOT NULL)),
    CONSTRAINT failed_with_error CHECK ((status = 'failed') = (error IS NOT NULL))
);

COMMENT ON COLUMN turns.understood_as IS 'The follow-up question with its subject, if it was rewritten.';
COMMENT ON COLUMN turns.attempt IS 'Counts how often the question was answered. Only the latest attempt stores its answer.';
COMMENT ON COLUMN turns.status IS 'unfinished: being answered, stopped or interrupted. removed: the answer quoted a document that was deleted permanently.';

CREATE INDEX turns_citations ON turns USING gin (citations jsonb_path_ops);

-- Removes the answers that quote permanently deleted documents, because the quotes are text of these documents.
CREATE FUNCTION remove_quoting_answers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE turns t SET status = 'removed', attempt = attempt + 1, answer = NULL, statements = '[]', citations = '[]', found = NULL, note = NULL
    FROM deleted d
    WHERE t.citations @> jsonb_build_array(jsonb_build_object('document_id', d.id));
    RETURN NULL;
END $$;

CREATE TRIGGER remove_quoting_answers AFTER DELETE ON documents REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION remove_quoting_answers();

-- Moves everything of a visitor to the person who signed in, and deletes the visitor. If the person already has the content of a
-- document, the document becomes a duplicate. Returns the moved documents, so that the caller can compare them with the
-- others. Visitors have no recipients.
CREATE OR REPLACE FUNCTION merge_owner(visitor uuid, person uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moved uuid[];
BEGIN
    PERFORM FROM owners WHERE id IN (visitor, person) ORDER BY id FOR UPDATE;
    IF NOT EXISTS (SELECT FROM owners WHERE id = visitor AND kind = 'anonymous') THEN
        RAISE EXCEPTION 'owner % is not a visitor', visitor USING ERRCODE = 'check_violation';
    END IF;
    -- Jobs before documents: the order in which a job that ends locks them.
    PERFORM FROM jobs WHERE owner_id = visitor ORDER BY id FOR UPDATE;
    UPDATE prompts SET owner_id = person WHERE owner_id = visitor;
    PERFORM merge_mappings(visitor, person);
    UPDATE conversions c SET live = false WHERE owner_id = visitor AND live AND EXISTS (
        SELECT FROM conversions o WHERE o.live AND o.owner_id = person AND o.sha256 = c.sha256 AND o.mapping = c.mapping
        AND o.mapping_sha256 = c.mapping_sha256 AND o.bytes = c.bytes);
    UPDATE conversion_batches SET owner_id = person WHERE owner_id = visitor;
    UPDATE conversions SET owner_id = person WHERE owner_id = visitor;
    UPDATE corrections SET owner_id = person WHERE owner_id = visitor;
    UPDATE documents d SET duplicate_of = twin.document_id
    FROM uploads u JOIN uploads twin ON twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical
    WHERE u.owner_id = visitor AND u.is_canonical AND d.id = u.document_id;
    UPDATE uploads u SET is_canonical = false
    WHERE owner_id = visitor AND is_canonical AND EXISTS (
        SELECT FROM uploads twin WHERE twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical);
    UPDATE uploads SET owner_id = person WHERE owner_id = visitor;
    -- Collections and tags with the same name are merged.
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
    UPDATE views mine SET owner_id = person WHERE owner_id = visitor
        AND NOT EXISTS (SELECT FROM views theirs WHERE theirs.owner_id = person AND lower(theirs.name) = lower(mine.name));
    UPDATE threads SET owner_id = person WHERE owner_id = visitor;
    UPDATE jobs j SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM jobs same WHERE same.owner_id = person AND same.kind = j.kind AND same.key = j.key)
        THEN format('%s:%s', j.key, j.id) ELSE j.key END
    WHERE owner_id = visitor;
    WITH moving AS (
        UPDATE documents SET owner_id = person, updated_at = clock_timestamp() WHERE owner_id = visitor RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO moved FROM moving;
    UPDATE notifications SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO connection_verdicts (owner_id, digest, verdict, decided_at)
    SELECT person, digest, verdict, decided_at FROM connection_verdicts WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    INSERT INTO connection_weights (owner_id, semantic_similarity, contradiction_detection, thematic_bridge)
    SELECT person, semantic_similarity, contradiction_detection, thematic_bridge FROM connection_weights
    WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    DELETE FROM sessions WHERE owner_id = visitor;
    DELETE FROM owners WHERE id = visitor;
    RETURN moved;
END $$;
