-- name: known_contents(owner, contents)
-- The contents that the owner already has as documents, also in the trash.
SELECT encode(sha256, 'hex') AS sha256 FROM uploads
WHERE owner_id = :owner AND is_canonical AND sha256 = ANY (SELECT decode(c, 'hex') FROM unnest(:contents::text[]) AS c);

-- name: owner_of_account(email)
SELECT m.owner_id FROM memberships m JOIN users u ON u.id = m.user_id
WHERE u.email = lower(:email)
ORDER BY m.owner_id = u.owner_id DESC, m.created_at, m.owner_id LIMIT 1;

-- name: owner_with_id(id)
SELECT id FROM owners WHERE id = :id;

-- name: lock_owner(owner)!
SELECT FROM owners WHERE id = :owner FOR KEY SHARE;

-- name: lock_contents(owner, contents)!
-- The locks of `place_upload`, in one order, so that uploads and loads never add a file twice.
SELECT count(pg_advisory_xact_lock(hashtextextended(:owner::uuid::text || c.content, 0)))
FROM (SELECT content FROM unnest(:contents::text[]) AS given (content) ORDER BY content OFFSET 0) AS c;

-- name: begin_import(owner, key, id)
-- One import for all shards of a run, so that its documents have one notification.
INSERT INTO imports (id, owner_id, key) VALUES (:id, :owner, :key)
ON CONFLICT (owner_id, key) WHERE key IS NOT NULL DO UPDATE SET last_added_at = engine_now(), settled_at = NULL
RETURNING id;

-- name: make_staging()!
CREATE TEMPORARY TABLE bulk_documents (
    id uuid, upload uuid, process uuid, filename text, content_type text, source_type text, sha256 text, bytes bigint,
    quality text, page_count integer, word_count integer, summary text, made_by text, metadata jsonb, has_vectors boolean,
    pages jsonb, figures jsonb, chunks jsonb, facts jsonb, files jsonb
) ON COMMIT DROP;

-- name: make_vector_staging()!
CREATE TEMPORARY TABLE bulk_vectors (model integer, document uuid, chunk uuid, vector text) ON COMMIT DROP;

-- name: make_tag_staging()!
CREATE TEMPORARY TABLE bulk_tags (model integer, document uuid, name text, vector text) ON COMMIT DROP;

-- name: copy_documents()!
COPY bulk_documents FROM STDIN;

-- name: copy_vectors()!
COPY bulk_vectors FROM STDIN;

-- name: copy_tags()!
COPY bulk_tags FROM STDIN;

-- name: insert_objects()!
INSERT INTO objects (key, bytes, sha256)
SELECT f.key, f.bytes, decode(f.sha256, 'hex')
FROM bulk_documents s CROSS JOIN LATERAL jsonb_to_recordset(s.files) AS f (key text, bytes bigint, sha256 text);

-- name: insert_uploads(owner)!
INSERT INTO uploads (id, owner_id, document_id, process_id, state, is_canonical, duplicates, filename, content_type, source_type,
                     object_key, bytes, sha256, finalized_at)
SELECT s.upload, :owner, s.id, s.process, 'uploaded', true, 'reuse', s.filename, s.content_type, 'file',
       s.files -> 0 ->> 'key', s.bytes, decode(s.sha256, 'hex'), clock_timestamp()
FROM bulk_documents s;

-- name: insert_documents(owner, import_id)!
INSERT INTO documents (id, owner_id, process_id, status, filename, content_type, source_type, sha256, bytes, quality, revision,
                       last_revision, text_ready, embeddings_ready, page_count, word_count, summary, described_by, metadata,
                       import_id)
SELECT s.id, :owner, s.process, 'completed', s.filename, s.content_type, s.source_type, decode(s.sha256, 'hex'), s.bytes,
       s.quality, 1, 1, true, s.has_vectors, s.page_count, s.word_count, s.summary, s.made_by, s.metadata, :import_id
FROM bulk_documents s;

-- name: insert_artifacts()!
INSERT INTO artifacts (id, document_id, job_id, kind, revision, key, content_type)
SELECT gen_random_uuid(), s.id, CASE WHEN f.kind <> 'source' THEN s.process END, f.kind,
       CASE WHEN f.kind = 'source' THEN 0 ELSE 1 END, f.key, f.content_type
FROM bulk_documents s CROSS JOIN LATERAL jsonb_to_recordset(s.files) AS f (kind text, key text, content_type text);

-- name: insert_facts()!
INSERT INTO facts (document_id, made_by, revision, name, number, value, normalized, page, box, quote, confidence, source, status)
SELECT s.id, 'processing', 1, f.name, f.number, f.value, f.normalized, f.page, nullif(f.box, 'null'), f.quote, f.confidence,
       f.source, f.status
