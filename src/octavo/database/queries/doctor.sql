-- name: wrong_caps()
-- Caps whose count differs from the jobs that hold their slots.
SELECT caps.key, caps.taken, count(jobs.id) AS held
FROM caps LEFT JOIN jobs ON jobs.cap_key = caps.key AND jobs.admitted
GROUP BY caps.key, caps.taken HAVING caps.taken <> count(jobs.id) ORDER BY caps.key LIMIT 10;

-- name: idle_caps()
-- Caps with a free slot although jobs wait for one.
SELECT caps.key FROM caps
WHERE caps.taken < caps.most AND EXISTS (
    SELECT FROM jobs WHERE cap_key = caps.key AND status = 'queued' AND NOT admitted AND run_after IS NULL)
ORDER BY caps.key LIMIT 10;

-- name: left_paused()
-- Jobs that wait for their owner to resume imports, although the owner did not pause them.
SELECT id FROM jobs WHERE status = 'queued' AND run_after = 'infinity'
  AND NOT (priority >= 10 AND EXISTS (SELECT FROM paused_imports p WHERE p.owner_id = jobs.owner_id)) ORDER BY id LIMIT 10;

-- name: jobs_unlike_events()
-- Jobs whose state differs from their last event. One statement, so that both are read at the same moment.
SELECT jobs.id, jobs.status, last.state_after
FROM jobs LEFT JOIN LATERAL (
    SELECT state_after FROM events WHERE process_id = jobs.id AND state_after IS NOT NULL ORDER BY id DESC LIMIT 1
) AS last ON true
WHERE last.state_after IS DISTINCT FROM jobs.status
  -- Without an event if they were archived: the events of a month are archived together.
  AND NOT (last.state_after IS NULL AND EXISTS (
      SELECT FROM archives a WHERE a.kind = 'events' AND to_char(jobs.created_at AT TIME ZONE 'UTC', '"events_"YYYY_MM') <= a.name))
ORDER BY jobs.id LIMIT 10;

-- name: broken_jobs()
-- Jobs that violate an invariant.
SELECT id, broken_invariant(jobs) FROM jobs WHERE broken_invariant(jobs) IS NOT NULL ORDER BY id LIMIT 10;

-- name: illegal_histories()
-- Transitions in the events that the state machine does not allow.
SELECT process_id, before, after FROM (
    SELECT process_id, state_after AS after, lag(state_after) OVER (PARTITION BY process_id ORDER BY id) AS before
    FROM events WHERE state_after IS NOT NULL) AS steps
WHERE before IS NOT NULL
  AND NOT EXISTS (SELECT FROM job_transitions t WHERE t.before = steps.before AND t.after = steps.after)
LIMIT 10;

-- name: left_leases()
-- Jobs whose lease expired long ago although live workers could take them.
SELECT jobs.id FROM jobs, engine_now() AS at
WHERE jobs.status = 'processing' AND jobs.lease_expires_at < at - interval '1 minute'
  AND EXISTS (SELECT FROM workers WHERE workers.expires_at > at AND jobs.kind = ANY (workers.kinds))
ORDER BY jobs.id LIMIT 10;

-- name: foreign_epoch()
-- The last epoch, if it belongs to another cluster.
SELECT number, cluster FROM (SELECT * FROM event_epochs ORDER BY number DESC LIMIT 1) AS last WHERE cluster <> this_cluster();

-- name: wrong_order()
-- What would give a new event a position before an earlier one, or before the position of the relay.
WITH next AS (SELECT max(number) AS epoch, last_event_id() AS id FROM event_epochs)
SELECT 'epoch of new events', pg_get_expr(d.adbin, d.adrelid) FROM next, pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid
    AND a.attnum = d.adnum
WHERE d.adrelid = 'events'::regclass AND a.attname = 'epoch'
  AND substring(pg_get_expr(d.adbin, d.adrelid) FROM '[0-9]+')::bigint <> next.epoch
UNION ALL
SELECT 'relay', concat(relay.epoch, '-', relay.id) FROM relay, next WHERE (relay.epoch, relay.id) > (next.epoch, next.id)
UNION ALL
(SELECT 'event', concat(e.epoch, '-', e.id) FROM events e, next WHERE (e.epoch, e.id) > (next.epoch, next.id) LIMIT 10);

