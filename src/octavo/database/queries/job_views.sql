-- name: jobs(owner, job, jobs, status, kind, document, before_at, before_id, most)
-- Jobs of one owner, newest first; if the owner is NULL, jobs of all owners, for administrators. The queue also counts each finished part
-- of a stage, so a job that counts something else, such as documents, can have a count above its total.
SELECT id, kind, document_id, status, lane_of(priority) AS lane, stage, attempt, failures, max_attempts, least(done, total) AS done, total, unit,
       error_code, error_message,
       created_at, queued_at, started_at, progressed_at, completed_at, failed_at
FROM jobs
WHERE (:owner::uuid IS NULL OR owner_id = :owner)
  AND (:job::uuid IS NULL OR id = :job)
  AND (:jobs::uuid[] IS NULL OR id = ANY (:jobs))
  AND (:status::text IS NULL OR status = :status)
  AND (:kind::text IS NULL OR kind = :kind)
  AND (:document::uuid IS NULL OR document_id = :document)
  AND (:before_at::timestamptz IS NULL OR (created_at, id) < (:before_at, :before_id::uuid))
ORDER BY created_at DESC, id DESC
LIMIT :most;

-- name: named_jobs(part, most)
-- Jobs of all owners whose id, or the last eight characters of it, begin with `part`, or whose id ends with it.
SELECT id, kind FROM jobs
WHERE starts_with(id::text, :part) OR right(id::text, length(:part)) = :part OR starts_with(right(id::text, 8), :part)
ORDER BY id LIMIT :most;

-- name: waiting(jobs)
-- Why jobs are waiting. Jobs that are not waiting have no row.
SELECT job_id, reason, detail FROM job_waiting WHERE job_id = ANY (:jobs);

-- name: etas(jobs)
-- The remaining time of jobs. Jobs without an estimate have no row.
SELECT job_id, low_seconds, high_seconds FROM job_eta(:jobs);

-- name: stages(jobs, with_parts)
-- The finished stages of jobs. Lists omit the parts, because a long document has many.
SELECT job_id, stage, nullif(part, '') AS part, attempt, started_at, finished_at
FROM job_stages WHERE job_id = ANY (:jobs) AND (:with_parts OR part = '')
ORDER BY job_id, finished_at, part;

-- name: events(owner, job, most)
-- The last events of a job, newest first.
SELECT id, at, kind, process_id, document_id, detail
FROM events
WHERE process_id = :job AND (:owner::uuid IS NULL OR EXISTS (SELECT FROM jobs WHERE id = :job AND owner_id = :owner))
ORDER BY id DESC LIMIT :most;

-- name: lock_jobs(owner, jobs)
-- Locks jobs in the order of their ids, so that two requests cannot deadlock.
SELECT id, status, cap_key FROM jobs
WHERE id = ANY (:jobs) AND (:owner::uuid IS NULL OR owner_id = :owner)
ORDER BY id FOR UPDATE;

-- name: try_now(owner, jobs)
-- Ends the back-off of jobs and records it. Returns the jobs that were waiting for their next attempt.
WITH waiting AS (
    SELECT id FROM jobs
    WHERE id = ANY (:jobs) AND (:owner::uuid IS NULL OR owner_id = :owner) AND status = 'queued'
      AND run_after > engine_now() AND run_after < 'infinity'
    ORDER BY id FOR UPDATE
), woken AS (
    UPDATE jobs SET run_after = engine_now()
    FROM waiting WHERE jobs.id = waiting.id
    RETURNING jobs.id, jobs.owner_id, jobs.document_id
), told AS (
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    SELECT id, 'try_now', owner_id, document_id, '{}' FROM woken
)
SELECT id FROM woken;

-- name: probe_now()!
-- Lets providers whose circuit is open accept one call now.
UPDATE ai_gates SET open_until = engine_now() WHERE open_until > engine_now();

-- name: waiting_jobs(owner, document)
-- The jobs of a document that wait for their next attempt, and improvements of its description that failed for good.
SELECT id FROM jobs
WHERE owner_id = :owner AND document_id = :document
  AND (status = 'queued' AND run_after > engine_now() AND run_after < 'infinity' OR kind = 'improve_document' AND status = 'dead_letter')
ORDER BY id;

-- name: workers()
-- Running workers, and those that disappeared in the last hour.
SELECT id, host, pid, kinds, slots, running, expires_at > engine_now() AS alive, started_at, heartbeat_at, expires_at
FROM workers ORDER BY started_at, id;

-- name: depths()
-- How many jobs are in each state that may need attention.
SELECT status, count(*) FROM jobs WHERE status = 'queued' GROUP BY status
UNION ALL
SELECT status, count(*) FROM jobs WHERE status = 'processing' GROUP BY status
UNION ALL
SELECT status, count(*) FROM jobs WHERE status IN ('failed', 'dead_letter', 'paused') GROUP BY status;

-- name: analyses_of(jobs)
-- The analyses that jobs belong to. An analysis has the id of the job that prepares it.
SELECT j.id AS job, a.id AS analysis, a.owner_id AS owner FROM jobs j JOIN analyses a ON a.id = coalesce(j.parent_id, j.id)
WHERE j.id = ANY (:jobs) ORDER BY a.id;
