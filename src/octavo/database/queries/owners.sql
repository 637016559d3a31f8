-- name: ensure_local_owner(id)!
-- The owner of this installation's own machine, made at its first start.
INSERT INTO owners (id, kind) VALUES (:id, 'local') ON CONFLICT (kind) WHERE kind = 'local' DO NOTHING;

-- name: insert_link(token_hash, seconds)!
-- A link for the local owner; links that can no longer be used go at the same time.
WITH gone AS (DELETE FROM sign_in_links WHERE expires_at < clock_timestamp())
INSERT INTO sign_in_links (token_hash, owner_id, expires_at)
SELECT :token_hash, id, clock_timestamp() + make_interval(secs => :seconds) FROM owners WHERE kind = 'local';

-- name: use_link(token_hash, session_hash, seconds)
-- Use a link up and open a session with it; answers nothing when the link is unknown, used or too old.
WITH used AS (
    UPDATE sign_in_links SET used_at = clock_timestamp()
    WHERE token_hash = :token_hash AND used_at IS NULL AND expires_at > clock_timestamp()
    RETURNING owner_id
), gone AS (
    DELETE FROM sessions WHERE expires_at < clock_timestamp() AND EXISTS (SELECT FROM used)
)
INSERT INTO sessions (token_hash, owner_id, expires_at)
SELECT :session_hash, owner_id, clock_timestamp() + make_interval(secs => :seconds) FROM used
RETURNING owner_id;

-- name: session_owner(session_hash)
-- The owner a browser acts for.
SELECT owners.id, owners.kind FROM sessions JOIN owners ON owners.id = sessions.owner_id
WHERE sessions.token_hash = :session_hash AND sessions.expires_at > clock_timestamp();