-- name: late_relay()
-- Events that were not relayed although workers are alive.
SELECT e.id FROM events e, relay r, engine_now() AS now
WHERE (e.epoch, e.id) > (r.epoch, r.id) AND e.at < now - interval '5 minutes'
  AND EXISTS (SELECT FROM workers WHERE expires_at > now AND started_at < now - interval '5 minutes')
ORDER BY e.epoch, e.id LIMIT 10;

-- name: count_epochs()
SELECT count(*) FROM event_epochs;

-- name: late_schedules()
-- Schedules that were not started although workers are alive.
SELECT name FROM schedules, engine_now() AS at
WHERE enabled AND next_run_at < at - interval '1 minute' AND EXISTS (SELECT FROM workers WHERE expires_at > at)
ORDER BY name LIMIT 10;

-- name: count_jobs()
SELECT count(*) FROM jobs;

-- name: wrong_references()
-- Objects with a wrong reference count. Those without references wait for the end of a backup or for the daily sweep.
SELECT o.key, o.refs, count(f.key) AS found
FROM objects o LEFT JOIN (
    SELECT key FROM artifacts UNION ALL SELECT key FROM conversion_files UNION ALL SELECT key FROM archives) AS f ON f.key = o.key
GROUP BY o.key, o.refs HAVING o.refs <> count(f.key) ORDER BY o.key LIMIT 10;

-- name: wrong_usage()
-- Owners with wrong storage usage.
SELECT coalesce(u.owner_id, d.owner_id), u.bytes, d.bytes
FROM owner_usage u FULL JOIN (
    SELECT owner_id, sum(bytes) AS bytes, count(*) AS documents FROM documents GROUP BY owner_id) AS d USING (owner_id)
WHERE coalesce(u.bytes, 0) <> coalesce(d.bytes, 0) OR coalesce(u.documents, 0) <> coalesce(d.documents, 0) LIMIT 10;

-- name: wrong_documents()
-- Documents whose status differs from their job's, or that are complete without a text.
SELECT d.id, d.status, j.status
FROM documents d LEFT JOIN jobs j ON j.id = d.process_id
WHERE j.id IS NULL
   OR d.status <> CASE WHEN j.status = 'complete' THEN 'completed'
                       WHEN j.status IN ('failed', 'dead_letter', 'cancelled') AND NOT d.needs_classification THEN 'failed'
                       WHEN j.status IN ('failed', 'dead_letter', 'cancelled') THEN 'completed' ELSE 'pending' END
   OR d.status = 'completed' AND (d.quality IS NULL OR NOT d.text_ready AND d.quality NOT IN ('stored_only', 'empty'))
ORDER BY d.id LIMIT 10;

-- name: uncanonical_documents()
-- Documents outside the trash that are neither canonical nor a duplicate, and contents with two canonical ones.
SELECT d.id FROM documents d
WHERE d.deleted_at IS NULL AND d.duplicate_of IS NULL
  AND NOT EXISTS (SELECT FROM uploads u WHERE u.document_id = d.id AND u.is_canonical AND u.owner_id = d.owner_id)
UNION
SELECT unnest(array_agg(u.document_id)) FROM uploads u WHERE u.state = 'uploaded' AND u.is_canonical
GROUP BY u.owner_id, u.sha256 HAVING count(*) > 1
ORDER BY id LIMIT 10;

-- name: wrong_versions()
-- Documents with a wrong superseded mark, and version families with two owners.
SELECT d.id, d.version FROM documents d
WHERE d.superseded <> EXISTS (SELECT FROM documents newer WHERE newer.family_id = d.family_id AND newer.version > d.version
                                  AND newer.deleted_at IS NULL)
   OR EXISTS (SELECT FROM documents other WHERE other.family_id = d.family_id AND other.owner_id <> d.owner_id)
ORDER BY d.id LIMIT 10;

-- name: orphan_chunks()
-- Chunks of an old revision, although the document is not being processed.
SELECT c.document_id, c.revision FROM chunks c JOIN documents d ON d.id = c.document_id
WHERE c.revision <> d.revision AND d.status <> 'pending' GROUP BY 1, 2 LIMIT 10;

