-- name: read(xid, id, limit)
-- The next events from transactions before the oldest open one.
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
-- The number of these events, counted up to `most`.
SELECT count(*) FROM (
    SELECT FROM events
    WHERE owner_id = :owner AND (xid, id) > (:xid::xid8, :id::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
    LIMIT :most) AS found;

-- name: latest()
-- The oldest open transaction: all earlier ones have ended.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint;

-- name: tell_of_collection(owner, collection, change)!
-- An event about a collection. Its process id is the id of the collection.
INSERT INTO events (process_id, kind, owner_id, detail)
VALUES (:collection::uuid, 'collection', :owner, jsonb_build_object('change', :change::text));

-- name: ensure_partitions()
-- Creates partitions some months ahead, in case the daily job fails for some time.
SELECT ensure_event_partitions(3);
