-- name: lock_content(owner, sha256)!
-- Prevents a merge of the owner, and another document with the same content, until the transaction ends; as `place_upload` does.
SELECT pg_advisory_xact_lock(hashtextextended(id::text || :sha256, 0)) FROM (SELECT id FROM owners WHERE id = :owner FOR KEY SHARE) AS o;

-- name: known_documents(owner, origins)
-- The document of an owner that a document of an export is: restored earlier, never gone, or another one with the same content.
SELECT o.origin, f.document, EXISTS (SELECT FROM documents d WHERE d.id = f.document AND d.deleted_at IS NOT NULL) AS trashed
FROM jsonb_to_recordset(:origins) AS o (origin uuid, id uuid, sha256 text, copy boolean)
CROSS JOIN LATERAL (SELECT coalesce(
    (SELECT d.id FROM documents d WHERE d.owner_id = :owner AND d.id IN (o.id, o.origin) ORDER BY d.id = o.id DESC LIMIT 1),
    CASE WHEN NOT o.copy THEN (SELECT u.document_id FROM uploads u JOIN documents d ON d.id = u.document_id
        WHERE u.owner_id = :owner AND u.is_canonical AND u.sha256 = decode(o.sha256, 'hex')) END) AS document) AS f;

-- name: canonical(owner, sha256)
SELECT u.document_id AS id FROM uploads u JOIN documents d ON d.id = u.document_id
WHERE u.owner_id = :owner AND u.is_canonical AND u.sha256 = decode(:sha256, 'hex');

-- name: prepare_upload(id, document_id, filename, content_type, source_type, source_url, duplicates)!
UPDATE uploads SET document_id = :document_id, filename = :filename, content_type = :content_type, source_type = :source_type,
                   source_url = :source_url, duplicates = :duplicates WHERE id = :id;

-- name: join_import(owner, key)
-- The import that restored documents belong to, so that they have one notification.
INSERT INTO imports (id, owner_id, key) VALUES (gen_random_uuid(), :owner, :key)
ON CONFLICT (owner_id, key) WHERE key IS NOT NULL DO UPDATE SET last_added_at = engine_now(), settled_at = NULL
RETURNING id;

-- name: insert_document(id, owner, process, record, family, duplicate_of, import_id)!
-- Without title and author, which are facts. If the family has this version, the document becomes its newest one.
INSERT INTO documents (id, owner_id, process_id, status, filename, content_type, source_type, source_url, sha256, bytes, quality,
                       revision, last_revision, text_ready, needs_classification, page_count, word_count, language,
                       document_date, summary, metadata, duplicate_of, created_at, updated_at, edited, described_by, family_id,
                       version, kind, sender, amount, currency, import_id, expires_on, superseded)
SELECT :id, :owner, :process, 'completed', r.filename, r.content_type, r.source_type, r.source_url, decode(r.sha256, 'hex'), r.bytes,
       r.quality, r.revision, r.revision, r.text_ready, r.needs_classification, r.page_count, r.word_count, r.language,
       r.document_date, r.summary, r.metadata, :duplicate_of, least(r.created_at, clock_timestamp()), least(r.updated_at, clock_timestamp()),
       ARRAY(SELECT jsonb_array_elements_text(r.edited)), r.described_by, :family,
       CASE WHEN EXISTS (SELECT FROM documents d WHERE d.family_id = :family AND d.version = r.version)
            THEN (SELECT max(version) + 1 FROM documents d WHERE d.family_id = :family) ELSE r.version END,
       r.kind, r.sender, r.amount, r.currency, :import_id, r.expires_on,
       EXISTS (SELECT FROM documents d WHERE d.family_id = :family AND d.version > r.version AND d.deleted_at IS NULL)
       AND NOT EXISTS (SELECT FROM documents d WHERE d.family_id = :family AND d.version = r.version)
