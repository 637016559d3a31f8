-- name: begin(job, owner, document, filename, mapping, mapping_sha256, file, text, sha256, bytes, key, source_days)
-- Queue a conversion, or return the existing one.
SELECT id, made, used FROM begin_conversion(:job, :owner, :document, :filename, :mapping, decode(:mapping_sha256, 'hex'), :file,
                                            :text, decode(:sha256, 'hex'), :bytes, :key, :source_days);

-- name: lock_content(owner, id, mapping)
-- The lock of begin_conversion, for the file of a conversion.
SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(':', 'convert', c.owner_id, encode(c.sha256, 'hex'), :mapping::text), 0))
FROM conversions c WHERE c.id = :id AND c.owner_id = :owner;

-- name: retire(owner, id, mapping, mapping_sha256)!
-- The complete conversion of this file with this mapping is no longer the one that a repeated submission returns.
UPDATE conversions c SET live = false FROM conversions old, jobs j
WHERE old.id = :id AND old.owner_id = :owner AND c.owner_id = old.owner_id AND c.sha256 = old.sha256 AND c.bytes = old.bytes
  AND c.mapping = :mapping AND c.mapping_sha256 = decode(:mapping_sha256, 'hex') AND c.live
  AND j.id = c.id AND j.status = 'complete';

-- name: same_content(owner, id, mapping, mapping_sha256)
-- The conversion of this file with this mapping that is in progress.
SELECT c.id FROM conversions c JOIN conversions old ON old.owner_id = c.owner_id AND old.sha256 = c.sha256 AND old.bytes = c.bytes
WHERE old.id = :id AND old.owner_id = :owner AND c.mapping = :mapping AND c.mapping_sha256 = decode(:mapping_sha256, 'hex') AND c.live;

-- name: begin_again(job, owner, id, mapping, mapping_sha256, file, text, source_days)!
-- Converts the file of a conversion again. Both conversions use the same stored object.
WITH kept AS (
    INSERT INTO mapping_texts (owner_id, sha256, file, text) VALUES (:owner, decode(:mapping_sha256, 'hex'), :file, :text)
    ON CONFLICT DO NOTHING
), made AS (
    INSERT INTO conversions (id, owner_id, document_id, filename, mapping, mapping_sha256, sha256, bytes, live, source_expires_at)
    SELECT :job, c.owner_id, c.document_id, c.filename, :mapping, decode(:mapping_sha256, 'hex'), c.sha256, c.bytes, true,
           CASE WHEN c.source_expires_at IS NOT NULL THEN engine_now() + make_interval(days => :source_days) END
    FROM conversions c WHERE c.id = :id AND c.owner_id = :owner
    RETURNING id
)
INSERT INTO conversion_files (conversion_id, kind, key)
SELECT made.id, 'source', f.key FROM made JOIN conversion_files f ON f.conversion_id = :id AND f.kind = 'source';

-- name: insert_batch(id, owner, mapping)!
INSERT INTO conversion_batches (id, owner_id, mapping) VALUES (:id, :owner, :mapping);

-- name: begin_part(batch, owner, jobs, mapping_sha256, file, text)!
-- Queue the conversions of some documents of a batch.
SELECT begin_batch_part(:batch, :owner, :jobs, decode(:mapping_sha256, 'hex'), :file, :text);

-- name: end_listing(batch)!
-- All documents of a batch have been looked at. If no conversion is left to wait for, the batch is complete.
WITH listed AS (UPDATE conversion_batches SET listed = true WHERE id = :batch RETURNING id)
SELECT id FROM listed;

-- name: complete_batch(batch)!
SELECT complete_batch(:batch);

-- name: batches(owner, id, recent)
-- Batches of an owner that are running or ended recently, newest first, or one of them.
SELECT b.id, b.mapping, b.total, b.ended, b.existing, b.skipped, b.listed, b.created_at, b.completed_at,
       (SELECT count(*) FROM conversions c WHERE c.batch_id = b.id AND c.needs_review) AS needs_review,
       (SELECT count(*) FROM conversions c JOIN jobs j ON j.id = c.id
        WHERE c.batch_id = b.id AND j.status IN ('failed', 'dead_letter')) AS failed
FROM conversion_batches b JOIN jobs own ON own.id = b.id
WHERE b.owner_id = :owner
  AND CASE WHEN :id::uuid IS NULL
           THEN coalesce(b.completed_at > engine_now() - make_interval(hours => :recent), own.status NOT IN ('failed', 'cancelled'))
           ELSE b.id = :id END
ORDER BY b.created_at DESC LIMIT 10;

-- name: refuse(id, owner, filename, mapping, code, message)!
SELECT refuse_conversion(:id, :owner, :filename, :mapping, :code, :message);

