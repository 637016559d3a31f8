-- Facts of documents as rows, columns of documents that follow them, and saved views.

ALTER TABLE documents ADD COLUMN kind text;
ALTER TABLE documents ADD COLUMN sender text;
ALTER TABLE documents ADD COLUMN amount numeric;
ALTER TABLE documents ADD COLUMN currency text;
COMMENT ON COLUMN documents.kind IS 'This and title, sender, author, document_date, amount, currency and language follow the facts.';
COMMENT ON COLUMN documents.edited IS '`tags`, if a person set or cleared them. They are then never overwritten.';
CREATE INDEX documents_owner_kind ON documents (owner_id, kind) WHERE deleted_at IS NULL;
CREATE INDEX documents_owner_sender ON documents (owner_id, lower(sender)) WHERE deleted_at IS NULL;
CREATE INDEX documents_owner_date ON documents (owner_id, document_date) WHERE deleted_at IS NULL;
CREATE INDEX documents_owner_amount ON documents (owner_id, amount) WHERE deleted_at IS NULL AND amount IS NOT NULL;

-- A document can have several facts with one name: from several sources, or several identifiers. `chosen_facts` has the best.
CREATE TABLE facts (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    made_by     text NOT NULL CHECK (made_by <> ''),
    name        text NOT NULL CHECK (name IN (
        'kind', 'title', 'sender', 'author', 'recipient', 'number', 'date', 'due_date', 'period', 'amount', 'currency',
        'language', 'iban', 'vat_id', 'doi', 'isbn', 'order_id', 'account_id', 'register_id', 'party')),
    number      integer NOT NULL DEFAULT 0 CHECK (number >= 0),
    value       text CHECK (value <> ''),
    normalized  text,
    page        integer CHECK (page > 0),
    box         jsonb,
    quote       text NOT NULL DEFAULT '',
    confidence  real NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    source      text NOT NULL CHECK (source IN ('metadata', 'layout', 'rule', 'mapping', 'model', 'person')),
    status      text NOT NULL CHECK (status IN ('found', 'checked', 'confirmed')),
    revision    integer NOT NULL DEFAULT 0,
    made_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (document_id, made_by, name, number),
    CONSTRAINT only_people_clear CHECK (value IS NOT NULL OR source = 'person')
);

COMMENT ON COLUMN facts.made_by IS 'What wrote it, and may replace it: `processing`, `description`, `mapping:<name>` or `person`.';
COMMENT ON COLUMN facts.value IS 'NULL if a person said that the document has no such fact.';
COMMENT ON COLUMN facts.normalized IS 'The form that is compared and sorted: an ISO date, a decimal number, a name in lower case.';
COMMENT ON COLUMN facts.revision IS 'The revision in which it was found.';

