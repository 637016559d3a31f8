-- name: forget_links()!
DELETE FROM sign_in_links WHERE expires_at < clock_timestamp();

-- name: forget_sessions()!
DELETE FROM sessions WHERE expires_at < clock_timestamp();
