-- What is made of a text that can be read: descriptions of documents and of their passages, tags, and vectors.

ALTER TABLE documents
    ADD COLUMN edited text[] NOT NULL DEFAULT '{}',
    ADD COLUMN described text[] NOT NULL DEFAULT '{}',
    ADD COLUMN described_by text;

COMMENT ON COLUMN documents.edited IS 'Fields that a person wrote or emptied; nothing else ever changes them.';
COMMENT ON COLUMN documents.described IS 'Fields that neither a person nor the file gave; the next description may replace them.';
COMMENT ON COLUMN documents.described_by IS 'Who described it: `local`, or `provider:model`.';

ALTER TABLE document_tags ADD COLUMN made_by text;

COMMENT ON COLUMN document_tags.made_by IS 'NULL for a tag that a person gave.';

-- Vectors of several models stand side by side; only those of one model can be compared.
CREATE TABLE embedding_models (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 16000),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE chunk_embeddings (
    model_id    integer NOT NULL REFERENCES embedding_models,
    chunk_id    uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    owner_id    uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    vector      vector NOT NULL,
    PRIMARY KEY (chunk_id, model_id)
);
CREATE INDEX chunk_embeddings_owner ON chunk_embeddings (owner_id, model_id);
CREATE INDEX chunk_embeddings_document ON chunk_embeddings (document_id);

CREATE TABLE tag_embeddings (
    model_id integer NOT NULL REFERENCES embedding_models,
    tag_id   uuid NOT NULL REFERENCES tags ON DELETE CASCADE,
    vector   vector NOT NULL,
    PRIMARY KEY (tag_id, model_id)
);

-- The number of a model, which is made when it is first used. Nothing where its vectors had another length before.
CREATE FUNCTION embedding_model(of_name text, of_dimensions integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    found embedding_models;
BEGIN
    SELECT * INTO found FROM embedding_models WHERE name = of_name;
    IF found.id IS NULL THEN
        INSERT INTO embedding_models (name, dimensions) VALUES (of_name, of_dimensions) ON CONFLICT DO NOTHING;
        SELECT * INTO found FROM embedding_models WHERE name = of_name;
    END IF;
    RETURN CASE WHEN found.dimensions = of_dimensions THEN found.id END;
END $$;

CREATE FUNCTION vectors_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE chunk_embeddings SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    RETURN NULL;
END $$;

CREATE TRIGGER vectors_follow AFTER UPDATE OF owner_id ON documents
    FOR EACH ROW WHEN (OLD.owner_id <> NEW.owner_id) EXECUTE FUNCTION vectors_follow_document();

-- Known before the first worker ever started, as `process_document` is.
INSERT INTO job_kinds (name, max_attempts, time_limit, limit_renewed_by_stage)
VALUES ('embed_document', 3, interval '10 minutes', true), ('embed_tags', 3, interval '90 seconds', false);

-- A document is as its job is, in the same transaction. Once its text is there in pieces it can be read, cited and found,
-- and then a job that fails leaves it complete: what it lacks is its description.
CREATE OR REPLACE FUNCTION follow_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    readable boolean := NEW.status IN ('failed', 'dead_letter') AND EXISTS (
        SELECT FROM job_stages WHERE job_id = NEW.id AND stage = 'chunked');
BEGIN
    -- A dead letter that is discarded changes nothing about its document.
    UPDATE documents d SET updated_at = clock_timestamp(),
        needs_classification = readable OR kept.as_it_is,
        status = CASE
            WHEN NEW.status = 'complete' OR readable OR kept.as_it_is THEN 'completed'
            WHEN NEW.status IN ('failed', 'dead_letter', 'cancelled') THEN 'failed'
            ELSE 'pending' END
    FROM (SELECT id, NEW.status = 'cancelled' AND needs_classification AS as_it_is
          FROM documents WHERE process_id = NEW.id) AS kept
    WHERE d.id = kept.id;
    RETURN NULL;
END $$;

-- As before; what a visitor was told comes along, and tags stay whose they are. (A visitor has no subscribers.)
CREATE OR REPLACE FUNCTION merge_owner(visitor uuid, person uuid) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    moved integer;
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
    DELETE FROM sessions WHERE owner_id = visitor;
    DELETE FROM owners WHERE id = visitor;
    RETURN moved;
END $$;

-- Give a document all that was made of its finished twin: the objects are shared, the rows are its own.
CREATE OR REPLACE FUNCTION copy_results(twin uuid, copy uuid, process uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    from_revision integer;
BEGIN
    UPDATE documents d SET
        quality = t.quality, revision = 1, text_ready = t.text_ready, embeddings_ready = t.embeddings_ready,
        needs_classification = t.needs_classification, page_count = t.page_count, word_count = t.word_count,
        author = coalesce(d.author, t.author), language = t.language, document_date = t.document_date,
        summary = t.summary, metadata = t.metadata || d.metadata, title = coalesce(d.title, t.title),
        described = ARRAY(SELECT name FROM unnest(t.described) AS name
                          WHERE NOT (name = 'title' AND d.title IS NOT NULL OR name = 'author' AND d.author IS NOT NULL)),
        described_by = t.described_by, source_type = t.source_type, status = 'completed'
    FROM documents t WHERE d.id = copy AND t.id = twin;
    SELECT revision INTO from_revision FROM documents WHERE id = twin;
    INSERT INTO document_tags (document_id, tag_id, made_by)
    SELECT copy, tag_id, made_by FROM document_tags WHERE document_id = twin AND made_by IS NOT NULL;
    INSERT INTO artifacts (id, document_id, job_id, kind, name, revision, key, content_type)
    SELECT gen_random_uuid(), copy, process, kind, name, 1, key, content_type
    FROM artifacts WHERE document_id = twin AND revision = from_revision AND revision > 0;
    INSERT INTO pages (document_id, revision, number, label, char_start, char_end, width, height, bookmarks)
    SELECT copy, 1, number, label, char_start, char_end, width, height, bookmarks
    FROM pages WHERE document_id = twin AND revision = from_revision;
    INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, page_from, page_to,
                        heading_path, word_count, themes, tone, importance, summary, made_by, seconds, boxes)
    SELECT gen_random_uuid(), copy, 1, index, content, char_start, char_end, page_from, page_to,
           heading_path, word_count, themes, tone, importance, summary, made_by, seconds, boxes
    FROM chunks WHERE document_id = twin AND revision = from_revision;
    INSERT INTO chunk_concepts (chunk_id, concept, importance)
    SELECT mine.id, k.concept, k.importance
    FROM chunks theirs JOIN chunks mine ON mine.document_id = copy AND mine.index = theirs.index
    JOIN chunk_concepts k ON k.chunk_id = theirs.id
    WHERE theirs.document_id = twin AND theirs.revision = from_revision;
    INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector)
    SELECT e.model_id, mine.id, e.owner_id, copy, e.vector
    FROM chunks theirs JOIN chunks mine ON mine.document_id = copy AND mine.index = theirs.index
    JOIN chunk_embeddings e ON e.chunk_id = theirs.id
    WHERE theirs.document_id = twin AND theirs.revision = from_revision;
    INSERT INTO jobs (id, kind, owner_id, document_id, key, virtual_time, status, max_attempts, admitted, output,
                      created_at, queued_at, completed_at)
    SELECT process, k.name, d.owner_id, d.id, format('process:%s:1', d.id), 0, 'complete', k.max_attempts, false,
           jsonb_build_object('reused', twin), at, at, at
    FROM documents d, job_kinds k WHERE d.id = copy AND k.name = 'process_document';
END $$;
