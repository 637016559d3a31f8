-- name: engine_time()
SELECT engine_now();

-- name: local_owner()
-- Jobs of schedules belong to the local owner.
SELECT id FROM owners WHERE kind = 'local';

-- name: sync(name, kind, cron, input, next_run_at)!
-- Inserts a schedule, or changes the time of an existing one.
INSERT INTO schedules (name, kind, cron, input, next_run_at) VALUES (:name, :kind, :cron, :input, :next_run_at)
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, cron = excluded.cron, input = excluded.input,
    next_run_at = CASE WHEN schedules.cron = excluded.cron THEN schedules.next_run_at ELSE excluded.next_run_at END;

-- name: due()
-- Locks the due schedules; another worker that checks at the same time gets none of them.
SELECT s.name, s.kind, s.cron, s.input, s.next_run_at, now.at,
       coalesce(j.status IN ('queued', 'processing', 'paused'), false) AS busy
FROM schedules s
CROSS JOIN (SELECT engine_now() AS at) AS now
LEFT JOIN jobs j ON j.id = s.last_job_id
WHERE s.enabled AND s.next_run_at <= now.at
ORDER BY s.next_run_at
FOR UPDATE OF s SKIP LOCKED;

-- name: one(name)
SELECT s.name, s.kind, s.cron, s.input, s.next_run_at, engine_now() AS at, false AS busy
FROM schedules s WHERE s.name = :name FOR UPDATE OF s;

-- name: advance(name, next_run_at, job)!
-- Sets the next run, which is always in the future, even if several runs were missed.
UPDATE schedules SET next_run_at = :next_run_at, last_job_id = coalesce(:job::uuid, last_job_id),
    last_run_at = CASE WHEN :job::uuid IS NULL THEN last_run_at ELSE engine_now() END
WHERE name = :name;

-- name: all()
SELECT s.name, s.kind, s.cron, s.enabled, s.next_run_at, s.last_run_at, s.last_job_id, j.status AS last_status
FROM schedules s LEFT JOIN jobs j ON j.id = s.last_job_id ORDER BY s.name;

-- name: enable(name, enabled)!
UPDATE schedules SET enabled = :enabled WHERE name = :name;
