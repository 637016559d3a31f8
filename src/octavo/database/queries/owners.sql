-- name: ensure_local_owner(id)!
-- Creates the local owner at the first start.
INSERT INTO owners (id, kind) VALUES (:id, 'local') ON CONFLICT (kind) WHERE kind = 'local' DO NOTHING;

-- name: local_owner()
SELECT id FROM owners WHERE kind = 'local';

-- name: insert_owner(id, kind)!
INSERT INTO owners (id, kind) VALUES (:id, :kind);

-- name: insert_link(token_hash, seconds)!
-- A sign-in link for the local owner; also deletes links that can no longer be used.
WITH gone AS (DELETE FROM sign_in_links WHERE expires_at < clock_timestamp())
INSERT INTO sign_in_links (token_hash, owner_id, expires_at)
SELECT :token_hash, id, clock_timestamp() + make_interval(secs => :seconds) FROM owners WHERE kind = 'local';

-- name: is_link(token_hash)
-- Whether a link can still be used; returns no row if it is unknown, used or expired.
SELECT true FROM sign_in_links
WHERE token_hash = :token_hash AND used_at IS NULL AND expires_at > clock_timestamp();

-- name: use_link(token_hash)
-- Uses a link; returns no row if it is unknown, used or expired.
UPDATE sign_in_links SET used_at = clock_timestamp()
WHERE token_hash = :token_hash AND used_at IS NULL AND expires_at > clock_timestamp()
RETURNING owner_id;

-- name: insert_session(session_hash, owner, user, seconds, fixed)!
INSERT INTO sessions (token_hash, owner_id, user_id, expires_at, is_fixed)
VALUES (:session_hash, :owner, :user, clock_timestamp() + make_interval(secs => :seconds), :fixed);

-- name: read_session(session_hash, seconds, below)
-- The caller of a session with its permissions. A session in use is renewed when it is old enough, without waiting for
-- a lock.
WITH old AS (
    SELECT token_hash FROM sessions
    WHERE token_hash = :session_hash AND NOT is_fixed AND expires_at > clock_timestamp()
      AND expires_at < clock_timestamp() + make_interval(secs => :below)
    FOR UPDATE SKIP LOCKED
), renewed AS (
    UPDATE sessions SET expires_at = clock_timestamp() + make_interval(secs => :seconds)
    FROM old WHERE sessions.token_hash = old.token_hash
    RETURNING sessions.token_hash
)
SELECT s.owner_id, o.kind, s.user_id, coalesce(m.role, 'owner') AS role, 'session' AS via,
       CASE WHEN o.kind = 'anonymous' OR m.role = 'member' THEN 'write'
            WHEN m.role = 'reader' THEN 'read' ELSE 'admin' END AS scope,
       coalesce(m.limited, false) AS limited, EXISTS (SELECT FROM renewed) AS renewed,
       CASE WHEN s.user_id IS NULL THEN o.language ELSE (SELECT language FROM users u WHERE u.id = s.user_id) END AS language
FROM sessions s
JOIN owners o ON o.id = s.owner_id
LEFT JOIN memberships m ON m.owner_id = s.owner_id AND m.user_id = s.user_id
WHERE s.token_hash = :session_hash AND s.expires_at > clock_timestamp()
  AND (s.user_id IS NULL OR m.user_id IS NOT NULL);

-- name: end_session(session_hash)
-- Ends a session and returns its owner; no row if it had already ended.
DELETE FROM sessions s USING owners o
WHERE s.token_hash = :session_hash AND s.expires_at > clock_timestamp() AND o.id = s.owner_id
RETURNING o.id, o.kind;

-- name: end_other_sessions(user, session_hash)!
DELETE FROM sessions WHERE user_id = :user AND token_hash <> :session_hash;

-- name: merge_visitor(visitor, person)
-- Locks a visitor and checks it again: it may have signed up in the meantime, and people are never merged.
SELECT merge_owner(visitor.id, :person)
FROM (SELECT id FROM owners WHERE id = :visitor AND kind = 'anonymous' FOR UPDATE) AS visitor;

-- name: adopt_visitor(visitor)
-- Merges a visitor with everything it has into a person's owner, and ends the visitor's sessions.
WITH adopted AS (
    UPDATE owners SET kind = 'user' WHERE id = :visitor AND kind = 'anonymous' RETURNING id
), ended AS (
    DELETE FROM sessions USING adopted WHERE sessions.owner_id = adopted.id
)
SELECT id FROM adopted;
