-- name: old_months(days)
-- The partitions of events that ended at least this many days ago, with the oldest first.
SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'events'::regclass AND c.relname ~ '^events_\d{4}_\d{2}$'
  AND (to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month') AT TIME ZONE 'UTC' <= engine_now() - make_interval(days => :days)
ORDER BY c.relname;

-- name: is_settled()
-- Whether all events of a partition were relayed and delivered.
SELECT NOT EXISTS (SELECT FROM {partition} e, relay r WHERE (e.epoch, e.id) > (r.epoch, r.id))
   AND NOT EXISTS (SELECT FROM outgoing o JOIN {partition} e ON e.process_id = o.process_id AND e.id = o.event_id WHERE NOT o.ended);

-- name: events_after(epoch, id, most)
SELECT e.epoch, e.id, to_jsonb(e)::text AS line FROM {partition} e
WHERE (e.epoch, e.id) > (:epoch::bigint, :id::bigint) ORDER BY e.epoch, e.id LIMIT :most;

-- name: wait_briefly()!
-- Everything that reads or writes events waits while a partition is dropped, and for the lock that this needs.
SET LOCAL lock_timeout = '500ms';

-- name: count_partition()
SELECT count(*) FROM {partition};

-- name: drop_partition()!
DROP TABLE {partition};

-- name: old_jobs(days, most)
-- Finished jobs that nothing refers to, with their stages. The job that processed a document, a conversion and the jobs of an
-- analysis are kept, because their results refer to them.
SELECT j.id, (to_jsonb(j) || jsonb_build_object('stages', coalesce(s.stages, '[]')))::text AS line
FROM jobs j LEFT JOIN LATERAL (
    SELECT jsonb_agg(to_jsonb(t) - 'job_id' ORDER BY t.finished_at) AS stages FROM job_stages t WHERE t.job_id = j.id) AS s ON true
WHERE j.status = 'complete' AND j.completed_at < engine_now() - make_interval(days => :days)
  AND j.kind IN ('deliver', 'detect_connections', 'embed_document', 'embed_tags', 'housekeeping', 'index_vectors', 'recover_analyses',
                 'renew_vectors', 'resume_documents')
  AND NOT EXISTS (SELECT FROM jobs c WHERE c.parent_id = j.id) AND NOT EXISTS (SELECT FROM documents d WHERE d.process_id = j.id)
ORDER BY j.kind, j.completed_at LIMIT :most;

-- name: delete_jobs(jobs)!
DELETE FROM jobs WHERE id = ANY (:jobs) AND status = 'complete';

-- name: archived_so_far(name)
-- How many events of a month are in files, and where the next file begins.
SELECT coalesce(sum(rows), 0)::bigint AS rows, count(*) AS files, coalesce(max(last_epoch), 0) AS epoch,
       coalesce((array_agg(last_id ORDER BY last_epoch DESC, last_id DESC))[1], 0) AS id
FROM archives WHERE kind = 'events' AND split_part(name, '.', 1) = :name;

-- name: insert_object(key, bytes, sha256)!
INSERT INTO objects (key, bytes, sha256) VALUES (:key, :bytes, decode(:sha256, 'hex'));

-- name: insert_archive(name, kind, key, rows, last_epoch, last_id)!
INSERT INTO archives (name, kind, key, rows, last_epoch, last_id) VALUES (:name, :kind, :key, :rows, :last_epoch, :last_id);

-- name: list()
SELECT a.name, a.kind, a.key, a.rows, a.made_at, o.bytes, encode(o.sha256, 'hex') AS sha256
FROM archives a JOIN objects o ON o.key = a.key ORDER BY a.made_at, a.name;