-- name: document_source(owner, document)
-- The file that a document of the library is converted from.
SELECT d.filename, d.title, d.source_type, s.key, encode(s.sha256, 'hex') AS sha256, s.bytes
FROM documents d LEFT JOIN LATERAL conversion_source(d.id) s ON true
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: show(owner, id)
SELECT c.id, c.document_id, c.filename, c.mapping, j.status, j.error_code, j.error_message, c.revision,
       encode(c.sha256, 'hex') AS sha256, c.bytes, c.download_count, c.first_downloaded_at, c.archived_at, c.created_at,
       c.needs_review, c.batch_id, c.source_expires_at, c.result_expires_at, r.record::text AS record
FROM conversions c JOIN jobs j ON j.id = c.id
LEFT JOIN revisions r ON r.conversion_id = c.id AND r.number = c.revision
WHERE c.id = :id AND c.owner_id = :owner;

-- name: page(owner, id_part, status, batch, document, before, limit)
-- Newest first, without values; ids are in creation order. `needs_review` and `complete` are different states; `settled` are all
-- that need no review, `running` and `unsuccessful` are states of the page.
SELECT c.id, c.document_id, c.filename, c.mapping, j.status, j.error_code, j.error_message, c.revision,
       encode(c.sha256, 'hex') AS sha256, c.bytes, c.download_count, c.first_downloaded_at, c.archived_at, c.created_at,
       c.needs_review, c.batch_id, c.source_expires_at, c.result_expires_at, NULL::text AS record
FROM conversions c JOIN jobs j ON j.id = c.id
WHERE c.owner_id = :owner AND (:batch::uuid IS NULL OR c.batch_id = :batch)
  AND (:id_part::text IS NULL OR starts_with(c.id::text, :id_part) OR right(c.id::text, length(:id_part)) = :id_part
      OR starts_with(right(c.id::text, 8), :id_part))
  AND (:document::uuid IS NULL OR c.document_id = :document)
  AND CASE WHEN :status::text IS NULL THEN true
           WHEN :status = 'needs_review' THEN c.needs_review
           WHEN :status = 'settled' THEN NOT c.needs_review
           WHEN :status = 'complete' THEN j.status = 'complete' AND NOT c.needs_review
           WHEN :status = 'running' THEN j.status IN ('queued', 'processing', 'paused')
           WHEN :status = 'unsuccessful' THEN j.status IN ('failed', 'dead_letter')
           ELSE j.status = :status END
  AND (:before::uuid IS NULL OR (c.created_at, c.id) < (SELECT b.created_at, b.id FROM conversions b WHERE b.id = :before))
ORDER BY c.created_at DESC, c.id DESC LIMIT :limit;

-- name: count_states(owner)
SELECT count(*) AS everything, count(*) FILTER (WHERE c.needs_review) AS needs_review,
       count(*) FILTER (WHERE j.status IN ('queued', 'processing', 'paused')) AS running,
       count(*) FILTER (WHERE j.status = 'complete' AND NOT c.needs_review) AS complete,
       count(*) FILTER (WHERE j.status IN ('failed', 'dead_letter')) AS failed
FROM conversions c JOIN jobs j ON j.id = c.id WHERE c.owner_id = :owner;

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
SELECT c.owner_id, c.document_id, c.mapping, encode(c.mapping_sha256, 'hex') AS mapping_sha256, f.key,
       encode(c.sha256, 'hex') AS sha256
FROM conversions c LEFT JOIN conversion_files f ON f.conversion_id = c.id AND f.kind = 'source'
WHERE c.id = :id;

-- name: insert_object(key, bytes, sha256)!
INSERT INTO objects (key, bytes, sha256) VALUES (:key, :bytes, decode(:sha256, 'hex'));

-- name: forget_file(id, kind)
DELETE FROM conversion_files WHERE conversion_id = :id AND kind = :kind RETURNING key;

-- name: keep_file(id, kind, key)!
INSERT INTO conversion_files (conversion_id, kind, key) VALUES (:id, :kind, :key);

-- name: add_revision(id, record, made_by, user, person, changes, result_days)
-- It becomes the current revision, and the retention time of the result starts again.
WITH next AS (
    UPDATE conversions SET revision = revision + 1, needs_review = review_reason(:record) IS NOT NULL,
           result_expires_at = engine_now() + make_interval(days => :result_days)
    WHERE id = :id RETURNING id, revision
)
INSERT INTO revisions (conversion_id, number, record, made_by, user_id, person, changes)
SELECT id, revision, :record, :made_by, :user, :person, :changes FROM next RETURNING number;

-- name: keep_correction(id, days, earlier)!
-- Keeps what a person corrected for longer than the conversion. `earlier` is the history of a conversion of the same content.
INSERT INTO corrections (conversion_id, owner_id, document_id, mapping, sha256, found, corrected, history, expires_at)
SELECT c.id, c.owner_id, c.document_id, c.mapping, c.sha256, first.record, last.record,
       :earlier || jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
           'revision', last.number, 'person', last.person, 'at', last.created_at, 'changes', last.changes))),
       engine_now() + make_interval(days => :days)
