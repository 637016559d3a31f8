-- The end of a worker is not a failure of its jobs; suspected jobs run beside others; late heartbeats undo a suspicion.

ALTER TABLE jobs ADD COLUMN taken_from uuid[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN jobs.alone IS 'Suspected of ending its workers: a worker runs one such job at a time, until the job finishes a stage.';
COMMENT ON COLUMN jobs.taken_from IS 'Workers that ended or fell silent while they ran it, since its last finished stage.';

-- squawk-ignore require-concurrent-index-creation
CREATE INDEX jobs_suspected ON jobs (priority, virtual_time, id) WHERE status = 'queued' AND admitted AND alone;
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX jobs_taken_over ON jobs (id) WHERE taken_from <> '{}';

-- How often in a row workers may end or fall silent with a job before it is suspected of causing it, and before it is given up.
CREATE FUNCTION takeovers_to_suspect() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 2';
CREATE FUNCTION takeovers_to_give_up() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 10';

-- Requeues jobs whose worker ended or fell silent. This is not a failure of the job, because most workers end by a kill from
-- outside. If the cause is not known to be outside (`suspicious`), the worker is noted in `taken_from`. A job with two such
-- workers since its last finished stage is suspected: it waits a little longer each time, and a worker runs one such job at a
-- time. So suspected jobs never end each other's workers, and only the job that causes it reaches the limit and is given up.
CREATE FUNCTION take_over_jobs(taken uuid[], at timestamptz, because text, suspicious boolean) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    number integer;
    returned text[];
BEGIN
    WITH lost AS (
        SELECT id, leased_by, CASE WHEN suspicious THEN taken_from || leased_by ELSE taken_from END AS workers
        FROM jobs WHERE id = ANY (taken)
    ), judged AS (
        SELECT lost.*, suspicious AND cardinality(workers) >= takeovers_to_give_up() AS given_up,
               CASE WHEN suspicious AND cardinality(workers) >= takeovers_to_suspect()
                    THEN at + make_interval(secs => least(60, 2 ^ (cardinality(workers) - 1))) END AS wait_until
        FROM lost
    ), over AS (
        UPDATE jobs SET
            status = CASE WHEN given_up THEN 'dead_letter' ELSE 'queued' END,
            event_xid = greatest(event_xid, pg_current_xact_id()),
            taken_from = workers, alone = cardinality(workers) >= takeovers_to_suspect(), lease_token = lease_token + 1,
            leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
            admitted = NOT given_up AND wait_until IS NULL,
            run_after = CASE WHEN NOT given_up THEN wait_until END,
            virtual_time = greatest(virtual_time, virtual_clock(priority)),
            queued_at = CASE WHEN given_up THEN queued_at ELSE at END,
            failed_at = CASE WHEN given_up THEN at END,
            error_code = CASE WHEN given_up THEN 'CRASHED' END,
            error_message = CASE WHEN given_up
                THEN format('The worker ended %s times while it ran this job.', cardinality(workers)) END,
            note = jsonb_strip_nulls(jsonb_build_object('reason', because, 'worker', judged.leased_by,
                'error', CASE WHEN suspicious THEN jsonb_build_object(
                    'code', 'CRASHED', 'message', 'The worker ended while it ran this job.') END))
        FROM judged WHERE jobs.id = judged.id
        RETURNING jobs.cap_key, jobs.admitted
    )
    SELECT count(*), array_agg(cap_key) FILTER (WHERE cap_key IS NOT NULL AND NOT admitted) INTO number, returned FROM over;
    PERFORM return_slots(coalesce(returned, '{}'));
    RETURN number;
END $$;

-- Requeues jobs whose lease expired.
CREATE OR REPLACE FUNCTION take_over_expired(at timestamptz, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    expired uuid[];
BEGIN
    SELECT array_agg(id) INTO expired FROM (
        SELECT id FROM jobs WHERE status = 'processing' AND lease_expires_at <= at
        ORDER BY lease_expires_at LIMIT most FOR UPDATE SKIP LOCKED) AS late;
    RETURN CASE WHEN expired IS NULL THEN 0 ELSE take_over_jobs(expired, at, 'lease_expired', true) END;
END $$;

-- Jobs that were taken from these workers are no longer suspected because of them, and a job that was given up for this reason is
-- queued again.
CREATE FUNCTION clear_suspicion(workers uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    held jobs;
    rest uuid[];
BEGIN
    FOR held IN SELECT * FROM jobs WHERE taken_from <> '{}' AND taken_from && workers ORDER BY id FOR UPDATE LOOP
        rest := ARRAY(SELECT one FROM unnest(held.taken_from) AS one WHERE one <> ALL (workers));
        UPDATE jobs SET taken_from = rest, alone = alone AND cardinality(rest) >= takeovers_to_suspect() WHERE id = held.id;
        IF held.status = 'dead_letter' AND cardinality(held.taken_from) >= takeovers_to_give_up() THEN
            PERFORM requeue_job(held.id, NULL);
        END IF;
    END LOOP;
END $$;

-- Requeues the jobs of workers whose end their supervisor has seen, without waiting for their leases to expire.
CREATE FUNCTION release_workers(ended uuid[], because text, suspicious boolean) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    held uuid[];
BEGIN
    UPDATE workers SET expires_at = least(expires_at, at), running = 0 WHERE id = ANY (ended);
    IF NOT suspicious THEN
        PERFORM clear_suspicion(ended);
    END IF;
    SELECT array_agg(id) INTO held FROM (
        SELECT id FROM jobs WHERE status = 'processing' AND leased_by = ANY (ended) ORDER BY id FOR UPDATE) AS theirs;
    IF held IS NULL THEN
        RETURN 0;
    END IF;
    NOTIFY octavo_jobs;
    RETURN take_over_jobs(held, at, because, suspicious);
END $$;

-- The heartbeat of a worker. If it is late, the worker was only slow, and nobody is suspected because of it.
CREATE FUNCTION beat_worker(worker uuid, now_running integer, lease interval) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    is_late boolean;
BEGIN
    SELECT expires_at <= at INTO is_late FROM workers WHERE id = worker;
    UPDATE workers SET heartbeat_at = at, running = now_running, expires_at = at + lease WHERE id = worker;
    IF is_late THEN
        PERFORM clear_suspicion(ARRAY[worker]);
    END IF;
END $$;

-- squawk-ignore ban-drop-function
DROP FUNCTION exchange_jobs(uuid, uuid[], bigint[], jsonb, text[], integer, boolean, interval, smallint, bigint);
-- squawk-ignore ban-drop-function
DROP FUNCTION choose_jobs(uuid, text[], integer, boolean, timestamptz, smallint, bigint);

-- Locks the next suspected job, unless this worker already runs one. Jobs that are not suspected never wait for it.
CREATE FUNCTION next_suspect(worker uuid, known text[]) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    suspect uuid;
BEGIN
    IF EXISTS (SELECT FROM jobs WHERE status = 'queued' AND admitted AND alone)
       AND NOT EXISTS (SELECT FROM jobs WHERE status = 'processing' AND leased_by = worker AND alone) THEN
        SELECT id INTO suspect FROM jobs WHERE status = 'queued' AND admitted AND alone AND kind = ANY (known)
        ORDER BY priority, virtual_time, id LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    RETURN suspect;
END $$;

-- Chooses and locks the next jobs for a worker, at most one for each free slot. The search begins at (mark_priority,
-- mark_time): jobs of that priority before this position were claimed some time ago.
CREATE FUNCTION choose_jobs(worker uuid, known text[], slots integer, at timestamptz, mark_priority smallint, mark_time bigint)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    chosen uuid[];
    priorities smallint[];
    times bigint[];
    suspect uuid := next_suspect(worker, known);
BEGIN
    IF mark_priority > 0 THEN -- more urgent jobs first, wherever the search begins
        SELECT array_agg(n.id), array_agg(n.priority), array_agg(n.virtual_time) INTO chosen, priorities, times
        FROM (SELECT id, priority, virtual_time FROM jobs
              WHERE status = 'queued' AND admitted AND NOT alone AND priority < mark_priority AND kind = ANY (known)
              ORDER BY priority, virtual_time, id LIMIT slots FOR UPDATE SKIP LOCKED) AS n;
    END IF;
    IF chosen IS NULL THEN
        SELECT array_agg(n.id), array_agg(n.priority), array_agg(n.virtual_time) INTO chosen, priorities, times
        FROM (SELECT id, priority, virtual_time FROM jobs
              WHERE status = 'queued' AND admitted AND NOT alone AND (priority, virtual_time) >= (mark_priority, mark_time)
                AND kind = ANY (known)
              ORDER BY priority, virtual_time, id LIMIT slots FOR UPDATE SKIP LOCKED) AS n;
    END IF;
    IF suspect IS NOT NULL THEN
        SELECT array_agg(n.id), array_agg(n.priority), array_agg(n.virtual_time) INTO chosen, priorities, times
        FROM (SELECT id, priority, virtual_time FROM jobs WHERE id = suspect OR id = ANY (chosen)
              ORDER BY priority, virtual_time, id LIMIT slots) AS n;
    END IF;
    IF chosen IS NULL THEN
        RETURN '{}';
    END IF;
    PERFORM advance_clocks(priorities, times);
    IF EXISTS (SELECT FROM start_rates) THEN
        chosen := hold_to_rate(chosen, at);
    END IF;
    RETURN chosen;
END $$;

-- One exchange between a worker and the queue: completes its finished jobs and claims the next ones. It uses one transaction
-- and one UPDATE, because a statement costs far more than a row.
CREATE FUNCTION exchange_jobs(worker uuid, held uuid[], tokens bigint[], outputs jsonb, known text[], slots integer,
                              lease interval, mark_priority smallint, mark_time bigint)
RETURNS TABLE (id uuid, kind text, owner_id uuid, document_id uuid, parent_id uuid, priority smallint,
               virtual_time bigint, attempt integer, stage text, lease_token bigint, input jsonb)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    at timestamptz := engine_now();
    returned text[];
    chosen uuid[] := '{}';
BEGIN
    -- Rates are always locked before caps, so that two exchanges cannot deadlock.
    PERFORM FROM start_rates ORDER BY kind FOR UPDATE;
    -- Lock order: held jobs, claimed jobs, caps. SKIP LOCKED still waits for a row that was updated and locked again at the
    -- same moment, and the transaction that has it may wait for a cap. A transaction that holds a cap never waits for a
    -- running job.
    IF cardinality(held) > 0 THEN
        SELECT array_agg(mine.cap_key) INTO returned FROM (
            SELECT cap_key FROM jobs JOIN unnest(held, tokens) AS h (job, token) ON jobs.id = h.job
            WHERE lease_token = h.token AND status = 'processing' AND cap_key IS NOT NULL FOR UPDATE OF jobs) AS mine;
    END IF;
    IF slots > 0 THEN
        chosen := choose_jobs(worker, known, slots, at, mark_priority, mark_time);
    END IF;
    IF returned IS NOT NULL THEN
        PERFORM return_slots(returned);
    END IF;
    IF cardinality(held) + cardinality(chosen) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH steps AS (
        SELECT job, token, outputs -> (place - 1)::integer AS made, true AS ends
        FROM unnest(held, tokens) WITH ORDINALITY AS h (job, token, place)
        UNION ALL
        SELECT job, NULL, NULL, false FROM unnest(chosen) AS job
    ), stepped AS (
        UPDATE jobs SET
            event_xid = greatest(event_xid, pg_current_xact_id()),
            progressed_at = at,
            status = CASE WHEN ends THEN 'complete' ELSE 'processing' END,
            admitted = NOT ends,
            output = made,
            completed_at = CASE WHEN ends THEN at END,
            alone = alone AND NOT ends,
            taken_from = CASE WHEN ends THEN '{}' ELSE taken_from END,
            attempt = CASE WHEN ends THEN attempt ELSE attempt + 1 END,
            lease_token = CASE WHEN ends THEN lease_token ELSE lease_token + 1 END,
            leased_by = CASE WHEN NOT ends THEN worker END,
            lease_expires_at = CASE WHEN NOT ends THEN at + lease END,
            deadline_at = CASE WHEN NOT ends THEN at + k.time_limit END,
            started_at = CASE WHEN ends THEN started_at ELSE at END,
            note = CASE WHEN ends THEN '{}' ELSE jsonb_build_object('worker', worker) END
        FROM steps, job_kinds k
        WHERE jobs.id = steps.job AND k.name = jobs.kind
          AND (NOT ends OR jobs.lease_token = token AND jobs.status = 'processing')
        RETURNING jobs.*
    )
    SELECT s.id, s.kind, s.owner_id, s.document_id, s.parent_id, s.priority, s.virtual_time, s.attempt, s.stage,
           s.lease_token, s.input
    FROM stepped s WHERE s.status = 'processing';
END $$;

-- Renews the leases that a worker still holds. An expired lease that no worker took over becomes valid again, but the time
-- limit of the job is never extended. A job that is just being written is skipped, so that others do not wait for it.
CREATE OR REPLACE FUNCTION renew_leases(worker uuid, held uuid[], tokens bigint[], lease interval) RETURNS SETOF uuid LANGUAGE sql AS $$
    WITH valid AS (
        SELECT jobs.id, t.at FROM jobs, unnest(held, tokens) AS h (id, token), (SELECT engine_now() AS at) AS t
        WHERE jobs.id = h.id AND jobs.lease_token = h.token AND jobs.status = 'processing' AND jobs.deadline_at > t.at
        FOR NO KEY UPDATE OF jobs SKIP LOCKED
    )
    UPDATE jobs SET lease_expires_at = valid.at + lease FROM valid WHERE jobs.id = valid.id RETURNING jobs.id
$$;

-- Stores the output of a stage, so that it never runs again, and resets the failure count.
CREATE OR REPLACE FUNCTION finish_stage(job uuid, token bigint, finished text, of_part text, made jsonb, took interval)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    held jobs;
BEGIN
    UPDATE jobs SET event_xid = greatest(jobs.event_xid, pg_current_xact_id()),
                    stage = finished, failures = 0, waits = 0, waiting_since = NULL, alone = false, taken_from = '{}',
                    progressed_at = at,
                    done = CASE WHEN of_part = '' THEN done ELSE done + 1 END,
                    deadline_at = CASE WHEN k.limit_renewed_by_stage THEN at + k.time_limit ELSE deadline_at END
    FROM job_kinds k
    WHERE jobs.id = job AND lease_token = token AND status = 'processing' AND k.name = jobs.kind
    RETURNING jobs.* INTO held;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO job_stages (job_id, stage, part, output, attempt, started_at, finished_at)
    VALUES (job, finished, of_part, made, held.attempt, at - took, at);
    INSERT INTO events (xid, process_id, kind, owner_id, document_id, detail)
    VALUES (held.event_xid, job, 'stage', held.owner_id, held.document_id, jsonb_strip_nulls(jsonb_build_object(
        'stage', finished, 'part', nullif(of_part, ''), 'attempt', held.attempt,
        'seconds', round(extract(epoch FROM took)::numeric, 3))));
    RETURN true;
END $$;

-- Requeues a job that is not running. Its old error remains in the events. With `from_stage`, that stage and all later ones run
-- again.
CREATE OR REPLACE FUNCTION requeue_job(job uuid, from_stage text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    held jobs;
BEGIN
    SELECT * INTO held FROM jobs WHERE id = job FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF held.status NOT IN ('paused', 'failed', 'dead_letter', 'cancelled') THEN
        PERFORM refuse_step(job, held.status, 'queued');
    END IF;
    IF from_stage = '' THEN
        DELETE FROM job_stages WHERE job_id = job;
    ELSIF from_stage IS NOT NULL THEN
        DELETE FROM job_stages WHERE job_id = job AND finished_at >= (
            SELECT min(finished_at) FROM job_stages WHERE job_id = job AND stage = from_stage);
        IF NOT FOUND THEN
            RAISE EXCEPTION 'job % has no finished stage %', job, from_stage USING ERRCODE = 'no_data_found';
        END IF;
    END IF;
    UPDATE jobs SET event_xid = greatest(event_xid, pg_current_xact_id()),
                    status = 'queued', queued_at = at, failures = 0, waits = 0, waiting_since = NULL, run_after = NULL,
                    alone = (held.error_code IS NOT DISTINCT FROM 'CRASHED'), taken_from = '{}', admitted = (cap_key IS NULL),
                    virtual_time = next_virtual_time(owner_id, priority), lease_token = lease_token + 1,
                    stage = (SELECT s.stage FROM job_stages s WHERE s.job_id = job ORDER BY s.finished_at DESC LIMIT 1),
                    done = CASE WHEN from_stage IS NULL THEN done ELSE 0 END,
                    error_code = NULL, error_message = NULL, failed_at = NULL,
                    note = jsonb_strip_nulls(jsonb_build_object('reason', 'asked', 'from_stage', from_stage, 'error_before',
                        CASE WHEN held.error_code IS NOT NULL THEN held.error_code END))
    WHERE id = job;
    IF held.cap_key IS NOT NULL THEN
        PERFORM admit_waiting(ARRAY[held.cap_key]);
    END IF;
    NOTIFY octavo_jobs;
    RETURN true;
END $$;
