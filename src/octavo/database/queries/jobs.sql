-- name: sync_kinds(names, max_attempts, time_limits, renewed, caps, rates)!
-- The kinds of this version. The worker that starts last determines the limits.
WITH given AS (
    SELECT * FROM unnest(:names::text[], :max_attempts::int[], :time_limits::float8[], :renewed::bool[], :caps::int[], :rates::float8[])
        AS g (name, max_attempts, time_limit, renewed, cap, rate)
), rated AS (
    INSERT INTO job_kinds (name, max_attempts, time_limit, limit_renewed_by_stage, cap, starts_per_second)
    SELECT name, max_attempts, make_interval(secs => time_limit), renewed, cap, rate FROM given
    ON CONFLICT (name) DO UPDATE SET max_attempts = excluded.max_attempts, time_limit = excluded.time_limit,
        limit_renewed_by_stage = excluded.limit_renewed_by_stage, cap = excluded.cap,
        starts_per_second = excluded.starts_per_second
    RETURNING name, starts_per_second
)
SELECT FROM rated;

-- name: sync_rates()!
-- A kind with a start rate has a row with the time of its next start.
WITH gone AS (
    DELETE FROM start_rates WHERE kind NOT IN (SELECT name FROM job_kinds WHERE starts_per_second IS NOT NULL)
)
INSERT INTO start_rates (kind, next_at)
SELECT name, engine_now() FROM job_kinds WHERE starts_per_second IS NOT NULL
ON CONFLICT DO NOTHING;

-- name: sync_caps()
-- A kind with a limit has a cap named after it.
SELECT set_cap('kind:' || name, cap) FROM job_kinds WHERE cap IS NOT NULL ORDER BY name;

-- name: enqueue(wanted)
-- Returns the id of each job, and whether it was created.
SELECT id, made FROM enqueue_jobs(:wanted);

-- name: exchange(worker, held, tokens, outputs, kinds, slots, bulk_most, bulk_first, lease, mark_priority, mark_time, bulk_mark_priority, bulk_mark_time)
-- Completes finished jobs and claims the next ones. `waited` is computed from the row before the claim, which this statement still
-- sees: the seconds since the job was queued, or since it became due.
SELECT id, kind, owner_id, document_id, parent_id, priority, virtual_time, attempt, stage, lease_token, input,
       (SELECT extract(epoch FROM engine_now() - greatest(j.queued_at, j.run_after))::double precision
        FROM jobs j WHERE j.id = e.id) AS waited
FROM exchange_jobs(:worker, :held, :tokens, :outputs::jsonb, :kinds, :slots, :bulk_most::integer, :bulk_first::boolean,
                   make_interval(secs => :lease), :mark_priority::smallint, :mark_time::bigint, :bulk_mark_priority::smallint,
                   :bulk_mark_time::bigint) e;

-- name: pass_time(taking_over, newest_known, worker)
-- Requeues jobs of dead workers and makes due jobs claimable. Returns the number of jobs, the seconds until the next one or the next
-- schedule is due, whether a schedule is due now, whether the schema has become too new for the version of this worker, and
-- whether this worker is the time-keeper: the one that has been alive for the longest time.
SELECT pass_time(:taking_over) AS changed, extract(epoch FROM least(
           (SELECT min(run_after) FROM jobs WHERE status = 'queued' AND run_after < 'infinity'),
           (SELECT min(lease_expires_at) FROM jobs WHERE status = 'processing'), next.run_at) - next.now)::float8 AS due_in,
       coalesce(next.run_at <= next.now, false) AS has_due_schedule,
       EXISTS (SELECT FROM schema_migrations
               WHERE number > :newest_known AND coalesce(compatible_from, number) > :newest_known) AS is_outdated,
       coalesce((SELECT id FROM workers WHERE expires_at > next.now ORDER BY started_at, id LIMIT 1) = :worker::uuid, true) AS is_keeper
FROM (SELECT engine_now() AS now, (SELECT min(next_run_at) FROM schedules WHERE enabled) AS run_at) AS next;

-- name: notify()!
-- Wakes all workers.
NOTIFY octavo_jobs;

-- name: claimed_by(worker, running)
-- Jobs that this worker claimed in an exchange whose response was lost.
SELECT id, kind, owner_id, document_id, parent_id, priority, virtual_time, attempt, stage, lease_token, input
FROM jobs WHERE leased_by = :worker AND status = 'processing' AND NOT id = ANY (:running);

