-- Figures of a text, areas of a page, and the reason why the text of a page may be wrong.

ALTER TABLE pages ADD COLUMN unsure text;
ALTER TABLE pages ADD COLUMN regions jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN pages.unsure IS 'Why the text of the page may be incomplete or wrong; null if it is sure.';
COMMENT ON COLUMN pages.regions IS 'The areas of the page in reading order, each as kind, box, order, confidence and text.';
CREATE INDEX pages_unsure ON pages (document_id, revision, number) WHERE unsure IS NOT NULL;

-- The figures of the current text. Their pictures are artifacts of the kind `figure`, named by their number, made when they are
-- first requested.
CREATE TABLE figures (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision    integer NOT NULL,
    number      integer NOT NULL CHECK (number > 0),
    kind        text NOT NULL,
    char_start  integer NOT NULL,
    page        integer,
    box         jsonb,
    member      text,
    caption     text NOT NULL,
    alternative text NOT NULL,
    PRIMARY KEY (document_id, revision, number)
);

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