FROM bulk_documents s CROSS JOIN LATERAL jsonb_to_recordset(s.facts) AS f (
    name text, number integer, value text, normalized text, page integer, box jsonb, quote text, confidence real, source text,
    status text);

-- name: follow_facts(names)!
SELECT follow_all_facts(ARRAY(SELECT id FROM bulk_documents), :names::text[]);

-- name: insert_pages()!
INSERT INTO pages (document_id, revision, number, label, char_start, char_end, width, height, bookmarks, unsure, regions)
SELECT s.id, 1, p.number, p.label, p.start, p."end", p.width, p.height, p.bookmarks, p.unsure, p.regions
FROM bulk_documents s CROSS JOIN LATERAL jsonb_to_recordset(s.pages) AS p (
    number integer, label text, start integer, "end" integer, width real, height real, bookmarks jsonb, unsure text,
    regions jsonb);

-- name: insert_figures()!
INSERT INTO figures (document_id, revision, number, kind, char_start, page, box, member, caption, alternative)
SELECT s.id, 1, f.number, f.kind, f.start, f.page, f.box, f.member, f.caption, f.alternative
FROM bulk_documents s CROSS JOIN LATERAL jsonb_to_recordset(s.figures) AS f (
    number integer, kind text, start integer, page integer, box jsonb, member text, caption text, alternative text)
ON CONFLICT DO NOTHING;

-- name: insert_chunks()!
INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, page_from, page_to, heading_path, word_count,
                    seconds, boxes, themes, tone, importance, summary, made_by)
SELECT c.id, s.id, 1, c.index, c.content, c.start, c."end", c.page_from, c.page_to,
       ARRAY(SELECT jsonb_array_elements_text(c.heading_path)), c.word_count, c.seconds, c.boxes,
       ARRAY(SELECT jsonb_array_elements_text(c.themes)), c.tone, c.importance, c.summary, c.made_by
FROM bulk_documents s CROSS JOIN LATERAL jsonb_to_recordset(s.chunks) AS c (
    id uuid, index integer, content text, start integer, "end" integer, page_from integer, page_to integer, heading_path jsonb,
    word_count integer, seconds real, boxes jsonb, themes jsonb, tone jsonb, importance real, summary text, made_by text);

-- name: insert_concepts(owner)!
INSERT INTO chunk_concepts (chunk_id, concept, importance, owner_id)
SELECT c.id, k.text, k.importance, :owner
FROM bulk_documents s CROSS JOIN LATERAL jsonb_to_recordset(s.chunks) AS c (id uuid, concepts jsonb)
CROSS JOIN LATERAL jsonb_to_recordset(c.concepts) AS k (text text, importance real)
ON CONFLICT DO NOTHING;

-- name: insert_vectors(owner)!
INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector)
SELECT model, chunk, :owner, document, vector::vector FROM bulk_vectors;

-- name: insert_tags(owner)!
-- The first spelling of a tag is kept.
INSERT INTO tags (id, owner_id, name)
SELECT gen_random_uuid(), :owner, t.name
FROM (SELECT DISTINCT ON (lower(name)) name FROM bulk_tags ORDER BY lower(name), name) AS t
ON CONFLICT (owner_id, lower(name)) DO NOTHING;

-- name: insert_document_tags(owner)!
INSERT INTO document_tags (document_id, tag_id, made_by)
SELECT s.document, t.id, 'local' FROM bulk_tags s JOIN tags t ON t.owner_id = :owner AND lower(t.name) = lower(s.name)
ON CONFLICT DO NOTHING;

-- name: insert_tag_vectors(owner)!
INSERT INTO tag_embeddings (model_id, tag_id, vector)
SELECT DISTINCT ON (t.id) s.model, t.id, s.vector::vector
FROM bulk_tags s JOIN tags t ON t.owner_id = :owner AND lower(t.name) = lower(s.name)
ON CONFLICT DO NOTHING;

-- name: limit_comparisons(key)
-- One for each worker that is running.
SELECT set_cap(:key, greatest(1, (SELECT count(*) FROM workers WHERE expires_at > engine_now()))::integer);

-- name: insert_jobs(owner)!
-- A finished job for each document, as for a document that shares the results of a duplicate. Jobs that follow it are in the bulk
-- lane, because this one is.
INSERT INTO jobs (id, kind, owner_id, document_id, key, priority, virtual_time, status, max_attempts, admitted, output,
                  created_at, queued_at, completed_at)
SELECT s.process, k.name, :owner, s.id, concat('process:', s.id, ':1'), 15, 0, 'complete', k.max_attempts, false,
       jsonb_build_object('chunks', jsonb_array_length(s.chunks), 'bulk', true), at.now, at.now, at.now
FROM bulk_documents s JOIN job_kinds k ON k.name = 'process_document' CROSS JOIN (SELECT engine_now() AS now) AS at;
