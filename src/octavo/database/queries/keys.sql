-- name: insert_key(id, owner, user, name, start, key_hash, scope, days)
INSERT INTO api_keys (id, owner_id, user_id, name, start, key_hash, scope, expires_at)
VALUES (:id, :owner, :user, :name, :start, :key_hash, :scope, clock_timestamp() + make_interval(days => :days))
RETURNING id, name, start, scope, created_at, last_used_at, expires_at;

-- name: list_keys(owner, user, everybodys)
-- Newest first, without revoked keys.
SELECT id, name, start, scope, created_at, last_used_at, expires_at FROM api_keys
WHERE owner_id = :owner AND revoked_at IS NULL AND (:everybodys OR user_id = :user)
ORDER BY created_at DESC, id DESC;

-- name: revoke_key(key, owner, user, everybodys)!
UPDATE api_keys SET revoked_at = clock_timestamp()
WHERE id = :key AND owner_id = :owner AND revoked_at IS NULL AND (:everybodys OR user_id = :user);

-- name: read_key(key_hash)
-- The caller of a key, with the current role of its creator. Its use is recorded at most once a minute, without waiting
-- for a lock.
WITH unnoted AS (
    SELECT id FROM api_keys
    WHERE key_hash = :key_hash AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
      AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')
    FOR UPDATE SKIP LOCKED
), noted AS (
    UPDATE api_keys SET last_used_at = clock_timestamp() FROM unnoted WHERE api_keys.id = unnoted.id
)
SELECT k.owner_id, o.kind, k.user_id, coalesce(m.role, 'owner') AS role, k.scope, 'key' AS via,
       coalesce(m.limited, false) AS limited
FROM api_keys k
JOIN owners o ON o.id = k.owner_id
LEFT JOIN memberships m ON m.owner_id = k.owner_id AND m.user_id = k.user_id
WHERE k.key_hash = :key_hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())
  AND (k.user_id IS NULL OR m.user_id IS NOT NULL);