FROM jsonb_to_record(:record) AS r (
    filename text, content_type text, source_type text, source_url text, sha256 text, bytes bigint, quality text, revision integer,
    text_ready boolean, needs_classification boolean, page_count integer, word_count integer, language text, document_date date,
    summary text, metadata jsonb, created_at timestamptz, updated_at timestamptz, edited jsonb, described_by text, version integer,
    kind text, sender text, amount numeric, currency text, expires_on date);

-- name: family_of(owner, document)
SELECT family_id AS id FROM documents WHERE id = :document AND owner_id = :owner;

-- name: lock_family(family)!
SELECT FROM documents WHERE family_id = :family ORDER BY id FOR NO KEY UPDATE;

-- name: insert_job(process, owner, document, revision, origin)!
-- The job of a restored document: it is complete, because its result was taken over.
INSERT INTO jobs (id, kind, owner_id, document_id, key, virtual_time, status, max_attempts, admitted, input, output, created_at,
                  queued_at, completed_at)
SELECT :process, k.name, :owner, :document, concat_ws(':', 'process', :document::uuid, :revision::integer), 0, 'complete', k.max_attempts, false,
       jsonb_build_object('revision', :revision::integer), jsonb_build_object('restored', :origin::uuid), n.at, n.at, n.at
FROM job_kinds k, (SELECT engine_now() AS at) AS n WHERE k.name = 'process_document';

-- name: keep_source(id, document, process, canonical, key)
-- Returns nothing if another request has used or removed the upload in the meantime.
UPDATE uploads SET state = 'uploaded', document_id = :document, process_id = :process, is_canonical = :canonical,
                   finalized_at = clock_timestamp() WHERE id = :id AND state = 'pending' AND object_key = :key RETURNING id;

-- name: forget_uploads(owner, ids)
-- Uploads whose bytes belong to a document now, or are not needed. An upload that became a document is never removed.
DELETE FROM uploads WHERE owner_id = :owner AND id = ANY (:ids) AND state = 'pending' RETURNING object_key;

-- name: insert_files(document, process, files)!
WITH made AS (
    INSERT INTO objects (key, bytes, sha256)
    SELECT f.key, f.bytes, decode(f.sha256, 'hex') FROM jsonb_to_recordset(:files) AS f (key text, bytes bigint, sha256 text)
    RETURNING key
)
INSERT INTO artifacts (id, document_id, job_id, kind, revision, key, content_type)
SELECT gen_random_uuid(), :document, :process, f.kind, f.revision, f.key, f.content_type
FROM jsonb_to_recordset(:files) AS f (kind text, revision integer, key text, content_type text) JOIN made USING (key);

-- name: insert_chunks(document, revision, chunks)!
INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, page_from, page_to, heading_path, word_count,
                    themes, tone, importance, summary, made_by, seconds, boxes)
SELECT c.id, :document, :revision, c.index, c.content, c.start, c."end", c.page_from, c.page_to,
       ARRAY(SELECT jsonb_array_elements_text(c.heading_path)), c.word_count, ARRAY(SELECT jsonb_array_elements_text(c.themes)),
       CASE WHEN jsonb_typeof(c.tone) = 'object' THEN c.tone END, c.importance, c.summary, c.made_by, c.seconds, c.boxes
FROM jsonb_to_recordset(:chunks) AS c (
    id uuid, index integer, content text, start integer, "end" integer, page_from integer, page_to integer, heading_path jsonb,
    word_count integer, themes jsonb, tone jsonb, importance real, summary text, made_by text, seconds real, boxes jsonb);

-- name: insert_concepts(owner, chunks)!
INSERT INTO chunk_concepts (chunk_id, concept, importance, owner_id)
SELECT c.id, k.key, k.value::text::real, :owner
FROM jsonb_to_recordset(:chunks) AS c (id uuid, concepts jsonb), jsonb_each(c.concepts) AS k;

-- name: insert_facts(document, facts)!
INSERT INTO facts (document_id, made_by, name, number, value, normalized, page, box, quote, confidence, source, status, revision, made_at)
SELECT :document, f.made_by, f.name, f.number, f.value, f.normalized, f.page, CASE WHEN jsonb_typeof(f.box) = 'array' THEN f.box END,
       f.quote, f.confidence, f.source, f.status, f.revision, f.made_at