FROM conversions c
JOIN revisions first ON first.conversion_id = c.id AND first.number = 1
JOIN revisions last ON last.conversion_id = c.id AND last.number = c.revision
WHERE c.id = :id AND c.sha256 IS NOT NULL
ON CONFLICT (conversion_id) DO UPDATE
SET corrected = excluded.corrected, document_id = excluded.document_id, updated_at = excluded.updated_at,
    expires_at = excluded.expires_at, history = corrections.history || (excluded.history -> -1);

-- name: earlier_corrections(owner, sha256, mapping, id)
-- What people corrected in an earlier conversion of the same content with a version of the same mapping.
SELECT k.found::text, k.corrected::text, k.history::text FROM corrections k
WHERE k.owner_id = :owner AND k.sha256 = decode(:sha256, 'hex') AND k.conversion_id <> :id
  AND regexp_replace(k.mapping, '_v[0-9]+$', '') = regexp_replace(:mapping, '_v[0-9]+$', '')
ORDER BY k.updated_at DESC LIMIT 1;

-- name: document_of(id)
-- The document of a conversion, if it is not in the trash.
SELECT d.id, d.revision FROM conversions c JOIN documents d ON d.id = c.document_id AND d.deleted_at IS NULL WHERE c.id = :id;

-- name: kept_history(owner, id)
SELECT history::text FROM corrections WHERE owner_id = :owner AND conversion_id = :id;

-- name: lock(owner, id)
-- Locks a conversion for a correction: no other transaction can add a revision until this one ends.
SELECT revision FROM conversions WHERE id = :id AND owner_id = :owner FOR UPDATE;

-- name: revisions(owner, id)
SELECT r.number, r.record::text AS record, r.made_by, r.user_id, coalesce(u.email, r.person) AS person, r.created_at,
       r.changes::text AS changes
FROM revisions r JOIN conversions c ON c.id = r.conversion_id LEFT JOIN users u ON u.id = r.user_id
WHERE c.id = :id AND c.owner_id = :owner ORDER BY r.number;

-- name: person_name(user)
SELECT email FROM users WHERE id = :user;

-- name: corrected(owner)
-- The values before and after correction, of each conversion that a person corrected.
SELECT conversion_id, document_id, mapping, encode(sha256, 'hex') AS sha256, found::text, corrected::text, history::text,
       updated_at, expires_at
FROM corrections WHERE owner_id = :owner AND found -> 'values' <> corrected -> 'values' ORDER BY updated_at, conversion_id;

-- name: expire_corrections(most)
WITH due AS (
    SELECT conversion_id FROM corrections WHERE expires_at <= engine_now() ORDER BY expires_at LIMIT :most FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM corrections k USING due WHERE k.conversion_id = due.conversion_id RETURNING 1
)
SELECT count(*), ARRAY[]::text[] FROM gone;

-- name: delete(owner, id)
-- Deletes a conversion with its job, its values, its corrections and its notifications. Returns the keys of its files.
WITH held AS (
    SELECT id FROM conversions WHERE id = :id AND owner_id = :owner
), keys AS (
    SELECT f.key FROM conversion_files f JOIN held ON held.id = f.conversion_id
), samples AS (
    DELETE FROM corrections k USING held WHERE k.conversion_id = held.id
), notices AS (
    DELETE FROM notifications n USING held WHERE n.process_id = held.id
), told AS (
    INSERT INTO events (process_id, kind, owner_id) SELECT id, 'conversion.deleted', :owner FROM held
), gone AS (
    DELETE FROM jobs j USING held WHERE j.id = held.id RETURNING j.id
)
SELECT ARRAY(SELECT key FROM keys) FROM gone;

-- name: delete_unused_texts(owner)!
-- Texts of mappings that no conversion was made with.
DELETE FROM mapping_texts t WHERE t.owner_id = :owner AND NOT EXISTS (
    SELECT FROM conversions c WHERE c.owner_id = t.owner_id AND c.mapping_sha256 = t.sha256);

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
    UPDATE conversions c SET result_expires_at = NULL, source_expires_at = NULL, archived_at = engine_now(), live = false,
           needs_review = false
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

-- name: kept_mapping(id)
-- The text of the mapping that a conversion was made with; no row for a conversion of an older version with a shipped mapping.
SELECT c.mapping AS name, t.file, t.text, NULL::timestamptz AS created_at
FROM conversions c JOIN mapping_texts t ON t.owner_id = c.owner_id AND t.sha256 = c.mapping_sha256 WHERE c.id = :id;

-- name: delete_mapping(owner, name)
DELETE FROM mappings WHERE owner_id = :owner AND name = :name RETURNING name;

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
