-- name: find_answer(owner, key, seconds)
SELECT request, body_bytes, status, salt, answer FROM idempotency_keys
WHERE owner_id = :owner AND key_hash = :key AND created_at > clock_timestamp() - make_interval(secs => :seconds);

-- name: keep_answer(owner, key, request, body_bytes, status, salt, answer, seconds)
-- Returns no row if another request has stored an answer for this key. An answer that is too old is replaced.
INSERT INTO idempotency_keys AS k (owner_id, key_hash, request, body_bytes, status, salt, answer)
VALUES (:owner, :key, :request, :body_bytes, :status, :salt, :answer)
ON CONFLICT (owner_id, key_hash) DO UPDATE
SET request = excluded.request, body_bytes = excluded.body_bytes, status = excluded.status, salt = excluded.salt,
    answer = excluded.answer, created_at = excluded.created_at
WHERE k.created_at <= clock_timestamp() - make_interval(secs => :seconds)
RETURNING true AS kept;

-- name: lock_edit(id)!
-- Edits of one thing that name the version they expect run one after the other.
SELECT pg_advisory_xact_lock(hashtextextended('edit ' || :id, 0));