FROM jsonb_to_recordset(:facts) AS f (
    made_by text, name text, number integer, value text, normalized text, page integer, box jsonb, quote text, confidence real,
    source text, status text, revision integer, made_at timestamptz)
ON CONFLICT DO NOTHING;

-- name: insert_highlights(document, user, highlights)!
INSERT INTO highlights (id, document_id, user_id, quote, text_before, text_after, colour, note, char_start, char_end, lost, created_at, updated_at)
SELECT h.id, :document, :user, h.quote, h.text_before, h.text_after, h.colour, h.note, h.char_start, h.char_end, h.lost, h.created_at, h.updated_at
FROM jsonb_to_recordset(:highlights) AS h (
    id uuid, quote text, text_before text, text_after text, colour text, note text, char_start integer, char_end integer,
    lost boolean, created_at timestamptz, updated_at timestamptz)
ON CONFLICT DO NOTHING;

-- name: insert_other_names(owner, document, names)!
-- Names of uploads of the same bytes that were not stored again.
INSERT INTO uploads (id, owner_id, document_id, process_id, state, duplicates, filename, content_type, source_type, bytes, sha256, finalized_at)
SELECT gen_random_uuid(), :owner, d.id, d.process_id, 'deduplicated', 'reuse', n.name, d.content_type, 'file', d.bytes, d.sha256, clock_timestamp()
FROM documents d, jsonb_array_elements_text(:names) AS n (name) WHERE d.id = :document;

-- name: set_names(document, title, author, collection, updated_at)!
-- Last, so that nothing before changes the time of the last change.
UPDATE documents SET title = :title, author = :author, collection_id = :collection,
                     updated_at = least(:updated_at, clock_timestamp()) WHERE id = :document;

-- name: set_edits(document, collection, edited, metadata)!
-- What a person set on a document that is processed again.
WITH edited AS (
    UPDATE documents SET collection_id = :collection, edited = :edited, metadata = :metadata || metadata WHERE id = :document RETURNING id
)
SELECT follow_facts(id, ARRAY(SELECT DISTINCT f.name FROM facts f WHERE f.document_id = :document AND f.made_by = 'person')) FROM edited;

-- name: set_fields(owner, document, fields)!
INSERT INTO document_fields (document_id, field_id, value)
SELECT :document, f.id, v.value FROM jsonb_each_text(:fields) AS v
JOIN fields f ON f.owner_id = :owner AND lower(f.name) = lower(v.key)
ON CONFLICT DO NOTHING;

-- name: set_tags(owner, document, tags)!
INSERT INTO document_tags (document_id, tag_id, made_by)
SELECT :document, t.id, g.made_by FROM jsonb_to_recordset(:tags) AS g (name text, made_by text)
JOIN tags t ON t.owner_id = :owner AND lower(t.name) = lower(g.name)
ON CONFLICT DO NOTHING;

-- name: has_other_documents(owner)
-- Whether the owner has documents that were not restored, with which restored ones must be compared.
SELECT EXISTS (SELECT FROM documents d JOIN jobs j ON j.id = d.process_id
               WHERE d.owner_id = :owner AND d.deleted_at IS NULL AND NOT coalesce(j.output ? 'restored', false)) AS found;

-- name: vector_length(model)
SELECT dimensions FROM embedding_models WHERE name = :model;

-- name: ready_vectors(document)!
UPDATE documents SET embeddings_ready = true WHERE id = :document;

-- Other records. Each query returns what is new. -----------------------------------------------------------------------

-- name: restore_collections(owner, items)
INSERT INTO collections (id, owner_id, name, keep_days, created_at)
SELECT r.id, :owner, r.name, r.keep_days, r.created_at
FROM jsonb_to_recordset(:items) AS r (id uuid, name text, keep_days integer, created_at timestamptz)
ON CONFLICT DO NOTHING RETURNING id;

