-- Each of these queries reads one batch of records of an owner, ordered by their key, in one statement. `documents` is NULL, or the
-- ids of the documents that are exported. `record` is the JSON that is written to a line of the export.

-- name: collections(owner, after, most, documents)
SELECT c.id::text AS key, to_jsonb(c) - 'owner_id' AS record
FROM collections c
WHERE c.owner_id = :owner AND (:after::text IS NULL OR c.id > :after::uuid)
  AND (:documents::uuid[] IS NULL OR c.id IN (SELECT d.collection_id FROM documents d WHERE d.id = ANY (:documents)))
ORDER BY c.id LIMIT :most;

-- name: fields(owner, after, most, documents)
SELECT f.id::text AS key, to_jsonb(f) - 'owner_id' AS record FROM fields f
WHERE f.owner_id = :owner AND (:after::text IS NULL OR f.id > :after::uuid) AND (:documents::uuid[] IS NULL OR f.id IN (
    SELECT v.field_id FROM document_fields v WHERE v.document_id = ANY (:documents)))
ORDER BY f.id LIMIT :most;

-- name: rules(owner, after, most, documents)
SELECT r.id::text AS key, to_jsonb(r) - 'owner_id' AS record FROM rules r
WHERE r.owner_id = :owner AND :documents::uuid[] IS NULL AND (:after::text IS NULL OR r.id > :after::uuid)
ORDER BY r.id LIMIT :most;

-- name: documents(owner, after, most, documents)
-- Documents outside the trash. The files are those that cannot be made again from the source: pictures are left out.
SELECT d.id::text AS key, jsonb_build_object(
    'id', d.id, 'title', d.title, 'filename', d.filename, 'content_type', d.content_type, 'source_type', d.source_type,
    'source_url', d.source_url, 'sha256', encode(d.sha256, 'hex'), 'bytes', d.bytes, 'status', d.status, 'quality', d.quality,
    'needs_classification', d.needs_classification, 'revision', d.revision, 'text_ready', d.text_ready,
    'embeddings_ready', d.embeddings_ready, 'page_count', d.page_count, 'word_count', d.word_count,
    'author', d.author, 'language', d.language, 'document_date', d.document_date, 'kind', d.kind, 'sender', d.sender,
    'amount', d.amount, 'currency', d.currency, 'summary', d.summary, 'described_by', d.described_by, 'metadata', d.metadata,
    'collection', c.name, 'edited', d.edited, 'expires_on', d.expires_on, 'created_at', d.created_at, 'updated_at', d.updated_at,
    'duplicate_of', d.duplicate_of, 'family_id', d.family_id, 'version', d.version,
    'also_named', (SELECT coalesce(jsonb_agg(DISTINCT u.filename), '[]') FROM uploads u
                   WHERE u.document_id = d.id AND u.state = 'deduplicated' AND u.filename <> d.filename),
    'tags', coalesce((SELECT jsonb_agg(jsonb_build_object('name', t.name, 'made_by', dt.made_by) ORDER BY lower(t.name))
                      FROM document_tags dt JOIN tags t ON t.id = dt.tag_id WHERE dt.document_id = d.id), '[]'),
    'fields', coalesce((SELECT jsonb_object_agg(f.name, v.value) FROM document_fields v JOIN fields f ON f.id = v.field_id
                        WHERE v.document_id = d.id), '{}'),
    'facts', coalesce((SELECT jsonb_agg(to_jsonb(f) - 'document_id' ORDER BY f.made_by, f.name, f.number)
                       FROM facts f WHERE f.document_id = d.id), '[]'),
    'highlights', coalesce((SELECT jsonb_agg(to_jsonb(h) - '{document_id,user_id}'::text[] ORDER BY h.id)
                            FROM highlights h WHERE h.document_id = d.id), '[]'),
    'files', coalesce((SELECT jsonb_agg(jsonb_build_object(
                           'kind', a.kind, 'revision', a.revision, 'content_type', a.content_type, 'key', a.key,
                           'bytes', o.bytes, 'sha256', encode(o.sha256, 'hex')) ORDER BY a.revision, a.kind)
                       FROM artifacts a JOIN objects o ON o.key = a.key
                       WHERE a.document_id = d.id AND a.name = '' AND (
                           a.revision = 0 AND a.kind IN ('source', 'unlocked') OR a.kind = 'markdown' AND a.revision <= d.revision
                           OR a.revision = d.revision AND a.kind IN ('plain_markdown', 'page_raw', 'transcript_raw', 'image_jpeg'))),
                      '[]')) AS record