-- name: objects_after(key, most)
-- The objects that rows refer to, in pages.
SELECT o.key, o.bytes, encode(o.sha256, 'hex'), coalesce(
    (SELECT a.kind || ' of document ' || a.document_id FROM artifacts a WHERE a.key = o.key ORDER BY a.id LIMIT 1),
    (SELECT f.kind || ' of conversion ' || f.conversion_id FROM conversion_files f WHERE f.key = o.key LIMIT 1),
    (SELECT 'archive ' || a.name FROM archives a WHERE a.key = o.key), 'file of nothing')
FROM objects o WHERE o.key > :key ORDER BY o.key LIMIT :most;

-- name: count_documents()
-- With the least, mean and largest number of chunks of a document.
SELECT count(*), count(*) FILTER (WHERE d.deleted_at IS NOT NULL), coalesce(min(n.chunks), 0), coalesce(avg(n.chunks), 0)::float8,
       coalesce(max(n.chunks), 0)
FROM documents d CROSS JOIN LATERAL (
    SELECT count(*) AS chunks FROM chunks c WHERE c.document_id = d.id AND c.revision = d.revision) AS n;

-- name: count_connections()
SELECT engine, count(*) FROM connections GROUP BY engine ORDER BY engine;

-- name: wrong_spending()
-- Spending totals that differ from the sum of the calls.
WITH counted AS (
    SELECT key, sum(CASE state WHEN 'reserved' THEN estimate_usd ELSE 0 END) AS reserved, sum(cost_usd) AS spent
    FROM ai_calls, unnest(spending_keys(owner_id, document_id, created_at)) AS key GROUP BY key
)
SELECT key, reserved_usd, spent_usd, reserved, spent FROM counted FULL JOIN ai_spending USING (key)
WHERE coalesce(reserved, 0) <> coalesce(reserved_usd, 0) OR coalesce(spent, 0) <> coalesce(spent_usd, 0)
ORDER BY key LIMIT 10;

-- name: count_calls()
SELECT count(*), coalesce(sum(cost_usd), 0) FROM ai_calls;

-- name: wrong_analyses()
-- Analyses that ended without an answer, that are open without open work, or whose segments miss pages.
SELECT a.id, a.status FROM analyses a
WHERE a.status = 'completed' AND EXISTS (
          SELECT FROM analysis_results r WHERE r.analysis_id = a.id AND r.status <> 'completed')
   OR a.status = 'analyzing' AND a.phase IN ('processing', 'consolidating') AND NOT EXISTS (
          SELECT FROM jobs j WHERE j.parent_id = a.id AND j.status IN ('queued', 'processing', 'paused'))
   OR a.units IS NOT NULL AND a.units <> coalesce((
          SELECT sum(s.last - s.first + 1) FROM segments s WHERE s.analysis_id = a.id AND s.parent_id IS NULL), 0)
   OR EXISTS (SELECT FROM segments s WHERE s.analysis_id = a.id
                AND s.last - s.first + 1 <> (SELECT sum(p.last - p.first + 1) FROM segments p WHERE p.parent_id = s.id))
ORDER BY a.id LIMIT 10;

-- name: incomplete_vectors()
-- Documents that are searched by a model without vectors for all their chunks.
SELECT d.id, m.name FROM documents d JOIN embedding_models m ON m.id = d.embedding_model_id
WHERE d.status = 'completed' AND d.embeddings_ready AND NOT has_vectors(d.id, d.revision, m.id) ORDER BY d.id LIMIT 10;

-- name: stuck_vectors(model, visitors)
-- Documents with vectors of another model whose renewal failed.
SELECT d.id, m.name FROM documents d JOIN owners o ON o.id = d.owner_id JOIN embedding_models m ON m.id = d.embedding_model_id
WHERE m.name <> :model AND d.deleted_at IS NULL AND (:visitors OR o.kind <> 'anonymous')
  AND (SELECT j.status FROM jobs j WHERE j.document_id = d.id AND j.kind = 'embed_document' ORDER BY j.created_at DESC LIMIT 1)
      IN ('failed', 'dead_letter')
ORDER BY d.id LIMIT 10;

-- name: count_vectors(model, visitors)
SELECT count(*), count(*) FILTER (WHERE m.name <> :model AND (:visitors OR o.kind <> 'anonymous'))
FROM documents d JOIN owners o ON o.id = d.owner_id JOIN embedding_models m ON m.id = d.embedding_model_id
WHERE d.deleted_at IS NULL;

-- name: count_analyses()
SELECT count(*), (SELECT count(*) FROM analysis_items) FROM analyses;
