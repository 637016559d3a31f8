-- name: document(document)
-- The source of a document, with its size and checksum; no row if it was deleted permanently. If the file was unlocked with a
-- password, the source is the unlocked copy.
SELECT d.id, d.filename, d.content_type, d.source_type, d.source_url, d.deleted_at IS NOT NULL AS deleted,
       o.key AS source_key, o.bytes AS source_bytes, encode(o.sha256, 'hex') AS source_sha256,
       d.duplicate_of IS NOT NULL OR EXISTS (
           SELECT FROM uploads u WHERE u.document_id = d.id AND u.is_canonical) AS canonical
FROM documents d
LEFT JOIN artifacts a ON a.document_id = d.id AND a.kind = 'source' AND a.revision = 0
LEFT JOIN artifacts u ON u.document_id = d.id AND u.kind = 'unlocked' AND u.revision = 0
LEFT JOIN objects o ON o.key = coalesce(u.key, a.key)
WHERE d.id = :document;

-- name: object_checksum(key)
SELECT encode(sha256, 'hex') FROM objects WHERE key = :key;

-- name: delete_artifact(document, revision, kind)
-- The file that an earlier attempt at the same revision stored, if a stage runs again on request.
DELETE FROM artifacts WHERE document_id = :document AND revision = :revision AND kind = :kind RETURNING key;

-- name: delete_batches(document, revision)
-- Deletes the batches of pages when the text is assembled.
DELETE FROM artifacts WHERE document_id = :document AND revision = :revision AND starts_with(kind, 'pages:') RETURNING key;

-- name: insert_artifact(id, document, job, kind, revision, key, bytes, sha256, content_type)!
WITH stored AS (
    INSERT INTO objects (key, bytes, sha256) VALUES (:key, :bytes, decode(:sha256, 'hex')) RETURNING key
)
INSERT INTO artifacts (id, document_id, job_id, kind, revision, key, content_type)
SELECT :id, :document, :job, :kind, :revision, key, :content_type FROM stored;

-- name: keep_plain(document, revision)!
-- Keeps the extracted text in addition to the one that a model wrote.
UPDATE artifacts SET kind = 'plain_markdown' WHERE document_id = :document AND revision = :revision AND kind = 'markdown';

-- name: set_source_type(document, source_type)!
-- The type of the target of a link.
UPDATE documents SET source_type = :source_type, updated_at = clock_timestamp() WHERE id = :document;

-- name: set_extracted(document, source_type, quality, reason)!
-- The reason is for files that are only stored.
UPDATE documents SET source_type = :source_type,
                     quality = CASE WHEN revision = 0 THEN :quality ELSE quality END,
                     metadata = metadata || jsonb_strip_nulls(jsonb_build_object('reason', :reason::text)),
                     updated_at = clock_timestamp()
WHERE id = :document;

-- name: make_readable(document, revision)!
-- A first revision can be read as soon as it has a text; a later one when it is complete.
UPDATE documents SET revision = :revision, text_ready = true, updated_at = clock_timestamp()
WHERE id = :document AND revision = 0;

-- name: set_found(document, word_count, page_count, quality, metadata)!
UPDATE documents SET word_count = :word_count, page_count = :page_count, quality = :quality,
                     metadata = :metadata || (metadata - '{pages_with_text,quality_reason}'::text[]),
                     updated_at = clock_timestamp()
WHERE id = :document;

-- name: delete_pages(document, revision)!
-- The pages and figures that an earlier attempt at the same revision stored.
WITH gone AS (DELETE FROM figures WHERE document_id = :document AND revision = :revision)
DELETE FROM pages WHERE document_id = :document AND revision = :revision;

-- name: insert_pages(document, revision, pages)!
INSERT INTO pages (document_id, revision, number, label, char_start, char_end, width, height, bookmarks, unsure, regions)
SELECT :document, :revision, p.number, p.label, p.start, p."end", p.width, p.height, p.bookmarks, p.unsure, p.regions
FROM jsonb_to_recordset(:pages) AS p (number integer, label text, start integer, "end" integer,
                                      width real, height real, bookmarks jsonb, unsure text, regions jsonb);

-- name: insert_figures(document, revision, figures)!
INSERT INTO figures (document_id, revision, number, kind, char_start, page, box, member, caption, alternative)
SELECT :document, :revision, f.number, f.kind, f.start, f.page, f.box, f.member, f.caption, f.alternative
FROM jsonb_to_recordset(:figures) AS f (number integer, kind text, start integer, page integer, box jsonb, member text,
                                        caption text, alternative text)
ON CONFLICT DO NOTHING;

-- name: delete_chunks(document, revision)!
DELETE FROM chunks WHERE document_id = :document AND revision = :revision;

-- name: insert_chunks(document, revision, chunks)!
INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, page_from, page_to, heading_path,
                    word_count, seconds, boxes)
SELECT c.id, :document, :revision, c.index, c.content, c.start, c."end", c.page_from, c.page_to,
       ARRAY(SELECT jsonb_array_elements_text(c.heading_path)), c.word_count, c.seconds, c.boxes
FROM jsonb_to_recordset(:chunks) AS c (id uuid, index integer, content text, start integer, "end" integer,
                                       page_from integer, page_to integer, heading_path jsonb, word_count integer,
                                       seconds real, boxes jsonb);

-- name: switch_revision(document, revision, written)
-- Makes the new revision the current one. Only the text of the old revision is kept, to show the changes; returns the keys of
-- its other files.
WITH switched AS (
    UPDATE documents SET revision = :revision, text_ready = true, embeddings_ready = false,
                         metadata = metadata - '{text_by,kept_plain}'::text[] || :written, updated_at = clock_timestamp()
    WHERE id = :document RETURNING id
), old_chunks AS (
    DELETE FROM chunks WHERE document_id = :document AND revision <> :revision
), old_pages AS (
    DELETE FROM pages WHERE document_id = :document AND revision <> :revision
), old_figures AS (
    DELETE FROM figures WHERE document_id = :document AND revision <> :revision
), old_files AS (
    DELETE FROM artifacts WHERE document_id = :document AND revision NOT IN (0, :revision) AND kind <> 'markdown'
    RETURNING key
)
SELECT key FROM old_files;

-- name: artifact_key(document, revision, kind)
SELECT key FROM artifacts WHERE document_id = :document AND revision = :revision AND kind = :kind;

-- name: delete_unused_objects(keys)
DELETE FROM objects WHERE key = ANY (:keys) AND refs = 0 RETURNING key;