FROM documents d LEFT JOIN collections c ON c.id = d.collection_id
WHERE d.owner_id = :owner AND d.deleted_at IS NULL AND (:after::text IS NULL OR d.id > :after::uuid)
  AND (:documents::uuid[] IS NULL OR d.id = ANY (:documents))
ORDER BY d.id LIMIT :most;

-- name: layouts(documents)
-- The pages, figures and chunks of the current text of these documents, and the vectors of the model by which each is searched.
SELECT d.id, m.name AS model, m.dimensions,
    coalesce((SELECT jsonb_agg(jsonb_build_object(
                  'number', p.number, 'label', p.label, 'start', p.char_start, 'end', p.char_end, 'width', p.width,
                  'height', p.height, 'bookmarks', p.bookmarks, 'unsure', p.unsure, 'regions', p.regions) ORDER BY p.number)
              FROM pages p WHERE p.document_id = d.id AND p.revision = d.revision), '[]') AS pages,
    coalesce((SELECT jsonb_agg(jsonb_build_object(
                  'number', f.number, 'kind', f.kind, 'start', f.char_start, 'page', f.page, 'box', f.box, 'member', f.member,
                  'caption', f.caption, 'alternative', f.alternative) ORDER BY f.number)
              FROM figures f WHERE f.document_id = d.id AND f.revision = d.revision), '[]') AS figures,
    coalesce((SELECT jsonb_agg(jsonb_build_object(
                  'index', k.index, 'start', k.char_start, 'end', k.char_end, 'page_from', k.page_from, 'page_to', k.page_to,
                  'heading_path', k.heading_path, 'word_count', k.word_count, 'themes', k.themes, 'tone', k.tone,
                  'importance', k.importance, 'summary', k.summary, 'made_by', k.made_by, 'seconds', k.seconds, 'boxes', k.boxes,
                  'concepts', (SELECT coalesce(jsonb_object_agg(x.concept, x.importance), '{}') FROM chunk_concepts x
                               WHERE x.chunk_id = k.id)) ORDER BY k.index)
              FROM chunks k WHERE k.document_id = d.id AND k.revision = d.revision), '[]') AS chunks,
    (SELECT array_agg(e.vector::text ORDER BY k.index)
     FROM chunks k JOIN chunk_embeddings e ON e.chunk_id = k.id AND e.model_id = m.id
     WHERE d.embeddings_ready AND k.document_id = d.id AND k.revision = d.revision) AS vectors
FROM documents d LEFT JOIN embedding_models m ON m.id = d.embedding_model_id
WHERE d.id = ANY (:documents);

-- name: parts(owner, after, most, documents)
-- Which documents are files in an archive, or attachments of an email.
SELECT d.id::text AS key, jsonb_build_object('id', d.id, 'sha256', encode(d.sha256, 'hex'), 'parts', jsonb_agg(
    jsonb_build_object('number', p.number, 'name', p.name, 'document_id', c.id, 'sha256', encode(c.sha256, 'hex'))
    ORDER BY p.number)) AS record
FROM documents d JOIN document_parts p ON p.parent_id = d.id
JOIN documents c ON c.id = p.document_id AND c.owner_id = :owner AND c.deleted_at IS NULL
WHERE d.owner_id = :owner AND d.deleted_at IS NULL AND (:after::text IS NULL OR d.id > :after::uuid)
  AND (:documents::uuid[] IS NULL OR d.id = ANY (:documents) AND c.id = ANY (:documents))
GROUP BY d.id, d.sha256 ORDER BY d.id LIMIT :most;

-- name: connections(owner, after, most, documents)
-- A side of a connection is a document, the index of a chunk, and a quote in it.
SELECT c.id::text AS key, jsonb_build_object(
    'id', c.id, 'engine', c.engine, 'strength', c.strength, 'explanation', c.explanation, 'status', c.status,
    'made_by', c.made_by, 'detail', c.detail, 'found_at', c.found_at,
    'verdict', (SELECT v.verdict FROM connection_verdicts v WHERE v.owner_id = c.owner_id AND v.digest = c.digest),
    'source', jsonb_build_object('document_id', s.document_id, 'sha256', encode(ds.sha256, 'hex'), 'chunk', s.index,
        'start', c.source_start, 'quote', substr(s.content, c.source_start + 1, c.source_end - c.source_start)),
    'target', jsonb_build_object('document_id', t.document_id, 'sha256', encode(dt.sha256, 'hex'), 'chunk', t.index,
        'start', c.target_start, 'quote', substr(t.content, c.target_start + 1, c.target_end - c.target_start))) AS record
