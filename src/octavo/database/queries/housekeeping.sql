-- name: ensure_event_partitions()
-- Months ahead, so that an installation that is never restarted has time to notice.
SELECT ensure_event_partitions(3);

-- name: forget_links()!
DELETE FROM sign_in_links WHERE expires_at < clock_timestamp();

-- name: forget_sessions()!
DELETE FROM sessions WHERE expires_at < clock_timestamp();