-- name: restore_fields(owner, items)
INSERT INTO fields (id, owner_id, name, type, choices, created_at)
SELECT r.id, :owner, r.name, r.type, ARRAY(SELECT jsonb_array_elements_text(r.choices)), r.created_at
FROM jsonb_to_recordset(:items) AS r (id uuid, name text, type text, choices jsonb, created_at timestamptz)
ON CONFLICT DO NOTHING RETURNING id;

-- name: restore_rules(owner, items)
-- After the owner's other rules.
INSERT INTO rules (id, owner_id, name, position, conditions, actions, enabled, created_at, updated_at)
SELECT r.id, :owner, r.name, r.position + coalesce((SELECT max(o.position) FROM rules o WHERE o.owner_id = :owner), 0), r.conditions,
       r.actions, r.enabled, r.created_at, r.updated_at
FROM jsonb_to_recordset(:items) AS r (
    id uuid, origin uuid, name text, position integer, conditions jsonb, actions jsonb, enabled boolean, created_at timestamptz,
    updated_at timestamptz)
WHERE NOT EXISTS (SELECT FROM rules o WHERE o.owner_id = :owner AND o.id = r.origin)
ORDER BY r.position
ON CONFLICT DO NOTHING RETURNING id;

-- name: restore_parts(owner, items)
-- The ids are those of existing documents.
INSERT INTO document_parts (parent_id, number, name, document_id)
SELECT r.parent, r.number, r.name, r.document
FROM jsonb_to_recordset(:items) AS r (parent uuid, number integer, name text, document uuid)
JOIN documents d ON d.id = r.parent AND d.owner_id = :owner
WHERE r.parent <> r.document ORDER BY r.parent, r.number
ON CONFLICT DO NOTHING RETURNING parent_id;

-- name: restore_connections(owner, items)
-- Only between quotes that the current texts contain at these positions.
INSERT INTO connections (id, owner_id, engine, source_chunk, target_chunk, source_document, target_document, strength,
                         source_start, source_end, target_start, target_end, explanation, status, made_by, digest, detail, found_at)
SELECT r.id, :owner, r.engine, least(s.id, t.id), greatest(s.id, t.id),
       CASE WHEN s.id < t.id THEN s.document_id ELSE t.document_id END, CASE WHEN s.id < t.id THEN t.document_id ELSE s.document_id END,
       r.strength, CASE WHEN s.id < t.id THEN p.s_start ELSE p.t_start END, CASE WHEN s.id < t.id THEN p.s_end ELSE p.t_end END,
       CASE WHEN s.id < t.id THEN p.t_start ELSE p.s_start END, CASE WHEN s.id < t.id THEN p.t_end ELSE p.s_end END,
       r.explanation, r.status, r.made_by, decode(r.digest, 'hex'), r.detail, least(r.found_at, clock_timestamp())
FROM jsonb_to_recordset(:items) AS r (
    id uuid, engine text, strength real, explanation text, status text, made_by text, digest text, detail jsonb, found_at timestamptz,
    source jsonb, target jsonb)
CROSS JOIN LATERAL (SELECT (r.source ->> 'start')::integer AS s_start, (r.target ->> 'start')::integer AS t_start,
    (r.source ->> 'start')::integer + length(r.source ->> 'quote') AS s_end,
    (r.target ->> 'start')::integer + length(r.target ->> 'quote') AS t_end) AS p
JOIN documents ds ON ds.id = (r.source ->> 'document_id')::uuid AND ds.owner_id = :owner
JOIN documents dt ON dt.id = (r.target ->> 'document_id')::uuid AND dt.owner_id = :owner AND dt.id <> ds.id
JOIN chunks s ON s.document_id = ds.id AND s.revision = ds.revision AND s.index = (r.source ->> 'chunk')::integer
             AND substr(s.content, p.s_start + 1, p.s_end - p.s_start) = r.source ->> 'quote'