-- The order in which sources are believed: a person, print that a check supports, a mapping, a model, other print, metadata.
CREATE FUNCTION fact_rank(source text, status text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN source = 'person' THEN 0
                WHEN source <> 'metadata' AND status <> 'found' THEN 1
                WHEN source = 'mapping' THEN 2
                WHEN source = 'model' THEN 3
                WHEN source <> 'metadata' THEN 4
                ELSE 5 END;
$$;

CREATE VIEW chosen_facts AS
SELECT DISTINCT ON (document_id, name) *
FROM facts ORDER BY document_id, name, fact_rank(source, status), confidence DESC, number, made_by;

-- Copies the best facts with these names to the columns of their document, by which documents are listed, filtered and sorted.
CREATE FUNCTION follow_facts(of_document uuid, names text[]) RETURNS void LANGUAGE sql AS $$
    UPDATE documents d SET
        kind = CASE WHEN 'kind' = ANY (names) THEN f.kind ELSE d.kind END,
        title = CASE WHEN 'title' = ANY (names) THEN f.title ELSE d.title END,
        sender = CASE WHEN 'sender' = ANY (names) THEN f.sender ELSE d.sender END,
        author = CASE WHEN 'author' = ANY (names) THEN f.author ELSE d.author END,
        document_date = CASE WHEN 'date' = ANY (names) THEN f.day::date ELSE d.document_date END,
        amount = CASE WHEN 'amount' = ANY (names) THEN f.amount::numeric ELSE d.amount END,
        currency = CASE WHEN 'currency' = ANY (names) THEN f.currency ELSE d.currency END,
        language = CASE WHEN 'language' = ANY (names) THEN f.language ELSE d.language END,
        updated_at = clock_timestamp()
    FROM (SELECT max(normalized) FILTER (WHERE name = 'kind') AS kind,
                 max(value) FILTER (WHERE name = 'title') AS title,
                 max(value) FILTER (WHERE name = 'sender') AS sender,
                 max(value) FILTER (WHERE name = 'author') AS author,
                 max(normalized) FILTER (WHERE name = 'date' AND normalized ~ '^\d{4}-\d{2}-\d{2}$') AS day,
                 max(normalized) FILTER (WHERE name = 'amount') AS amount,
                 max(normalized) FILTER (WHERE name = 'currency') AS currency,
                 max(normalized) FILTER (WHERE name = 'language') AS language
          FROM chosen_facts WHERE document_id = of_document) AS f
    WHERE d.id = of_document;
$$;

-- A title and an author that were given with the upload are what a person said.
CREATE FUNCTION save_given_facts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO facts (document_id, made_by, name, value, normalized, confidence, source, status)
    SELECT NEW.id, 'person', given.name, given.value, lower(given.value), 1, 'person', 'confirmed'
    FROM (VALUES ('title', NEW.title), ('author', NEW.author)) AS given (name, value) WHERE given.value <> '';
    RETURN NULL;
END $$;
CREATE TRIGGER documents_given AFTER INSERT ON documents FOR EACH ROW
    WHEN (NEW.title IS NOT NULL OR NEW.author IS NOT NULL) EXECUTE FUNCTION save_given_facts();

-- Filters and orders of the library, saved under a name.
CREATE TABLE views (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    filter     jsonb NOT NULL,
    sort       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE UNIQUE INDEX views_name ON views (owner_id, lower(name));

-- What people set, and what was given with an upload, are facts. Other facts are found when a document is processed again.
INSERT INTO facts (document_id, made_by, name, value, normalized, confidence, source, status)
SELECT d.id, 'person', f.name, nullif(f.value, ''), lower(f.value), 1, 'person', 'confirmed'
FROM documents d
CROSS JOIN LATERAL (VALUES ('title', 'title', d.title), ('author', 'author', d.author),
                           ('date', 'document_date', d.document_date::text)) AS f (name, field, value)
WHERE f.field = ANY (d.edited) OR f.value <> '' AND EXISTS (
    SELECT FROM uploads u WHERE u.document_id = d.id AND u.state <> 'deduplicated' AND u.given ->> f.field = f.value);
UPDATE documents SET kind = metadata ->> 'document_type' WHERE metadata ->> 'document_type' <> 'other';
UPDATE documents SET edited = ARRAY(SELECT unnest(edited) INTERSECT SELECT 'tags') WHERE edited <> '{}';
-- squawk-ignore ban-drop-column
ALTER TABLE documents DROP COLUMN described;

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
        described_by = t.described_by, source_type = t.source_type, status = 'completed'
    FROM documents t WHERE d.id = copy AND t.id = twin;
    SELECT revision INTO from_revision FROM documents WHERE id = twin;
    -- Not what a person said of the other document. One that was processed before there were facts has none.
    INSERT INTO facts (document_id, made_by, name, number, value, normalized, page, box, quote, confidence, source, status, revision)
    SELECT copy, made_by, name, number, value, normalized, page, box, quote, confidence, source, status, 1
    FROM facts WHERE document_id = twin AND made_by <> 'person';
    IF EXISTS (SELECT FROM facts WHERE document_id = copy AND made_by <> 'person') THEN
        PERFORM follow_facts(copy, '{kind,title,sender,author,date,amount,currency,language}');
    END IF;
    INSERT INTO document_tags (document_id, tag_id, made_by)
    SELECT copy, tag_id, made_by FROM document_tags WHERE document_id = twin AND made_by IS NOT NULL;
    INSERT INTO artifacts (id, document_id, job_id, kind, name, revision, key, content_type)
    SELECT gen_random_uuid(), copy, process, kind, name, 1, key, content_type
    FROM artifacts WHERE document_id = twin AND revision = from_revision AND revision > 0;
    INSERT INTO pages (document_id, revision, number, label, char_start, char_end, width, height, bookmarks, unsure, regions)
    SELECT copy, 1, number, label, char_start, char_end, width, height, bookmarks, unsure, regions
    FROM pages WHERE document_id = twin AND revision = from_revision;
    INSERT INTO figures (document_id, revision, number, kind, char_start, page, box, member, caption, alternative)
    SELECT copy, 1, number, kind, char_start, page, box, member, caption, alternative
    FROM figures WHERE document_id = twin AND revision = from_revision;
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

CREATE OR REPLACE FUNCTION inherit_corrections(before documents, next uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents SET collection_id = before.collection_id, edited = before.edited WHERE id = next;
    INSERT INTO facts (document_id, made_by, name, value, normalized, confidence, source, status)
    SELECT next, made_by, name, value, normalized, confidence, source, status FROM facts
    WHERE document_id = before.id AND made_by = 'person'
      AND name IN ('kind', 'title', 'sender', 'author', 'recipient', 'language', 'party')
    ON CONFLICT DO NOTHING;
    PERFORM follow_facts(next, ARRAY(SELECT name FROM facts WHERE document_id = next));
END $$;

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
    UPDATE mappings m SET owner_id = person WHERE owner_id = visitor
        AND NOT EXISTS (SELECT FROM mappings o WHERE o.owner_id = person AND o.name = m.name);
    UPDATE conversions c SET live = false WHERE owner_id = visitor AND live AND EXISTS (
        SELECT FROM conversions o WHERE o.live AND o.owner_id = person AND o.sha256 = c.sha256 AND o.mapping = c.mapping
        AND o.mapping_sha256 = c.mapping_sha256 AND o.bytes = c.bytes);
    UPDATE conversions SET owner_id = person WHERE owner_id = visitor;
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

CREATE OR REPLACE FUNCTION searched_documents(of_owner uuid, chosen jsonb)
RETURNS TABLE (id uuid, revision integer, config regconfig, model integer) LANGUAGE sql STABLE AS $$
    SELECT d.id, d.revision, search_config(d.language), d.embedding_model_id FROM documents d
    WHERE d.owner_id = of_owner AND d.deleted_at IS NULL
      AND (NOT d.superseded OR chosen ?| '{documents,versions}' OR NOT EXISTS (
          SELECT FROM documents newer WHERE newer.family_id = d.family_id AND newer.version > d.version
              AND newer.deleted_at IS NULL AND newer.text_ready))
      AND (chosen -> 'documents' IS NULL OR d.id = ANY (ARRAY(SELECT jsonb_array_elements_text(chosen -> 'documents')::uuid)))
      AND (chosen -> 'without' IS NULL OR d.id <> (chosen ->> 'without')::uuid)
      AND (chosen -> 'tags' IS NULL OR EXISTS (
          SELECT FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
          WHERE dt.document_id = d.id AND lower(t.name) IN (SELECT lower(jsonb_array_elements_text(chosen -> 'tags')))))
      AND (chosen -> 'collection' IS NULL OR EXISTS (
          SELECT FROM collections c WHERE c.id = d.collection_id AND lower(c.name) = lower(chosen ->> 'collection')))
      AND (chosen -> 'kinds' IS NULL OR d.source_type IN (SELECT jsonb_array_elements_text(chosen -> 'kinds')))
      AND (chosen -> 'language' IS NULL OR primary_language(d.language) = primary_language(chosen ->> 'language'))
      AND (chosen -> 'since' IS NULL OR coalesce(d.document_date, d.created_at::date) >= (chosen ->> 'since')::date)
      AND (chosen -> 'until' IS NULL OR coalesce(d.document_date, d.created_at::date) <= (chosen ->> 'until')::date)
      AND (chosen -> 'kind' IS NULL OR chosen ->> 'kind' IN (d.kind, d.source_type))
      AND (chosen -> 'sender' IS NULL OR position(lower(chosen ->> 'sender') IN lower(d.sender)) > 0)
      AND (chosen -> 'before' IS NULL OR d.document_date < (chosen ->> 'before')::date)
      AND (chosen -> 'after' IS NULL OR d.document_date >= (chosen ->> 'after')::date)
      AND (chosen -> 'amount_min' IS NULL OR d.amount >= (chosen ->> 'amount_min')::numeric)
      AND (chosen -> 'amount_max' IS NULL OR d.amount <= (chosen ->> 'amount_max')::numeric)
$$;
