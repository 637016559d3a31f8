-- A transaction that deletes documents and a worker could wait for each other: the worker locked jobs that it claimed before those
-- that it completed, and waited for jobs while it held a cap.

-- Gives the free slots of a locked cap to the next jobs. A transaction that holds a cap never waits for a job, because the transaction
-- that has locked the job may wait for the cap. Jobs that are locked just now are admitted later, by `admit_skipped`.
CREATE FUNCTION admit_to(cap caps) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    admitted_now integer;
BEGIN
    IF cap.taken >= cap.most THEN
        RETURN;
    END IF;
    WITH next AS (
        SELECT id FROM jobs
        WHERE cap_key = cap.key AND status = 'queued' AND NOT admitted AND run_after IS NULL
        ORDER BY priority, virtual_time, id LIMIT cap.most - cap.taken FOR UPDATE SKIP LOCKED
    )
    UPDATE jobs SET admitted = true, virtual_time = greatest(virtual_time, virtual_clock(priority))
    FROM next WHERE jobs.id = next.id;
    GET DIAGNOSTICS admitted_now = ROW_COUNT;
    IF admitted_now > 0 THEN
        UPDATE caps SET taken = taken + admitted_now WHERE key = cap.key;
    END IF;
END $$;

-- Gives the free slots of these caps to the next jobs. The row lock of the cap makes this safe for any number of workers.
CREATE OR REPLACE FUNCTION admit_waiting(keys text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    cap caps;
BEGIN
    FOR cap IN SELECT * FROM caps WHERE key = ANY (keys) ORDER BY key FOR NO KEY UPDATE LOOP
        PERFORM admit_to(cap);
    END LOOP;
END $$;

-- Admits jobs that were locked when a slot became free. Caps that are locked just now are left to the next call.
CREATE FUNCTION admit_skipped() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    cap caps;
BEGIN
    FOR cap IN
        SELECT * FROM caps WHERE taken < most AND EXISTS (
            SELECT FROM jobs WHERE cap_key = caps.key AND status = 'queued' AND NOT admitted AND run_after IS NULL)
        FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        PERFORM admit_to(cap);
    END LOOP;
END $$;

-- Makes all changes that are due at this time. Workers call it a few times a second, so that claiming need not check the time.
-- `taking_over` is false for a short time after an outage, so that live workers can renew their leases first.
CREATE OR REPLACE FUNCTION pass_time(taking_over boolean) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    taken integer := 0;
    promoted integer;
BEGIN
    IF taking_over THEN
        taken := take_over_expired(at, 500);
    END IF;
    promoted := promote_due(at, 1000);
    PERFORM admit_skipped();
    RETURN taken + promoted;
END $$;

-- One exchange between a worker and the queue: completes its finished jobs and claims the next ones. It uses one transaction
-- and one UPDATE, because a statement costs far more than a row.
CREATE OR REPLACE FUNCTION exchange_jobs(worker uuid, held uuid[], tokens bigint[], outputs jsonb, known text[], slots integer,
                              bulk_most integer, bulk_first boolean, lease interval, mark_priority smallint, mark_time bigint,
                              bulk_mark_priority smallint, bulk_mark_time bigint)
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
    -- Lock order: held jobs by their ids, claimed jobs, caps. A transaction that deletes documents locks many jobs by their ids, so
    -- this one must not wait for a held job when it has locked others. SKIP LOCKED still waits for a row that was updated and
    -- locked again at the same moment, and the transaction that has it may wait for a cap.
    IF cardinality(held) > 0 THEN
        SELECT array_agg(mine.cap_key) FILTER (WHERE mine.cap_key IS NOT NULL) INTO returned FROM (
            SELECT cap_key FROM jobs JOIN unnest(held, tokens) AS h (job, token) ON jobs.id = h.job
            WHERE lease_token = h.token AND status = 'processing' ORDER BY jobs.id FOR UPDATE OF jobs) AS mine;
    END IF;
    IF slots > 0 THEN
        chosen := choose_jobs(worker, known, slots, bulk_most, bulk_first, at, mark_priority, mark_time, bulk_mark_priority,
                              bulk_mark_time);
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

-- Returns the jobs of a stopping worker to the queue. No failure is counted, and finished stages are kept.
CREATE OR REPLACE FUNCTION hand_back_jobs(held uuid[], tokens bigint[], because text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    number integer;
BEGIN
    WITH locked AS MATERIALIZED (
        SELECT jobs.id FROM jobs JOIN unnest(held, tokens) AS h (id, token) ON jobs.id = h.id
        WHERE jobs.lease_token = h.token AND jobs.status = 'processing' ORDER BY jobs.id FOR UPDATE OF jobs
    )
    UPDATE jobs SET status = 'queued', queued_at = engine_now(), lease_token = lease_token + 1,
                    leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
                    virtual_time = greatest(virtual_time, virtual_clock(priority)),
                    note = jsonb_build_object('reason', because)
    FROM locked WHERE jobs.id = locked.id;
    GET DIAGNOSTICS number = ROW_COUNT;
    IF number > 0 THEN
        NOTIFY octavo_jobs;
    END IF;
    RETURN number;
END $$;