JOIN chunks t ON t.document_id = dt.id AND t.revision = dt.revision AND t.index = (r.target ->> 'chunk')::integer
             AND substr(t.content, p.t_start + 1, p.t_end - p.t_start) = r.target ->> 'quote'
ON CONFLICT DO NOTHING RETURNING id;

-- name: restore_verdicts(owner, items)
INSERT INTO connection_verdicts (owner_id, digest, verdict, decided_at)
SELECT :owner, decode(r.id, 'hex'), r.verdict, r.decided_at
FROM jsonb_to_recordset(:items) AS r (id text, verdict text, decided_at timestamptz)
ON CONFLICT DO NOTHING RETURNING digest;

-- name: restore_weights(owner, items)
INSERT INTO connection_weights (owner_id, semantic_similarity, contradiction_detection, thematic_bridge)
SELECT :owner, r.semantic_similarity, r.contradiction_detection, r.thematic_bridge
FROM jsonb_to_recordset(:items) AS r (semantic_similarity smallint, contradiction_detection smallint, thematic_bridge smallint)
ON CONFLICT DO NOTHING RETURNING owner_id;

-- name: restore_views(owner, items)
INSERT INTO views (id, owner_id, name, filter, sort, created_at)
SELECT r.id, :owner, r.name, r.filter, r.sort, r.created_at
FROM jsonb_to_recordset(:items) AS r (id uuid, name text, filter jsonb, sort text, created_at timestamptz)
ON CONFLICT DO NOTHING RETURNING id;

-- name: restore_prompts(owner, items)
-- The trigger stores the current version of each; the others are added by `restore_prompt_versions`.
INSERT INTO prompts (id, owner_id, title, content, system, execution_order, active, version, created_at, updated_at)
SELECT r.id, :owner, r.title, r.content, r.system, r.execution_order, r.active, r.version, r.created_at, r.updated_at
FROM jsonb_to_recordset(:items) AS r (
    id uuid, origin uuid, title text, content text, system text, execution_order integer, active boolean, version integer,
    created_at timestamptz, updated_at timestamptz)
WHERE NOT EXISTS (SELECT FROM prompts p WHERE p.owner_id = :owner AND p.id = r.origin)
ON CONFLICT DO NOTHING RETURNING id;

-- name: restore_prompt_versions(added, items)!
INSERT INTO prompt_versions (prompt_id, version, title, content, system, created_at)
SELECT r.id, v.version, v.title, v.content, v.system, v.created_at
FROM jsonb_to_recordset(:items) AS r (id uuid, versions jsonb),
     jsonb_to_recordset(r.versions) AS v (version integer, title text, content text, system text, created_at timestamptz)
WHERE r.id = ANY (:added)
ON CONFLICT (prompt_id, version) DO UPDATE SET created_at = excluded.created_at;

-- name: restore_threads(owner, items)
INSERT INTO threads (id, owner_id, title, scope, created_at, updated_at)
SELECT r.id, :owner, r.title, r.scope, r.created_at, r.updated_at
FROM jsonb_to_recordset(:items) AS r (id uuid, origin uuid, title text, scope jsonb, created_at timestamptz, updated_at timestamptz)
WHERE NOT EXISTS (SELECT FROM threads t WHERE t.owner_id = :owner AND t.id = r.origin)
ON CONFLICT DO NOTHING RETURNING id;

-- name: restore_turns(added, items)!
INSERT INTO turns (id, thread_id, number, question, understood_as, status, answer, statements, citations, found, note, made_by,
                   cost_usd, error, asked_at, answered_at)
SELECT u.id, r.id, u.number, u.question, u.understood_as, u.status, u.answer, u.statements, u.citations, u.found, u.note, u.made_by,
       u.cost_usd, CASE WHEN jsonb_typeof(u.error) = 'object' THEN u.error END, u.asked_at, u.answered_at
