-- name: list_sources(owner)
SELECT s.id, s.kind, s.name, s.address, s.options, s.every_seconds, s.paused, s.next_run_at, s.last_run_at, s.error, s.job_id,
       s.created_at, s.access, s.consent, coalesce(j.status IN ('queued', 'processing'), false) AS busy,
       (SELECT count(*) FROM source_files f WHERE f.source_id = s.id AND f.state = 'added') AS added,
       (SELECT count(*) FROM source_files f WHERE f.source_id = s.id AND f.state = 'known') AS known,
       (SELECT count(*) FROM source_files f WHERE f.source_id = s.id AND f.state = 'waiting') AS waiting,
       (SELECT count(*) FROM source_files f WHERE f.source_id = s.id AND f.state = 'failed') AS failed
FROM sources s LEFT JOIN jobs j ON j.id = s.job_id
WHERE s.owner_id = :owner ORDER BY s.created_at, s.id;

-- name: insert_source(id, owner, kind, name, address, options, every, access, secret, consent)!
-- Wakes the workers, as do `pause_source` and `run_source`.
INSERT INTO sources (id, owner_id, kind, name, address, options, every_seconds, access, secret, consent)
VALUES (:id, :owner, :kind, :name, :address, :options, :every, :access, :secret, :consent) RETURNING pg_notify('octavo_jobs', '');

-- name: edit_source(id, owner, name, options, every, secret)!
UPDATE sources SET name = coalesce(:name, name), options = options || coalesce(:options::jsonb, '{}'),
                   every_seconds = coalesce(:every, every_seconds), secret = coalesce(:secret, secret)
WHERE id = :id AND owner_id = :owner;

-- name: rename_in_rules(owner, old, new)!
-- Rules name sources, so a renamed source is renamed in their conditions, too.
UPDATE rules SET conditions = jsonb_set(conditions, '{source}', to_jsonb(:new::text))
WHERE owner_id = :owner AND lower(conditions ->> 'source') = lower(:old);

-- name: pause_source(id, owner, paused)!
UPDATE sources SET paused = :paused, next_run_at = engine_now() WHERE id = :id AND owner_id = :owner
RETURNING pg_notify('octavo_jobs', '');

-- name: delete_source(id, owner)
DELETE FROM sources WHERE id = :id AND owner_id = :owner RETURNING job_id;

-- name: run_source(id, owner)!
-- Files that failed are tried again.
WITH again AS (UPDATE source_files SET state = 'waiting', error = NULL WHERE source_id = :id AND state = 'failed')
UPDATE sources SET next_run_at = engine_now(), error = NULL WHERE id = :id AND owner_id = :owner
RETURNING pg_notify('octavo_jobs', '');

-- name: failed_files(owner, source, most)
SELECT f.path, f.error, f.seen_at FROM source_files f JOIN sources s ON s.id = f.source_id
WHERE s.owner_id = :owner AND s.id = :source AND f.state = 'failed' ORDER BY f.seen_at DESC, f.path LIMIT :most;

