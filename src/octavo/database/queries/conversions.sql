-- name: begin(job, owner, document, filename, mapping, mapping_sha256, sha256, bytes, key, shared, source_days)
-- Queue a conversion, or return the existing one.
SELECT id, made FROM begin_conversion(:job, :owner, :document, :filename, :mapping, decode(:mapping_sha256, 'hex'),
                                      decode(:sha256, 'hex'), :bytes, :key, :shared, :source_days);

-- name: refuse(id, owner, filename, mapping, code, message)!
SELECT refuse_conversion(:id, :owner, :filename, :mapping, :code, :message);

-- name: document_source(owner, document)
-- The file that a document of the library is converted from.
SELECT d.filename, d.source_type, coalesce(u.key, a.key) AS key, encode(o.sha256, 'hex') AS sha256, o.bytes
FROM documents d
LEFT JOIN artifacts a ON a.document_id = d.id AND a.kind = 'source' AND a.revision = 0
LEFT JOIN artifacts u ON u.document_id = d.id AND u.kind = 'unlocked' AND u.revision = 0
LEFT JOIN objects o ON o.key = coalesce(u.key, a.key)
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: show(owner, id)
SELECT c.id, c.document_id, c.filename, c.mapping, j.status, j.error_code, j.error_message, c.revision,
       encode(c.sha256, 'hex') AS sha256, c.bytes, c.download_count, c.first_downloaded_at, c.archived_at, c.created_at,
       r.record::text AS record
FROM conversions c JOIN jobs j ON j.id = c.id
LEFT JOIN revisions r ON r.conversion_id = c.id AND r.number = c.revision
WHERE c.id = :id AND c.owner_id = :owner;

-- name: page(owner, status, before, limit)
-- Newest first, without values; ids are in creation order.
SELECT c.id, c.document_id, c.filename, c.mapping, j.status, j.error_code, j.error_message, c.revision,
       encode(c.sha256, 'hex') AS sha256, c.bytes, c.download_count, c.first_downloaded_at, c.archived_at, c.created_at,
       NULL::text AS record
FROM conversions c JOIN jobs j ON j.id = c.id
WHERE c.owner_id = :owner AND (:status::text IS NULL OR j.status = :status)
  AND (:before::uuid IS NULL OR (c.created_at, c.id) < (SELECT b.created_at, b.id FROM conversions b WHERE b.id = :before))
ORDER BY c.created_at DESC, c.id DESC LIMIT :limit;

-- name: confidence_summaries(owner, ids)
SELECT c.id, s.found, s.unverified, s.lowest AS least, s.missing, s.broken
FROM conversions c JOIN revisions r ON r.conversion_id = c.id AND r.number = c.revision
CROSS JOIN LATERAL summarise_record(r.record) s
WHERE c.owner_id = :owner AND c.id = ANY (:ids);

-- name: model_cost(owner, id)
-- Cost of the model calls of a conversion; no calls means that an earlier answer was reused.
SELECT count(*) AS calls, coalesce(sum(tokens_in + tokens_out), 0)::bigint AS tokens,
       coalesce(sum(cost_usd), 0)::double precision AS cost_usd
FROM ai_calls WHERE job_id = :id AND owner_id = :owner AND state <> 'reserved' AND fault IS DISTINCT FROM 'over_budget';

-- name: file(owner, id, kind)
SELECT f.key, o.bytes, encode(o.sha256, 'hex') AS sha256
FROM conversions c JOIN conversion_files f ON f.conversion_id = c.id AND f.kind = :kind JOIN objects o ON o.key = f.key
WHERE c.id = :id AND c.owner_id = :owner;

-- name: count_download(id, expire_now)!
-- Counts a download and adds the event. If expire_now is set, the result expires immediately.
WITH counted AS (
    UPDATE conversions SET download_count = download_count + 1,
           first_downloaded_at = coalesce(first_downloaded_at, engine_now()),
           result_expires_at = CASE WHEN :expire_now THEN engine_now() ELSE result_expires_at END
    WHERE id = :id RETURNING id, owner_id, document_id
)
INSERT INTO events (process_id, kind, owner_id, document_id) SELECT id, 'downloaded', owner_id, document_id FROM counted;

-- name: work(id)
-- The input of a conversion job.
SELECT c.owner_id, c.mapping, encode(c.mapping_sha256, 'hex') AS mapping_sha256, f.key, encode(c.sha256, 'hex') AS sha256
FROM conversions c LEFT JOIN conversion_files f ON f.conversion_id = c.id AND f.kind = 'source'
WHERE c.id = :id;

-- name: insert_object(key, bytes, sha256)!
INSERT INTO objects (key, bytes, sha256) VALUES (:key, :bytes, decode(:sha256, 'hex'));

-- name: forget_file(id, kind)
DELETE FROM conversion_files WHERE conversion_id = :id AND kind = :kind RETURNING key;

-- name: keep_file(id, kind, key)!
INSERT INTO conversion_files (conversion_id, kind, key) VALUES (:id, :kind, :key);

