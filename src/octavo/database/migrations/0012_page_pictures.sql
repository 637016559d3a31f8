-- Pages as pictures: where on them a passage stands, what the file's own table of contents says of them, and for how long
-- the pictures are kept.

ALTER TABLE chunks ADD COLUMN boxes jsonb NOT NULL DEFAULT '[]';
ALTER TABLE pages ADD COLUMN bookmarks jsonb NOT NULL DEFAULT '[]';

COMMENT ON COLUMN chunks.boxes IS 'Places on pages, each as [page, left, top, right, bottom] in points from the upper left corner.';
COMMENT ON COLUMN pages.bookmarks IS 'What begins here by the file''s own table of contents and has no heading in the text, each as [level, title].';

CREATE INDEX artifacts_page_pictures ON artifacts (created_at) WHERE kind = 'page_picture';

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
        source_type = t.source_type, status = 'completed'
    FROM documents t WHERE d.id = copy AND t.id = twin;
    SELECT revision INTO from_revision FROM documents WHERE id = twin;
    INSERT INTO artifacts (id, document_id, job_id, kind, name, revision, key, content_type)
    SELECT gen_random_uuid(), copy, process, kind, name, 1, key, content_type
    FROM artifacts WHERE document_id = twin AND revision = from_revision AND revision > 0;
    INSERT INTO pages (document_id, revision, number, label, char_start, char_end, width, height, bookmarks)
    SELECT copy, 1, number, label, char_start, char_end, width, height, bookmarks
    FROM pages WHERE document_id = twin AND revision = from_revision;
    WITH copied AS (
        SELECT gen_random_uuid() AS new_id, c.* FROM chunks c WHERE document_id = twin AND revision = from_revision
    ), inserted AS (
        INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, page_from, page_to,
                            heading_path, word_count, themes, tone, importance, summary, made_by, seconds, boxes)
        SELECT new_id, copy, 1, index, content, char_start, char_end, page_from, page_to, heading_path, word_count, themes,
               tone, importance, summary, made_by, seconds, boxes FROM copied
    )
    INSERT INTO chunk_concepts (chunk_id, concept, importance)
    SELECT copied.new_id, k.concept, k.importance FROM chunk_concepts k JOIN copied ON copied.id = k.chunk_id;
    INSERT INTO jobs (id, kind, owner_id, document_id, key, virtual_time, status, max_attempts, admitted, output,
                      created_at, queued_at, completed_at)
    SELECT process, k.name, d.owner_id, d.id, format('process:%s:1', d.id), 0, 'complete', k.max_attempts, false,
           jsonb_build_object('reused', twin), at, at, at
    FROM documents d, job_kinds k WHERE d.id = copy AND k.name = 'process_document';
END $$;
