-- name: read(xid, id, limit)
-- The next events below the oldest open transaction.
SELECT id, xid::text::bigint AS xid, at, process_id, kind, state_after, owner_id, document_id, detail
FROM events
WHERE (xid, id) > (:xid::xid8, :id::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY xid, id LIMIT :limit;

-- name: read_of(owner, xid, id, limit)
-- The same for one owner.
SELECT id, xid::text::bigint AS xid, at, process_id, kind, state_after, owner_id, document_id, detail
FROM events
WHERE owner_id = :owner AND (xid, id) > (:xid::xid8, :id::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY xid, id LIMIT :limit;

-- name: count_of(owner, xid, id, most)
-- How many these are, counted up to `most`.
SELECT count(*) FROM (
    SELECT FROM events
    WHERE owner_id = :owner AND (xid, id) > (:xid::xid8, :id::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
    LIMIT :most) AS found;

-- name: latest()
-- All transactions below this one have ended.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint;

-- name: tell_of_collection(owner, collection, change)!
-- Events of a collection have its id as their process.
INSERT INTO events (process_id, kind, owner_id, detail)
VALUES (:collection::uuid, 'collection', :owner, jsonb_build_object('change', :change::text));

-- name: ensure_partitions()
-- Some months ahead, in case the daily job fails for a while.
SELECT ensure_event_partitions(3);
