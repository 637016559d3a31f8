-- name: line()
-- How many wait, by kind, and for how long the first of them has been waiting.
SELECT kind, count(*) AS jobs, extract(epoch FROM engine_now() - min(queued_at))::float8 AS waiting_seconds
FROM jobs WHERE status = 'queued' GROUP BY kind ORDER BY kind;

-- name: workers()
-- Workers that run, and those that ended without a word in the last hour, with the oldest sign of life of each group.
SELECT expires_at > engine_now() AS alive, count(*) AS workers, coalesce(sum(running), 0)::int AS running,
       coalesce(sum(slots), 0)::int AS slots, extract(epoch FROM engine_now() - min(heartbeat_at))::float8 AS heartbeat_seconds
FROM workers GROUP BY 1;

-- name: spent()
-- What models cost all owners together in this month.
SELECT coalesce(sum(spent_usd), 0)::float8 AS spent_usd FROM ai_spending
WHERE key = 'month:' || to_char(engine_now() AT TIME ZONE 'UTC', 'YYYY-MM');
