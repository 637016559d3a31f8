-- name: ensure_local_owner(id)!
-- The owner of this installation's own machine, made at its first start.
INSERT INTO owners (id, kind) VALUES (:id, 'local') ON CONFLICT (kind) WHERE kind = 'local' DO NOTHING;

-- name: local_owner()
SELECT id FROM owners WHERE kind = 'local';

-- name: insert_owner(id, kind)!
INSERT INTO owners (id, kind) VALUES (:id, :kind);

-- name: insert_link(token_hash, seconds)!
-- A link for the local owner; links that can no longer be used go at the same time.
WITH gone AS (DELETE FROM sign_in_links WHERE expires_at < clock_timestamp())
INSERT INTO sign_in_links (token_hash, owner_id, expires_at)
SELECT :token_hash, id, clock_timestamp() + make_interval(secs => :seconds) FROM owners WHERE kind = 'local';

-- name: use_link(token_hash)
-- Use a link up; answers nothing when the link is unknown, used or too old.
UPDATE sign_in_links SET used_at = clock_timestamp()
WHERE token_hash = :token_hash AND used_at IS NULL AND expires_at > clock_timestamp()
RETURNING owner_id;

-- name: insert_session(session_hash, owner, user, seconds)!
INSERT INTO sessions (token_hash, owner_id, user_id, expires_at)
VALUES (:session_hash, :owner, :user, clock_timestamp() + make_interval(secs => :seconds));

-- name: read_session(session_hash, seconds, below)
-- Whom a browser acts for, and how much it may do; a session that is used is renewed when it is old enough, and
-- nobody waits for that.
WITH old AS (
    SELECT token_hash FROM sessions
    WHERE token_hash = :session_hash AND expires_at > clock_timestamp()
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
       EXISTS (SELECT FROM renewed) AS renewed
FROM sessions s
JOIN owners o ON o.id = s.owner_id
LEFT JOIN memberships m ON m.owner_id = s.owner_id AND m.user_id = s.user_id
WHERE s.token_hash = :session_hash AND s.expires_at > clock_timestamp()
  AND (s.user_id IS NULL OR m.user_id IS NOT NULL);

-- name: end_session(session_hash)
-- Answers whose it was; nothing when it had ended before.
DELETE FROM sessions s USING owners o
WHERE s.token_hash = :session_hash AND s.expires_at > clock_timestamp() AND o.id = s.owner_id
RETURNING o.id, o.kind;

-- name: end_other_sessions(user, session_hash)!
DELETE FROM sessions WHERE user_id = :user AND token_hash <> :session_hash;

-- name: merge_visitor(visitor, person)
-- Locked and looked at again first: by now the visitor may have become a person, and people are never merged.
SELECT merge_owner(visitor.id, :person)
FROM (SELECT id FROM owners WHERE id = :visitor AND kind = 'anonymous' FOR UPDATE) AS visitor;

-- name: adopt_visitor(visitor)
-- A visitor becomes a person's owner with all that it has; no browser that acted for it does so any more.
WITH adopted AS (
    UPDATE owners SET kind = 'user' WHERE id = :visitor AND kind = 'anonymous' RETURNING id
), ended AS (
    DELETE FROM sessions USING adopted WHERE sessions.owner_id = adopted.id
)
SELECT id FROM adopted;