FROM jsonb_to_recordset(:items) AS r (id uuid, turns jsonb),
     jsonb_to_recordset(r.turns) AS u (
         id uuid, number integer, question text, understood_as text, status text, answer text, statements jsonb, citations jsonb,
         found boolean, note text, made_by text, cost_usd numeric, error jsonb, asked_at timestamptz, answered_at timestamptz)
WHERE r.id = ANY (:added);

-- name: restore_analyses(owner, items)
-- The job that prepared it is complete.
WITH fresh AS (
    SELECT r.*, d.revision FROM jsonb_to_recordset(:items) AS r (
        id uuid, origin uuid, document_id uuid, mode text, at_once integer, status text, phase text, unit text, units integer,
        error_code text, error_message text, created_at timestamptz, progressed_at timestamptz, completed_at timestamptz)
    JOIN documents d ON d.id = r.document_id AND d.owner_id = :owner
    WHERE NOT EXISTS (SELECT FROM analyses a WHERE a.owner_id = :owner AND a.id IN (r.id, r.origin))
), job AS (
    INSERT INTO jobs (id, kind, owner_id, document_id, virtual_time, status, max_attempts, admitted, output, created_at, queued_at, completed_at)
    SELECT f.id, k.name, :owner, f.document_id, 0, 'complete', k.max_attempts, false, jsonb_build_object('restored', f.origin),
           f.created_at, f.created_at, engine_now()
    FROM fresh f, job_kinds k WHERE k.name = 'analyse_document'
)
INSERT INTO analyses (id, owner_id, document_id, revision, mode, at_once, status, phase, unit, units, error_code, error_message,
                      created_at, progressed_at, completed_at)
SELECT id, :owner, document_id, revision, mode, at_once, status, phase, unit, units, error_code, error_message, created_at,
       progressed_at, completed_at FROM fresh RETURNING id;

-- name: restore_segments(added, items)!
INSERT INTO segments (id, analysis_id, parent_id, first, last, context_first, tokens, ready)
SELECT s.id, r.id, s.parent_id, s.first, s.last, s.context_first, s.tokens, true
FROM jsonb_to_recordset(:items) AS r (id uuid, segments jsonb),
     jsonb_to_recordset(r.segments) AS s (id uuid, parent_id uuid, first integer, last integer, context_first integer, tokens integer)
WHERE r.id = ANY (:added);

-- name: restore_results(added, items)!
INSERT INTO analysis_results (analysis_id, prompt_id, version, title, content, system, execution_order, status, answer, citations,
                              made_by, failed_models, error_code, error_message, completed_at, gaps)
SELECT r.id, x.prompt_id, x.version, x.title, x.content, x.system, x.execution_order, x.status, x.answer, x.citations, x.made_by,
       x.failed_models, x.error_code, x.error_message, x.completed_at, x.gaps
FROM jsonb_to_recordset(:items) AS r (id uuid, results jsonb),
     jsonb_to_recordset(r.results) AS x (
         prompt_id uuid, version integer, title text, content text, system text, execution_order integer, status text, answer text,
         citations jsonb, made_by text, failed_models jsonb, error_code text, error_message text, completed_at timestamptz, gaps jsonb)
WHERE r.id = ANY (:added);

-- name: restore_items(added, items)!
INSERT INTO analysis_items (id, analysis_id, segment_id, prompt_id, status, answer, made_by, failed_models, error_code, error_message, done_at)
SELECT i.id, r.id, i.segment_id, i.prompt_id, i.status, CASE WHEN jsonb_typeof(i.answer) = 'object' THEN i.answer END, i.made_by,
       i.failed_models, i.error_code, i.error_message, i.done_at
FROM jsonb_to_recordset(:items) AS r (id uuid, items jsonb),
     jsonb_to_recordset(r.items) AS i (
         id uuid, segment_id uuid, prompt_id uuid, status text, answer jsonb, made_by text, failed_models jsonb, error_code text,
         error_message text, done_at timestamptz)
WHERE r.id = ANY (:added);