-- name: add_revision(id, record, made_by, user, result_days)
-- It becomes the current revision, and the retention time of the result starts again.
WITH next AS (
    UPDATE conversions SET revision = revision + 1,
           result_expires_at = engine_now() + make_interval(days => :result_days)
    WHERE id = :id RETURNING id, revision
)
INSERT INTO revisions (conversion_id, number, record, made_by, user_id)
SELECT id, revision, :record, :made_by, :user FROM next RETURNING number;

-- name: lock(owner, id)
-- Locks a conversion for a correction: no other transaction can add a revision until this one ends.
SELECT revision FROM conversions WHERE id = :id AND owner_id = :owner FOR UPDATE;

-- name: revisions(owner, id)
SELECT r.number, r.record::text AS record, r.made_by, r.user_id, u.email AS person, r.created_at
FROM revisions r JOIN conversions c ON c.id = r.conversion_id LEFT JOIN users u ON u.id = r.user_id
WHERE c.id = :id AND c.owner_id = :owner ORDER BY r.number;

-- name: corrected(owner)
-- First and last revision of each conversion that a person corrected.
SELECT c.id, c.mapping, encode(c.sha256, 'hex') AS sha256, first.record::text AS found, last.record::text AS corrected
FROM conversions c
JOIN revisions first ON first.conversion_id = c.id AND first.number = 1
JOIN revisions last ON last.conversion_id = c.id AND last.number = c.revision AND last.made_by = 'person'
WHERE c.owner_id = :owner ORDER BY c.created_at, c.id;

-- name: model_checks(owner)
-- Conversions for which a model was called, with the values that the engine accepted.
SELECT c.id, c.mapping, encode(c.sha256, 'hex') AS sha256, r.created_at, r.record::text AS record
FROM conversions c JOIN revisions r ON r.conversion_id = c.id AND r.number = 1
WHERE c.owner_id = :owner AND r.record ? 'model' ORDER BY c.created_at, c.id;

-- name: expire_sources(most)
-- Deletes expired sources of finished jobs; the conversion and its result stay.
WITH due AS (
    SELECT c.id FROM conversions c JOIN jobs j ON j.id = c.id
    WHERE source_expires_at <= engine_now() AND j.status IN ('complete', 'failed', 'dead_letter', 'cancelled')
    ORDER BY source_expires_at LIMIT :most FOR UPDATE OF c SKIP LOCKED
), over AS (
    UPDATE conversions c SET source_expires_at = NULL FROM due WHERE c.id = due.id RETURNING c.id, c.owner_id, c.document_id
), told AS (
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    SELECT id, 'expired', owner_id, document_id, '{"what": "source"}' FROM over
), gone AS (
    DELETE FROM conversion_files f USING over WHERE f.conversion_id = over.id AND f.kind = 'source' RETURNING f.key
)
SELECT (SELECT count(*) FROM over), ARRAY(SELECT key FROM gone);

-- name: expire_results(most)
-- Deletes expired results: the row stays as archived, and the same file can be converted again.
WITH due AS (
    SELECT id FROM conversions WHERE result_expires_at <= engine_now()
    ORDER BY result_expires_at LIMIT :most FOR UPDATE SKIP LOCKED
), over AS (
    UPDATE conversions c SET result_expires_at = NULL, source_expires_at = NULL, archived_at = engine_now(), live = false
    FROM due WHERE c.id = due.id RETURNING c.id, c.owner_id, c.document_id
), told AS (
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    SELECT id, 'expired', owner_id, document_id, '{"what": "result"}' FROM over
), values_gone AS (
    DELETE FROM revisions r USING over WHERE r.conversion_id = over.id
), gone AS (
    DELETE FROM conversion_files f USING over WHERE f.conversion_id = over.id RETURNING f.key
)
SELECT (SELECT count(*) FROM over), ARRAY(SELECT key FROM gone);

-- name: delete_unused_objects(keys)
DELETE FROM objects WHERE key = ANY (:keys) AND refs = 0 RETURNING key;

-- name: own_mappings(owner)
-- The text is returned only if there is no summary.
SELECT name, file, CASE WHEN summary IS NULL THEN text END, created_at, summary FROM mappings
WHERE owner_id = :owner ORDER BY name;

-- name: count_mappings(owner)
SELECT count(*) FROM mappings WHERE owner_id = :owner;

-- name: own_mapping(owner, name)
SELECT name, file, text, created_at FROM mappings WHERE owner_id = :owner AND name = :name;

-- name: add_mapping(id, owner, name, file, text, summary)
-- Returns nothing if the name is taken.
INSERT INTO mappings (id, owner_id, name, file, text, summary) VALUES (:id, :owner, :name, :file, :text, :summary)
ON CONFLICT (owner_id, name) DO NOTHING RETURNING name;

-- name: gateway_pause(gate, seconds)
SELECT gateway_pause(:gate, make_interval(secs => :seconds));

-- name: gateway_answered(gate, well, most)!
SELECT count_for_circuit(:gate, :well, :most, engine_now());

-- name: report_gateway_call(job, detail)!
INSERT INTO events (process_id, kind, owner_id, document_id, detail)
SELECT id, 'gateway', owner_id, document_id, :detail FROM jobs WHERE id = :job;