FROM connections c
JOIN chunks s ON s.id = c.source_chunk JOIN documents ds ON ds.id = s.document_id AND ds.deleted_at IS NULL
JOIN chunks t ON t.id = c.target_chunk JOIN documents dt ON dt.id = t.document_id AND dt.deleted_at IS NULL
WHERE c.owner_id = :owner AND (:after::text IS NULL OR c.id > :after::uuid)
  AND (:documents::uuid[] IS NULL OR c.source_document = ANY (:documents) AND c.target_document = ANY (:documents))
ORDER BY c.id LIMIT :most;

-- name: verdicts(owner, after, most, documents)
-- What a person decided about connections; the digest is a hash of both quotes.
SELECT encode(v.digest, 'hex') AS key, jsonb_build_object(
    'id', encode(v.digest, 'hex'), 'verdict', v.verdict, 'decided_at', v.decided_at) AS record
FROM connection_verdicts v
WHERE v.owner_id = :owner AND (:after::text IS NULL OR v.digest > decode(:after, 'hex'))
  AND (:documents::uuid[] IS NULL OR EXISTS (
      SELECT FROM connections c WHERE c.owner_id = v.owner_id AND c.digest = v.digest
        AND c.source_document = ANY (:documents) AND c.target_document = ANY (:documents)))
ORDER BY v.digest LIMIT :most;

-- name: weights(owner, after, most, documents)
SELECT w.owner_id::text AS key, to_jsonb(w) - 'owner_id' || jsonb_build_object('id', w.owner_id) AS record
FROM connection_weights w WHERE w.owner_id = :owner AND :after::text IS NULL AND :documents::uuid[] IS NULL LIMIT :most;

-- name: views(owner, after, most, documents)
SELECT v.id::text AS key, to_jsonb(v) - 'owner_id' AS record FROM views v
WHERE v.owner_id = :owner AND :documents::uuid[] IS NULL AND (:after::text IS NULL OR v.id > :after::uuid)
ORDER BY v.id LIMIT :most;

-- name: prompts(owner, after, most, documents)
SELECT p.id::text AS key, to_jsonb(p) - 'owner_id' || jsonb_build_object('versions', (
    SELECT coalesce(jsonb_agg(to_jsonb(v) - 'prompt_id' ORDER BY v.version), '[]') FROM prompt_versions v WHERE v.prompt_id = p.id)) AS record
FROM prompts p
WHERE p.owner_id = :owner AND (:documents::uuid[] IS NULL OR :documents IS NOT NULL) AND (:after::text IS NULL OR p.id > :after::uuid)
ORDER BY p.id LIMIT :most;

-- name: mappings(owner, after, most, documents)
SELECT m.id::text AS key, to_jsonb(m) - '{owner_id,summary}'::text[] AS record FROM mappings m
WHERE m.owner_id = :owner AND (:documents::uuid[] IS NULL OR :documents IS NOT NULL) AND (:after::text IS NULL OR m.id > :after::uuid)
ORDER BY m.id LIMIT :most;

-- name: threads(owner, after, most, documents)
-- `documents` has the SHA-256 of each document that an answer cites or that the questions are limited to.
SELECT t.id::text AS key, to_jsonb(t) - 'owner_id' || jsonb_build_object(
    'turns', (SELECT coalesce(jsonb_agg(to_jsonb(u) - '{thread_id,attempt}'::text[] ORDER BY u.number), '[]')
              FROM turns u WHERE u.thread_id = t.id),
    'documents', (SELECT coalesce(jsonb_object_agg(d.id, encode(d.sha256, 'hex')), '{}') FROM documents d
                  WHERE d.owner_id = :owner AND d.id IN (
                      SELECT (cited ->> 'document_id')::uuid FROM turns u, jsonb_array_elements(u.citations) AS cited
                      WHERE u.thread_id = t.id
                      UNION SELECT one::uuid FROM jsonb_array_elements_text(t.scope -> 'document_ids') AS one))) AS record
