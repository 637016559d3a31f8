-- The owner of each concept, so that a comparison reads a limited number of chunks of one owner.

ALTER TABLE chunk_concepts ADD COLUMN owner_id uuid;
UPDATE chunk_concepts k SET owner_id = d.owner_id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE c.id = k.chunk_id;
-- squawk-ignore adding-not-nullable-field
ALTER TABLE chunk_concepts ALTER COLUMN owner_id SET NOT NULL;
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
ALTER TABLE chunk_concepts ADD FOREIGN KEY (owner_id) REFERENCES owners ON DELETE CASCADE;

CREATE INDEX chunk_concepts_owner ON chunk_concepts (owner_id, lower(concept), importance DESC, chunk_id);
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX chunk_concepts_concept;

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
    -- Not what a person said of the other document, nor a title made from its file name if this one has another name. A
    -- document that was processed before there were facts has none.
    INSERT INTO facts (document_id, made_by, name, number, value, normalized, page, box, quote, confidence, source, status, revision)
    SELECT copy, made_by, name, number, value, normalized, page, box, quote, confidence, source, status, 1
    FROM facts f WHERE document_id = twin AND made_by <> 'person' AND NOT (name = 'title' AND source = 'metadata' AND EXISTS (
        SELECT FROM documents t JOIN documents d ON d.id = copy AND d.filename <> t.filename
        WHERE t.id = twin AND regexp_replace(f.value, '\W|_', '', 'g')
            = regexp_replace(replace(regexp_replace(t.filename, '\.\w{1,8}$', ''), '%20', ' '), '\W|_', '', 'g')));
    IF EXISTS (SELECT FROM facts WHERE document_id = twin AND made_by <> 'person') THEN
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
    INSERT INTO chunk_concepts (chunk_id, concept, importance, owner_id)
    SELECT mine.id, k.concept, k.importance, k.owner_id
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

CREATE OR REPLACE FUNCTION vectors_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE chunk_embeddings SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    UPDATE chunk_concepts SET owner_id = NEW.owner_id WHERE chunk_id IN (SELECT id FROM chunks WHERE document_id = NEW.id);
    UPDATE connections SET owner_id = NEW.owner_id
    WHERE NEW.id IN (source_document, target_document) AND owner_id <> NEW.owner_id;
    RETURN NULL;
END $$;
