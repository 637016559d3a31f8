-- name: line()
-- Number of queued jobs by kind, and the waiting time of the oldest.
SELECT kind, count(*) AS jobs, extract(epoch FROM engine_now() - min(queued_at))::float8 AS waiting_seconds
FROM jobs WHERE status = 'queued' GROUP BY kind ORDER BY kind;

-- name: workers()
-- Running workers, and workers lost in the last hour, with the oldest heartbeat of each group.
SELECT expires_at > engine_now() AS alive, count(*) AS workers, coalesce(sum(running), 0)::int AS running,
       coalesce(sum(slots), 0)::int AS slots, extract(epoch FROM engine_now() - min(heartbeat_at))::float8 AS heartbeat_seconds
FROM workers GROUP BY 1;

-- name: spent()
-- Cost of models for all owners this month.
SELECT coalesce(sum(spent_usd), 0)::float8 AS spent_usd FROM ai_spending
WHERE key = 'month:' || to_char(engine_now() AT TIME ZONE 'UTC', 'YYYY-MM');
