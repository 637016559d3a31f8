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
-- Retries improvements of descriptions that gave up, because the providers were away for a whole day.
SELECT requeue_job(id, NULL) FROM jobs WHERE kind = 'improve_document' AND status = 'dead_letter' ORDER BY id;
