-- name: wrong_caps()
-- Caps whose count differs from the jobs that hold their slots.
SELECT caps.key, caps.taken, count(jobs.id) AS held
FROM caps LEFT JOIN jobs ON jobs.cap_key = caps.key AND jobs.admitted
GROUP BY caps.key, caps.taken HAVING caps.taken <> count(jobs.id) ORDER BY caps.key LIMIT 10;

-- name: idle_caps()
-- Caps with a free slot although somebody waits for one.
SELECT caps.key FROM caps
WHERE caps.taken < caps.most AND EXISTS (
    SELECT FROM jobs WHERE cap_key = caps.key AND status = 'queued' AND NOT admitted AND run_after IS NULL)
ORDER BY caps.key LIMIT 10;

-- name: jobs_unlike_events()
-- Jobs whose state is not the one that their events end in. One statement, so both sides are of one moment.
SELECT jobs.id, jobs.status, last.state_after
FROM jobs LEFT JOIN LATERAL (
    SELECT state_after FROM events WHERE process_id = jobs.id AND state_after IS NOT NULL ORDER BY id DESC LIMIT 1
) AS last ON true
WHERE last.state_after IS DISTINCT FROM jobs.status ORDER BY jobs.id LIMIT 10;

-- name: broken_jobs()
-- Jobs that break an invariant.
SELECT id, broken_invariant(jobs) FROM jobs WHERE broken_invariant(jobs) IS NOT NULL ORDER BY id LIMIT 10;

-- name: illegal_histories()
-- Steps in the events that the state machine does not allow.
SELECT process_id, before, after FROM (
    SELECT process_id, state_after AS after, lag(state_after) OVER (PARTITION BY process_id ORDER BY id) AS before
    FROM events WHERE state_after IS NOT NULL) AS steps
WHERE before IS NOT NULL
  AND NOT EXISTS (SELECT FROM job_transitions t WHERE t.before = steps.before AND t.after = steps.after)
LIMIT 10;

-- name: left_leases()
-- Jobs whose lease ran out long ago although workers are alive that would take them.
SELECT jobs.id FROM jobs, engine_now() AS at
WHERE jobs.status = 'processing' AND jobs.lease_expires_at < at - interval '1 minute'
  AND EXISTS (SELECT FROM workers WHERE workers.expires_at > at AND jobs.kind = ANY (workers.kinds))
ORDER BY jobs.id LIMIT 10;

-- name: late_schedules()
-- Schedules that nobody started although workers are alive.
SELECT name FROM schedules, engine_now() AS at
WHERE enabled AND next_run_at < at - interval '1 minute' AND EXISTS (SELECT FROM workers WHERE expires_at > at)
ORDER BY name LIMIT 10;

-- name: count_jobs()
SELECT count(*) FROM jobs;
