-- name: read(xid, id, limit)
-- The next events below the oldest open transaction.
SELECT id, xid::text::bigint AS xid, at, process_id, kind, state_after, owner_id, document_id, detail
FROM events
WHERE (xid, id) > (:xid::xid8, :id::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY xid, id LIMIT :limit;

-- name: latest()
-- Everything below this transaction is over.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1;

-- name: ensure_partitions()
-- Months ahead, so that an installation that is never restarted has time to notice.
SELECT ensure_event_partitions(3);
