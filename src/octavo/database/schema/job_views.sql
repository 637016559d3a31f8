-- Views of jobs for people: why a job is waiting, and the remaining time of running jobs.

-- Why each unfinished job is not running. If there are several reasons, the one that must be resolved first is shown.
CREATE VIEW job_waiting AS
SELECT j.id AS job_id, because.reason,
    CASE
        WHEN because.reason = 'paused' THEN coalesce(j.note -> 'error', '{}')
        WHEN because.reason = 'no_worker' THEN jsonb_build_object(
            'live_workers', (SELECT count(*) FROM workers w WHERE w.expires_at > engine_now()))
        WHEN because.reason IN ('backing_off', 'provider') THEN jsonb_strip_nulls(jsonb_build_object(
            'run_after', j.run_after, 'attempt', j.attempt, 'failures', j.failures, 'max_attempts', j.max_attempts,
            'error', j.note -> 'error'))
        WHEN because.reason = 'cap' THEN (
            SELECT jsonb_build_object('cap_key', c.key, 'most', c.most, 'taken', c.taken) FROM caps c WHERE c.key = j.cap_key)
        -- Counted backwards from the job and only up to 1000, so that it costs the same in a queue of a million.
        WHEN because.reason IN ('alone', 'behind') THEN jsonb_build_object('position', 1 + (
            SELECT count(*) FROM (
                SELECT FROM jobs b
                WHERE b.status = 'queued' AND b.admitted AND (b.priority, b.virtual_time, b.id) < (j.priority, j.virtual_time, j.id)
                ORDER BY b.priority DESC, b.virtual_time DESC, b.id DESC LIMIT 1000) AS before))
        ELSE '{}'
    END AS detail
FROM jobs j
CROSS JOIN LATERAL (SELECT
    CASE
        WHEN j.status = 'paused' THEN 'paused'
        WHEN j.run_after = 'infinity' THEN 'imports_paused'
        WHEN NOT EXISTS (SELECT FROM workers w WHERE w.expires_at > engine_now() AND j.kind = ANY (w.kinds)) THEN 'no_worker'
        WHEN j.run_after > engine_now() AND j.note #>> '{error,code}' = 'AI_UNAVAILABLE' THEN 'provider'
        WHEN j.run_after > engine_now() THEN 'backing_off'
        WHEN j.run_after IS NULL AND NOT j.admitted THEN 'cap'
        WHEN j.alone THEN 'alone'
        ELSE 'behind'
    END AS reason) AS because
WHERE j.status IN ('queued', 'paused');

COMMENT ON VIEW job_waiting IS 'Select by job ids: the position in the queue is computed for each row.';

-- How long a job has been running: its current attempt, plus the stages that earlier attempts finished.
CREATE FUNCTION running_seconds(job uuid, attempt_started timestamptz, until timestamptz) RETURNS double precision
LANGUAGE sql STABLE AS $$
    SELECT extract(epoch FROM until - attempt_started) + coalesce((
        SELECT sum(extract(epoch FROM finished_at - started_at)) FROM job_stages
        WHERE job_id = job AND finished_at <= attempt_started), 0)
$$;

-- The remaining time of running jobs, as a range between measured quartiles. A job has no row if there are too few samples, or
-- if it already takes longer than others of its kind.
CREATE FUNCTION job_eta(wanted uuid[]) RETURNS TABLE (job_id uuid, low_seconds double precision, high_seconds double precision)
LANGUAGE sql VOLATILE AS $$
    WITH running AS MATERIALIZED (
        SELECT id, kind, stage, total - done AS items_left, running_seconds(id, started_at, engine_now()) AS elapsed
        FROM jobs WHERE id = ANY (wanted) AND status = 'processing'
    ), by_parts AS (
        -- Parts that run in parallel end sooner than the sum of their durations; `beside` is how many ran in parallel.
        SELECT r.id, r.items_left * took.quartiles[1] / took.beside AS low, r.items_left * took.quartiles[2] / took.beside AS high
        FROM running r CROSS JOIN LATERAL (
            SELECT count(*) AS samples,
                   percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY seconds) AS quartiles,
                   greatest(1, sum(seconds) / nullif(extract(epoch FROM max(finished_at) - min(started_at)), 0)) AS beside
            FROM (SELECT started_at, finished_at, extract(epoch FROM finished_at - started_at)::double precision AS seconds
                  FROM job_stages s WHERE s.job_id = r.id AND s.stage = r.stage AND s.part <> ''
                  ORDER BY finished_at DESC LIMIT 50) AS parts) AS took
        WHERE r.items_left > 0 AND took.samples >= 3
    ), by_kind AS (
        SELECT k.kind, took.quartiles[1] AS low, took.quartiles[2] AS high
        FROM (SELECT DISTINCT kind FROM running) AS k CROSS JOIN LATERAL (
            SELECT count(*) AS samples, percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY seconds) AS quartiles
            FROM (SELECT running_seconds(c.id, c.started_at, c.completed_at) AS seconds
                  FROM jobs c WHERE c.status = 'complete' AND c.kind = k.kind
                  ORDER BY c.completed_at DESC LIMIT 50) AS completed) AS took
        WHERE took.samples >= 5
    )
    SELECT r.id, coalesce(p.low, greatest(0, k.low - r.elapsed)), coalesce(p.high, k.high - r.elapsed)
    FROM running r LEFT JOIN by_parts p USING (id) LEFT JOIN by_kind k USING (kind)
    WHERE p.id IS NOT NULL OR k.high > r.elapsed
$$;

-- Jobs that are not finished yet. Each part reads an index that contains few other jobs; an index for all three would change with each
-- step of each job.
CREATE VIEW unfinished_jobs AS
SELECT id, kind, owner_id, document_id, status, priority, created_at FROM jobs WHERE status = 'queued'
UNION ALL
SELECT id, kind, owner_id, document_id, status, priority, created_at FROM jobs WHERE status = 'processing'
UNION ALL
SELECT id, kind, owner_id, document_id, status, priority, created_at FROM jobs WHERE status = 'paused';