-- name: renew(worker, held, tokens, lease)
SELECT renew_leases(:worker, :held, :tokens, make_interval(secs => :lease));

-- name: lost(held, tokens)
SELECT lost_leases(:held, :tokens);

-- name: hold_lease(job, token)
SELECT hold_lease(:job, :token);

-- name: trace_of(job)
SELECT context FROM job_traces WHERE job_id = :job;

-- name: note_progress(job, token)!
-- As after a finished stage: earlier failures and workers that ended no longer count.
UPDATE jobs SET failures = 0, taken_from = '{}', alone = false
WHERE id = :job AND lease_token = :token AND status = 'processing' AND (failures > 0 OR taken_from <> '{}' OR alone);

-- name: owner_of(job)
SELECT owner_id FROM jobs WHERE id = :job FOR SHARE;

-- name: renew_deadline(job, token)
-- Renews the time limit of kinds whose stages renew it. True if the lease is still valid.
WITH held AS (
    UPDATE jobs SET deadline_at = CASE WHEN k.limit_renewed_by_stage THEN engine_now() + k.time_limit ELSE deadline_at END
    FROM job_kinds k
    WHERE jobs.id = :job AND lease_token = :token AND status = 'processing' AND k.name = jobs.kind
    RETURNING jobs.id
)
SELECT EXISTS (SELECT FROM held);

-- name: stage_outputs(job)
-- The stages that earlier attempts finished.
SELECT stage, part, output FROM job_stages WHERE job_id = :job;

-- name: forget_stages(job, stages)!
DELETE FROM job_stages WHERE job_id = :job AND stage = ANY (:stages);

-- name: finish_stage(job, token, stage, part, output, seconds)
SELECT finish_stage(:job, :token, :stage, :part, :output, make_interval(secs => :seconds));

-- name: stage_attempt(job, stage, part)
SELECT attempt FROM job_stages WHERE job_id = :job AND stage = :stage AND part = :part;

-- name: progress(job, token, done, total, unit, stage)
SELECT report_progress(:job, :token, :done, :total, :unit, :stage);

-- name: fail(job, token, code, message, first_delay, factor, charged, retry_after)
SELECT fail_job(:job, :token, :code, :message, :first_delay, :factor, :charged, :retry_after);

-- name: hand_back(held, tokens, because)
SELECT hand_back_jobs(:held, :tokens, :because);

-- name: pause(job, token, code, message)
SELECT pause_job(:job, :token, :code, :message);

-- name: requeue(job, from_stage)
SELECT requeue_job(:job, :from_stage);

-- name: prioritise(job)
SELECT prioritise_job(:job);

-- name: pause_imports(owner)
SELECT pause_imports(:owner);

-- name: resume_imports(owner)
SELECT resume_imports(:owner);

-- name: imports_paused(owner)
-- When the owner's imports were paused; no row if they are not. With the number of waiting bulk jobs, counted up to 1000.
SELECT p.paused_at, (SELECT count(*) FROM (
    SELECT FROM jobs WHERE owner_id = :owner AND status = 'queued' AND priority >= 10 LIMIT 1000) AS waiting) AS waiting
FROM (SELECT) AS always LEFT JOIN paused_imports p ON p.owner_id = :owner;

-- name: cancel(job, event)
SELECT cancel_job(:job, :event);

-- name: register_worker(id, host, pid, kinds, slots, seconds)!
INSERT INTO workers (id, host, pid, kinds, slots, started_at, heartbeat_at, expires_at)
SELECT :id, :host, :pid, :kinds, :slots, at, at, at + make_interval(secs => :seconds) FROM engine_now() AS at;

-- name: worker_heartbeat(id, running, seconds)!
SELECT beat_worker(:id, :running, make_interval(secs => :seconds));

-- name: release_workers(ended, because, suspicious)
-- Requeues the jobs of workers whose end their supervisor has seen. Returns the number of jobs.
SELECT release_workers(:ended, :because, :suspicious);

-- name: forget_worker(id)!
DELETE FROM workers WHERE id = :id;

-- name: forget_dead_workers()!
-- Deletes rows of killed workers after an hour, during which they are still shown.
DELETE FROM workers WHERE expires_at < engine_now() - interval '1 hour';