-- name: next_due(kinds)
-- Takes the source that has waited longest. Another worker that looks at the same time takes another one.
UPDATE sources s SET next_run_at = engine_now() + make_interval(secs => s.every_seconds)
WHERE s.id = (SELECT id FROM sources WHERE kind = ANY (:kinds) AND NOT paused AND next_run_at <= engine_now()
              ORDER BY next_run_at LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING s.id, s.owner_id, s.kind, s.address, s.options, s.access, s.secret, s.position;

-- name: due_in(kinds)
-- The seconds until the next source is due, or NULL if there is none.
SELECT extract(epoch FROM min(next_run_at) - engine_now())::float8 AS seconds FROM sources
WHERE kind = ANY (:kinds) AND NOT paused;

-- name: hurry_sources(sources)
-- Files in these folders have changed. A folder is checked every two seconds at most. Returns the sources that are still watched.
WITH watched AS (
    SELECT id, greatest(engine_now(), last_run_at + interval '2 seconds') AS soon FROM sources
    WHERE id = ANY (:sources) AND NOT paused
), hurried AS (
    UPDATE sources s SET next_run_at = w.soon FROM watched w WHERE s.id = w.id AND s.next_run_at > w.soon RETURNING s.id
)
SELECT w.id, CASE WHEN h.id IS NOT NULL THEN pg_notify('octavo_jobs', '') END FROM watched w LEFT JOIN hurried h ON h.id = w.id;

-- name: source_of_job(id)
SELECT id, owner_id, kind, address, options, access, secret, position FROM sources WHERE id = :id AND NOT paused;

-- name: lock_source(id)
SELECT s.paused, coalesce(j.status IN ('queued', 'processing', 'paused'), false)
           OR coalesce(j.failed_at > engine_now() - interval '10 minutes', false) AS busy
FROM sources s LEFT JOIN jobs j ON j.id = s.job_id WHERE s.id = :id FOR UPDATE OF s;

-- name: record_files(source, files)!
-- A file with another size, time or tag than before waits again. Rows of unchanged files are neither locked nor written.
INSERT INTO source_files (source_id, path, bytes, modified, etag)
SELECT :source, f.path, f.bytes, f.modified, f.etag
FROM jsonb_to_recordset(:files) AS f (path text, bytes bigint, modified bigint, etag text)
WHERE NOT EXISTS (SELECT FROM source_files s WHERE s.source_id = :source AND s.path = f.path
                                               AND s.bytes = f.bytes AND s.modified = f.modified AND s.etag = f.etag)
ORDER BY f.path
ON CONFLICT (source_id, path) DO UPDATE SET bytes = excluded.bytes, modified = excluded.modified, etag = excluded.etag,
                                            state = 'waiting', error = NULL, seen_at = engine_now(), finished = false
WHERE (source_files.bytes, source_files.modified, source_files.etag) <> (excluded.bytes, excluded.modified, excluded.etag);

-- name: set_position(source, position)!
UPDATE sources SET position = :position WHERE id = :source;

-- name: forget_waiting(source, files)!
-- Files that disappeared before they were added.
DELETE FROM source_files f WHERE f.source_id = :source AND f.state = 'waiting' AND f.document_id IS NULL
    AND NOT EXISTS (SELECT FROM jsonb_to_recordset(:files) AS seen (path text) WHERE seen.path = f.path);

-- name: forget_versions(source, files)!
-- A file that comes later under the name of a file that disappeared is another document.
UPDATE source_files f SET versioned = false WHERE f.source_id = :source AND f.versioned
    AND NOT EXISTS (SELECT FROM jsonb_to_recordset(:files) AS seen (path text) WHERE seen.path = f.path);

-- name: count_waiting(source, settle)
SELECT count(*) AS waiting, count(*) FILTER (WHERE seen_at <= engine_now() - make_interval(secs => :settle)) AS settled
FROM source_files WHERE source_id = :source AND state = 'waiting';

-- name: settled_files(source, settle, after_at, after_path, most)
-- The next files to add. None if the source is paused.
SELECT f.path, f.bytes, f.modified, f.etag, f.seen_at, CASE WHEN f.versioned THEN f.document_id END AS document
FROM source_files f JOIN sources s ON s.id = f.source_id
WHERE s.id = :source AND NOT s.paused AND f.state = 'waiting' AND f.seen_at <= engine_now() - make_interval(secs => :settle)
  AND (:after_at::timestamptz IS NULL OR (f.seen_at, f.path) > (:after_at::timestamptz, :after_path::text))
ORDER BY f.seen_at, f.path LIMIT :most;

-- name: finish_look(source, job, error, seconds)!
UPDATE sources SET last_run_at = engine_now(), error = :error, job_id = coalesce(:job, job_id),
                   next_run_at = CASE WHEN :seconds::double precision IS NULL THEN next_run_at
                                      ELSE least(next_run_at, engine_now() + make_interval(secs => :seconds)) END
WHERE id = :source;

-- name: take_file(source, path, bytes, modified, etag)
-- Locks a file that waits and has not changed. Returns nothing if it was added meanwhile, or if the source was paused.
SELECT f.path FROM source_files f JOIN sources s ON s.id = f.source_id
WHERE s.id = :source AND NOT s.paused AND f.path = :path AND f.bytes = :bytes AND f.modified = :modified AND f.etag = :etag
  AND f.state = 'waiting'
FOR UPDATE OF f;

-- name: set_file(source, path, bytes, modified, etag, state, document, versioned, error)!
UPDATE source_files SET state = :state, document_id = coalesce(:document, document_id),
                        versioned = coalesce(:versioned, versioned), error = :error
WHERE source_id = :source AND path = :path AND bytes = :bytes AND modified = :modified AND etag = :etag AND state = 'waiting';

-- name: unfinished_files(source, most)
-- Files that were added, but not moved or marked yet.
SELECT path, bytes, modified, etag FROM source_files
WHERE source_id = :source AND state IN ('added', 'known') AND NOT finished ORDER BY seen_at, path LIMIT :most;

-- name: finish_files(source, paths)!
UPDATE source_files SET finished = true
WHERE source_id = :source AND path = ANY (:paths) AND state IN ('added', 'known');

-- name: look_again(source)!
-- So that added files are moved or marked soon. Wakes the workers.
UPDATE sources SET next_run_at = engine_now() WHERE id = :source RETURNING pg_notify('octavo_jobs', '');

-- name: secret_of(source)
SELECT secret FROM sources WHERE id = :source;

-- name: replace_secret(source, old, new)!
-- The server has replaced the token of the source.
UPDATE sources SET secret = :new WHERE id = :source AND secret = :old;

-- name: postpone_source(source, error, seconds)!
UPDATE sources SET error = :error, next_run_at = engine_now() + make_interval(secs => :seconds) WHERE id = :source;

-- name: active_source(source, document)
-- Returns the document that gets a new version, if it still exists. Returns no row if the source was paused or deleted.
SELECT (SELECT d.id FROM documents d WHERE d.id = :document AND d.owner_id = s.owner_id AND d.deleted_at IS NULL) AS document
FROM sources s WHERE s.id = :source AND NOT s.paused;

-- name: mail_source(address)
SELECT id, owner_id, paused FROM sources WHERE kind = 'lmtp' AND address = :address;

-- name: record_mail(source, path, bytes, document, state)
-- Returns no row if the source was paused or deleted meanwhile.
WITH active AS (
    UPDATE sources SET last_run_at = engine_now(), error = NULL WHERE id = :source AND NOT paused RETURNING id
)
INSERT INTO source_files (source_id, path, bytes, modified, document_id, state)
SELECT id, :path, :bytes, 0, :document, :state FROM active RETURNING path;

-- name: insert_consent(state_hash, browser_hash, owner, source, content, seconds)!
-- Remembers a browser that is sent to a provider; also deletes those that did not come back in time.
WITH gone AS (DELETE FROM source_consents WHERE expires_at < clock_timestamp())
INSERT INTO source_consents (state_hash, browser_hash, owner_id, source_id, content, expires_at)
VALUES (:state_hash, :browser_hash, :owner, :source, :content, clock_timestamp() + make_interval(secs => :seconds));

-- name: take_consent(state_hash, browser_hash, owner)
-- Takes a browser that came back; no row if it is unknown, came back already, is too late, or is another browser or account.
DELETE FROM source_consents
WHERE state_hash = :state_hash AND browser_hash = :browser_hash AND owner_id = :owner AND expires_at > clock_timestamp()
RETURNING source_id, content;
