-- name: now()
-- The time of the database.
SELECT clock_timestamp() AS now;

-- name: forget_links()!
DELETE FROM sign_in_links WHERE expires_at < clock_timestamp();

-- name: forget_sessions()!
DELETE FROM sessions WHERE expires_at < clock_timestamp();

-- name: mark_left()!
-- Visitors whose last session ended. Nobody can open another session for them.
UPDATE owners o SET left_at = clock_timestamp()
WHERE kind = 'anonymous' AND left_at IS NULL AND NOT EXISTS (SELECT FROM sessions WHERE owner_id = o.id);

-- name: forget_visitors()!
-- Visitors without a session and without any data.
DELETE FROM owners o WHERE kind = 'anonymous'
  AND NOT EXISTS (SELECT FROM sessions WHERE owner_id = o.id)
  AND NOT EXISTS (SELECT FROM documents WHERE owner_id = o.id)
  AND NOT EXISTS (SELECT FROM uploads WHERE owner_id = o.id AND state = 'pending')
  AND NOT EXISTS (SELECT FROM jobs WHERE owner_id = o.id);

-- name: retry_improvements()
-- Retries improvements of descriptions that failed for good, because the providers were unavailable for a whole day.
SELECT requeue_job(id, NULL) FROM jobs WHERE kind = 'improve_document' AND status = 'dead_letter' ORDER BY id;

-- name: resume_documents()
-- Retries readable documents whose later stages or jobs failed for good: after ten minutes, and then at growing intervals of up to
-- a day. After 30 days only a person can retry them.
SELECT requeue_job(j.id, NULL)
FROM jobs j LEFT JOIN documents d ON d.id = j.document_id, engine_now() AS at
WHERE j.status = 'dead_letter' AND d.deleted_at IS NULL
  AND (j.kind IN ('detect_connections', 'embed_document', 'embed_tags', 'index_vectors')
       OR j.kind = 'process_document' AND d.process_id = j.id AND d.needs_classification)
  AND at - j.failed_at >= least(greatest(j.failed_at - j.created_at, interval '10 minutes'), interval '1 day')
  AND j.failed_at - j.created_at < interval '30 days'
ORDER BY j.id LIMIT 1000;

-- name: forget_answers()!
-- Answers to requests with an Idempotency-Key, which are repeated for 24 hours.
DELETE FROM idempotency_keys WHERE created_at < clock_timestamp() - interval '24 hours';
