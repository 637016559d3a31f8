-- name: read(epoch, id, horizon, limit)
-- The next events of all owners. The horizon is read by an earlier statement.
SELECT id, epoch, at, process_id, kind, state_after, owner_id, document_id, detail
FROM events
WHERE (epoch, id) > (:epoch::bigint, :id::bigint) AND id <= :horizon::bigint
ORDER BY epoch, id LIMIT :limit;

-- name: read_of(owner, epoch, id, horizon, limit)
-- The same for one owner.
SELECT id, epoch, at, process_id, kind, state_after, owner_id, document_id, detail
FROM events
WHERE owner_id = :owner AND (epoch, id) > (:epoch::bigint, :id::bigint) AND id <= :horizon::bigint
ORDER BY epoch, id LIMIT :limit;

-- name: count_of(owner, epoch, id, horizon, most)
-- The number of these events, counted up to `most`.
SELECT count(*) FROM (
    SELECT FROM events
    WHERE owner_id = :owner AND (epoch, id) > (:epoch::bigint, :id::bigint) AND id <= :horizon::bigint
    LIMIT :most) AS found;

-- name: seen_documents(documents)
SELECT id FROM documents WHERE id = ANY (:documents);

-- name: horizon()
SELECT event_horizon();

-- name: latest()
-- A position after all events that can be read.
SELECT max(number), event_horizon() FROM event_epochs;

-- name: is_known(epoch, id)
-- Whether a cursor was issued by this database: it is not in the future, and it is before the end of its epoch. Events behind that
-- end were not in the backup that was restored. Cursors before an archived event are no longer known, except for the beginning.
SELECT (:epoch::bigint, :id::bigint) <= ((SELECT max(number) FROM event_epochs), last_event_id())
   AND NOT EXISTS (SELECT FROM event_epochs WHERE number = :epoch::bigint + 1 AND first_id <= :id::bigint)
   AND (:id::bigint = 0 OR NOT EXISTS (SELECT FROM archives WHERE (last_epoch, last_id) > (:epoch::bigint, :id::bigint)));

-- name: begin_epoch()
-- Begins an epoch if the database is in another cluster than before.
SELECT begin_epoch(false);

-- name: tell_of_collection(owner, collection, change)!
-- An event about a collection. Its process id is the id of the collection.
INSERT INTO events (process_id, kind, owner_id, detail)
VALUES (:collection::uuid, 'collection', :owner, jsonb_build_object('change', :change::text));

-- name: ensure_partitions()
-- Creates partitions some months ahead, in case the daily job fails for some time.
SELECT ensure_event_partitions(3);
