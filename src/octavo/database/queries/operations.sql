-- name: job_owner(job)
-- The name of a job's owner, for administrators.
SELECT owner_name(o) AS name FROM jobs j JOIN owners o ON o.id = j.owner_id WHERE j.id = :job;

-- name: counts()
-- The number of jobs in each state that the operations page can filter by, and how long the oldest has been waiting.
SELECT line.queued, line.backing_off, line.oldest_at, held.working, resting.paused, resting.failed, resting.dead_letter,
       engine_now() AS now
FROM (SELECT count(*) FILTER (WHERE run_after IS NULL) AS queued, count(*) FILTER (WHERE run_after IS NOT NULL) AS backing_off,
             min(queued_at) FILTER (WHERE run_after IS NULL) AS oldest_at FROM jobs WHERE status = 'queued') AS line
CROSS JOIN (SELECT count(*) AS working FROM jobs WHERE status = 'processing') AS held
CROSS JOIN (SELECT count(*) FILTER (WHERE status = 'paused') AS paused, count(*) FILTER (WHERE status = 'failed') AS failed,
                   count(*) FILTER (WHERE status = 'dead_letter') AS dead_letter
            FROM jobs WHERE status IN ('failed', 'dead_letter', 'paused', 'cancelled')) AS resting;

-- name: jobs(states, kind, before_at, before_id, most)
-- Ids of the jobs of all owners in some states, newest first. Each state is read by an index; complete jobs are sorted by
-- their completion, because only that is indexed.
WITH found AS (
    (SELECT id, created_at AS at FROM jobs
     WHERE 'queued' = ANY (:states) AND status = 'queued' AND run_after IS NULL AND (:kind::text IS NULL OR kind = :kind)
       AND (:before_at::timestamptz IS NULL OR (created_at, id) < (:before_at, :before_id::uuid))
     ORDER BY created_at DESC, id DESC LIMIT :most)
    UNION ALL
    (SELECT id, created_at FROM jobs
     WHERE 'backing_off' = ANY (:states) AND status = 'queued' AND run_after IS NOT NULL AND (:kind::text IS NULL OR kind = :kind)
       AND (:before_at::timestamptz IS NULL OR (created_at, id) < (:before_at, :before_id::uuid))
     ORDER BY created_at DESC, id DESC LIMIT :most)
    UNION ALL
    (SELECT id, created_at FROM jobs
     WHERE 'working' = ANY (:states) AND status = 'processing' AND (:kind::text IS NULL OR kind = :kind)
       AND (:before_at::timestamptz IS NULL OR (created_at, id) < (:before_at, :before_id::uuid))
     ORDER BY created_at DESC, id DESC LIMIT :most)
    UNION ALL
    (SELECT resting.id, resting.created_at
     FROM (VALUES ('failed'), ('dead_letter'), ('paused'), ('cancelled')) AS state (name)
     CROSS JOIN LATERAL (
        SELECT id, created_at FROM jobs
        WHERE state.name = ANY (:states) AND status = state.name
          AND status IN ('failed', 'dead_letter', 'paused', 'cancelled') AND (:kind::text IS NULL OR kind = :kind)
          AND (:before_at::timestamptz IS NULL OR (created_at, id) < (:before_at, :before_id::uuid))
        ORDER BY created_at DESC, id DESC LIMIT :most) AS resting)
    UNION ALL
    (SELECT complete.id, complete.completed_at FROM job_kinds k CROSS JOIN LATERAL (
        SELECT id, completed_at FROM jobs
        WHERE 'complete' = ANY (:states) AND kind = k.name AND status = 'complete' AND (:kind::text IS NULL OR kind = :kind)
          AND (:before_at::timestamptz IS NULL OR (completed_at, id) < (:before_at, :before_id::uuid))
        ORDER BY completed_at DESC, id DESC LIMIT :most) AS complete)
)
SELECT id, at FROM found ORDER BY at DESC, id DESC LIMIT :most;

-- name: kinds()
SELECT name FROM job_kinds ORDER BY name;

-- name: titles(owner, documents)
-- The titles of the given documents that belong to the owner.
SELECT id, coalesce(nullif(title, ''), filename) AS title FROM documents WHERE owner_id = :owner AND id = ANY (:documents);

-- name: depth(hours)
-- How the numbers of waiting and running jobs changed in each minute of the last hours. Reads only the indexes of unfinished,
-- recently completed and recently failed jobs, so the cost depends on these hours and not on the whole history.
WITH since AS MATERIALIZED (SELECT engine_now() - make_interval(hours => :hours) AS at), spans AS (
    SELECT complete.queued_at AS came, complete.completed_at AS went
    FROM since CROSS JOIN job_kinds k CROSS JOIN LATERAL (
        SELECT queued_at, completed_at FROM jobs
        WHERE kind = k.name AND status = 'complete' AND completed_at > since.at) AS complete
    UNION ALL
    SELECT queued_at, NULL FROM jobs WHERE status = 'queued'
    UNION ALL
    SELECT queued_at, NULL FROM jobs WHERE status = 'processing'
    UNION ALL
    SELECT queued_at, failed_at FROM jobs, since
    WHERE status IN ('failed', 'dead_letter', 'paused', 'cancelled') AND status IN ('failed', 'dead_letter')
      AND created_at > since.at AND queued_at IS NOT NULL
)
SELECT date_trunc('minute', greatest(change.at, since.at)) AS minute, sum(change.by)::integer AS change
FROM since, (SELECT came AS at, 1 AS by FROM spans UNION ALL SELECT went, -1 FROM spans WHERE went IS NOT NULL) AS change
GROUP BY 1 ORDER BY 1;

-- name: allowed_connections()
-- How many connections the server allows to all ordinary users together.
SELECT current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
     - coalesce(current_setting('reserved_connections', true)::integer, 0) AS allowed;