-- name: known_conversion(owner, id, origin, sha256, mapping, mapping_sha256, bytes)
SELECT c.id FROM conversions c
WHERE c.owner_id = :owner AND (c.id IN (:id, :origin) OR c.live AND c.sha256 = decode(:sha256, 'hex') AND c.mapping = :mapping
    AND c.mapping_sha256 = decode(:mapping_sha256, 'hex') AND c.bytes = :bytes) LIMIT 1;

-- name: restore_conversion(id, owner, origin, document, record, mapping_sha256, result_days, key, file_bytes, file_sha256)!
WITH r AS (
    SELECT * FROM jsonb_to_record(:record) AS r (
        filename text, mapping text, mapping_text text, mapping_file text, sha256 text, bytes bigint, revision integer,
        download_count integer, first_downloaded_at timestamptz, needs_review boolean, created_at timestamptz, live boolean)
), job AS (
    INSERT INTO jobs (id, kind, owner_id, document_id, virtual_time, status, max_attempts, admitted, input, output, created_at,
                      queued_at, completed_at)
    SELECT :id, k.name, :owner, :document, 0, 'complete', k.max_attempts, false, jsonb_build_object('mapping', r.mapping),
           jsonb_build_object('restored', :origin::uuid), least(r.created_at, engine_now()), least(r.created_at, engine_now()), engine_now()
    FROM r, job_kinds k WHERE k.name = 'convert'
), text AS (
    INSERT INTO mapping_texts (owner_id, sha256, file, text)
    SELECT :owner, decode(:mapping_sha256, 'hex'), r.mapping_file, r.mapping_text FROM r ON CONFLICT DO NOTHING
), made AS (
    INSERT INTO conversions (id, owner_id, document_id, filename, mapping, mapping_sha256, sha256, bytes, live, revision, download_count,
                             first_downloaded_at, result_expires_at, created_at, needs_review)
    SELECT :id, :owner, :document, r.filename, r.mapping, decode(:mapping_sha256, 'hex'), decode(r.sha256, 'hex'), r.bytes, r.live,
           r.revision, r.download_count, r.first_downloaded_at, engine_now() + make_interval(days => :result_days), r.created_at, r.needs_review
    FROM r
), object AS (
    INSERT INTO objects (key, bytes, sha256) VALUES (:key, :file_bytes, decode(:file_sha256, 'hex'))
)
SELECT FROM r;

-- name: restore_revisions(id, key, revisions)!
WITH file AS (INSERT INTO conversion_files (conversion_id, kind, key) VALUES (:id, 'result_xml', :key))
INSERT INTO revisions (conversion_id, number, record, made_by, created_at, person, changes)
SELECT :id, v.number, v.record, v.made_by, v.created_at, v.person, CASE WHEN jsonb_typeof(v.changes) = 'array' THEN v.changes END
FROM jsonb_to_recordset(:revisions) AS v (
    number integer, record jsonb, made_by text, created_at timestamptz, person text, changes jsonb);

-- name: keep_uploaded_source(id, owner, upload, source_days)
-- The file of a conversion without a document. Returns nothing if the upload was used or removed meanwhile.
WITH upload AS (
    DELETE FROM uploads WHERE owner_id = :owner AND id = :upload AND state = 'pending' RETURNING object_key, bytes, sha256
), object AS (
    INSERT INTO objects (key, bytes, sha256) SELECT object_key, bytes, sha256 FROM upload
), expires AS (
    UPDATE conversions SET source_expires_at = engine_now() + make_interval(days => :source_days) WHERE id = :id
)
INSERT INTO conversion_files (conversion_id, kind, key) SELECT :id, 'source', object_key FROM upload RETURNING key;

-- name: keep_conversion_source(id)!
-- The file of a conversion of a document is that of the document.
INSERT INTO conversion_files (conversion_id, kind, key)
SELECT c.id, 'source', s.key FROM conversions c CROSS JOIN LATERAL conversion_source(c.document_id) s
WHERE c.id = :id AND s.key IS NOT NULL AND s.sha256 = c.sha256;
