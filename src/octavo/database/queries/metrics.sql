-- name: line()
-- Number of queued jobs by kind, and the waiting time of the oldest.
SELECT kind, count(*) AS jobs, extract(epoch FROM engine_now() - min(queued_at))::float8 AS waiting_seconds
FROM jobs WHERE status = 'queued' GROUP BY kind ORDER BY kind;

-- name: workers()
-- Running workers, and workers lost in the last hour, with the oldest heartbeat of each group.
SELECT expires_at > engine_now() AS alive, count(*) AS workers, coalesce(sum(running), 0)::int AS running,
       coalesce(sum(slots), 0)::int AS slots, extract(epoch FROM engine_now() - min(heartbeat_at))::float8 AS heartbeat_seconds
FROM workers GROUP BY 1;

-- name: spent(limits)
-- Cost of models for all owners this month, and the budget for it. `limits` are the default budgets.
SELECT coalesce(sum(spent_usd), 0)::float8 AS spent_usd, (budgets_in_force(NULL, :limits::numeric[]))[3]::float8 AS budget_usd
FROM ai_spending
WHERE key = 'month:' || to_char(engine_now() AT TIME ZONE 'UTC', 'YYYY-MM');

-- name: stage_times(most)
-- Mean duration of each stage of documents that were completed in the last hour, by source type. Only the most recent jobs
-- are read, so that the query stays fast.
SELECT d.source_type, s.stage, count(*) AS stages,
       avg(extract(epoch FROM s.finished_at - s.started_at))::float8 AS seconds
FROM (
    SELECT id, document_id FROM jobs
    WHERE kind = 'process_document' AND status = 'complete' AND completed_at > engine_now() - interval '1 hour'
    ORDER BY completed_at DESC LIMIT :most) AS recent
JOIN documents d ON d.id = recent.document_id
JOIN job_stages s ON s.job_id = recent.id
GROUP BY d.source_type, s.stage ORDER BY d.source_type, s.stage;

-- name: item_time(most)
-- Mean time of the answers to segments that were completed in the last hour.
SELECT avg(extract(epoch FROM completed_at - started_at))::float8 AS seconds
FROM (
    SELECT started_at, completed_at FROM jobs
    WHERE kind = 'answer_segment' AND status = 'complete' AND completed_at > engine_now() - interval '1 hour'
    ORDER BY completed_at DESC LIMIT :most) AS recent;

-- name: answers()
-- Answers of models in the last hour: new ones, and ones that were reused.
SELECT (SELECT count(*) FROM ai_calls WHERE response IS NOT NULL AND ended_at > engine_now() - interval '1 hour') AS new,
       (SELECT count(*) FROM ai_reuses WHERE at > engine_now() - interval '1 hour') AS reused;

-- name: expiring_files()
-- Files at providers that expire within an hour.
SELECT count(*) AS files FROM provider_files
WHERE expires_at BETWEEN engine_now() AND engine_now() + interval '1 hour';

-- name: taken_over()
-- Jobs whose worker died or stopped responding since their last finished stage.
SELECT count(*) AS jobs FROM jobs WHERE taken_from <> '{}';

-- name: source_costs()
-- Cost of answers of models in the last hour, by source type of the document.
SELECT d.source_type, count(*) AS answers, sum(c.cost_usd)::float8 AS cost_usd
FROM ai_calls c JOIN documents d ON d.id = c.document_id
WHERE c.response IS NOT NULL AND c.ended_at > engine_now() - interval '1 hour' AND c.cost_usd > 0
GROUP BY d.source_type ORDER BY cost_usd DESC, d.source_type;

-- name: add_totals(changes)!
-- Sorted, so that two processes never wait for each other.
INSERT INTO metric_totals (name, labels, value)
SELECT name, labels, value FROM jsonb_to_recordset(:changes) AS c (name text, labels jsonb, value double precision)
ORDER BY name, labels
ON CONFLICT (name, labels) DO UPDATE SET value = metric_totals.value + excluded.value;

-- name: totals()
SELECT name, labels, value FROM metric_totals;

-- name: kinds()
-- The jobs of each kind that are not finished, or were finished in the last hour.
WITH since AS MATERIALIZED (SELECT engine_now() AS now, engine_now() - interval '1 hour' AS hour), waiting AS (
    SELECT kind, count(*) FILTER (WHERE run_after IS NULL) AS queued, count(*) FILTER (WHERE run_after IS NOT NULL) AS delayed,
           min(queued_at) FILTER (WHERE run_after IS NULL) AS oldest_at
    FROM jobs WHERE status = 'queued' GROUP BY kind
), running AS (
    SELECT kind, count(*) AS number FROM jobs WHERE status = 'processing' GROUP BY kind
), resting AS (
    SELECT kind, count(*) FILTER (WHERE status = 'paused') AS paused, count(*) FILTER (WHERE status IN ('failed', 'dead_letter')) AS failed
    FROM jobs WHERE status IN ('failed', 'dead_letter', 'paused', 'cancelled') GROUP BY kind
), finished AS (
    SELECT k.name AS kind, f.* FROM since, job_kinds k CROSS JOIN LATERAL (
        SELECT count(*) AS hour, count(*) FILTER (WHERE completed_at > since.now - interval '1 minute') AS minute
        FROM jobs WHERE kind = k.name AND status = 'complete' AND completed_at > since.hour) AS f
)
SELECT k.name AS kind, coalesce(w.queued, 0) AS queued, coalesce(w.delayed, 0) AS delayed, coalesce(r.number, 0) AS running,
       coalesce(s.paused, 0) AS paused, coalesce(s.failed, 0) AS failed, f.minute AS finished_last_minute,
       f.hour AS finished_last_hour, extract(epoch FROM since.now - w.oldest_at)::float8 AS oldest_wait_seconds
FROM since, job_kinds k JOIN finished f ON f.kind = k.name LEFT JOIN waiting w ON w.kind = k.name
LEFT JOIN running r ON r.kind = k.name LEFT JOIN resting s ON s.kind = k.name
WHERE w.kind IS NOT NULL OR r.kind IS NOT NULL OR s.paused + s.failed > 0 OR f.hour > 0
ORDER BY k.name;

-- name: recent_stages(most)
-- The time that each stage took, with all its parts, in the jobs of the last hour. Only the most recent jobs of each kind are read.
WITH since AS MATERIALIZED (SELECT engine_now() - interval '1 hour' AS hour), recent AS (
    SELECT j.id, k.name AS kind FROM since, job_kinds k CROSS JOIN LATERAL (
        SELECT id FROM jobs WHERE kind = k.name AND status = 'complete' AND completed_at > since.hour
        ORDER BY completed_at DESC LIMIT :most) AS j
), taken AS (
    SELECT r.kind, s.stage, sum(extract(epoch FROM s.finished_at - s.started_at))::float8 AS seconds,
           max(s.finished_at - j.started_at) AS place
    FROM recent r JOIN job_stages s ON s.job_id = r.id JOIN jobs j ON j.id = r.id GROUP BY r.kind, r.id, s.stage
)
SELECT kind, stage, count(*) AS jobs, avg(seconds) AS mean_seconds,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95_seconds
FROM taken GROUP BY kind, stage ORDER BY kind, avg(place);