FROM threads t
WHERE t.owner_id = :owner AND :documents::uuid[] IS NULL AND (:after::text IS NULL OR t.id > :after::uuid)
ORDER BY t.id LIMIT :most;

-- name: analyses(owner, after, most, documents)
SELECT a.id::text AS key, to_jsonb(a) - '{owner_id,document_id}'::text[] || jsonb_build_object(
    'document_id', a.document_id, 'sha256', encode(d.sha256, 'hex'),
    'segments', (SELECT coalesce(jsonb_agg(to_jsonb(s) - '{analysis_id,ready}'::text[] ORDER BY s.first, s.last, s.id), '[]')
                 FROM segments s WHERE s.analysis_id = a.id),
    'results', (SELECT coalesce(jsonb_agg(to_jsonb(r) - '{analysis_id,job_id,generation}'::text[]
                                          ORDER BY r.execution_order, r.prompt_id), '[]')
                FROM analysis_results r WHERE r.analysis_id = a.id),
    'items', (SELECT coalesce(jsonb_agg(to_jsonb(i) - '{analysis_id,job_id,generation}'::text[] ORDER BY i.id), '[]')
              FROM analysis_items i WHERE i.analysis_id = a.id)) AS record
FROM analyses a JOIN documents d ON d.id = a.document_id AND d.deleted_at IS NULL
WHERE a.owner_id = :owner AND (:after::text IS NULL OR a.id > :after::uuid)
  AND (:documents::uuid[] IS NULL OR a.document_id = ANY (:documents))
ORDER BY a.id LIMIT :most;

-- name: conversions(owner, after, most, documents)
-- Finished conversions, with all revisions of their values. The source is a file of the export only if it is not in the library.
SELECT c.id::text AS key, jsonb_build_object(
    'id', c.id, 'document_id', c.document_id, 'filename', c.filename, 'mapping', c.mapping,
    'mapping_text', x.text, 'mapping_file', x.file, 'sha256', encode(c.sha256, 'hex'), 'bytes', c.bytes, 'live', c.live,
    'revision', c.revision, 'download_count', c.download_count, 'first_downloaded_at', c.first_downloaded_at,
    'needs_review', c.needs_review, 'created_at', c.created_at, 'completed_at', j.completed_at,
    'revisions', (SELECT coalesce(jsonb_agg(to_jsonb(r) - '{conversion_id,user_id}'::text[] ORDER BY r.number), '[]')
                  FROM revisions r WHERE r.conversion_id = c.id),
    'files', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                  'kind', f.kind, 'key', f.key, 'bytes', o.bytes, 'sha256', encode(o.sha256, 'hex')) ORDER BY f.kind), '[]')
              FROM conversion_files f JOIN objects o ON o.key = f.key
              WHERE f.conversion_id = c.id AND (f.kind = 'result_xml' OR c.document_id IS NULL))) AS record
FROM conversions c JOIN jobs j ON j.id = c.id AND j.status = 'complete'
LEFT JOIN documents d ON d.id = c.document_id
LEFT JOIN mapping_texts x ON x.owner_id = c.owner_id AND x.sha256 = c.mapping_sha256
WHERE c.owner_id = :owner AND c.archived_at IS NULL AND d.deleted_at IS NULL AND (:after::text IS NULL OR c.id > :after::uuid)
  AND (:documents::uuid[] IS NULL OR c.document_id = ANY (:documents))
ORDER BY c.id LIMIT :most;

-- name: lock_exports(owner)!
-- Serialises the requests of an account for a prepared export.
SELECT pg_advisory_xact_lock(hashtextextended('export:' || :owner::text, 0));

-- name: newest_export(owner, id)
-- The export with this id, or the newest one. The objects of an export have no rows, so the sweep deletes them after a day.
SELECT id, status, done, total, output, created_at, error_message AS error, input -> 'filters' ->> 'collection' AS collection,
       created_at + interval '1 day' AS expires_at, created_at + interval '1 day' < engine_now() AS expired
FROM jobs WHERE owner_id = :owner AND kind = 'export_library' AND (:id::uuid IS NULL OR id = :id)
ORDER BY created_at DESC, id DESC LIMIT 1;
