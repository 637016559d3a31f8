-- Two lanes in the queue: interactive, and bulk for imports, which an owner can pause.

-- squawk-ignore ban-drop-constraint
ALTER TABLE jobs DROP CONSTRAINT jobs_priority_check;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE jobs ADD CONSTRAINT jobs_priority_check CHECK (priority BETWEEN 0 AND 19);
COMMENT ON COLUMN jobs.priority IS '0 to 9: the interactive lane. 10 to 19: the same priorities in the bulk lane, which imports use.';

-- Owners whose bulk lane is paused. Their waiting bulk jobs have no due time (run_after = infinity), so that claiming never reads them.
CREATE TABLE paused_imports (
    owner_id  uuid PRIMARY KEY REFERENCES owners ON DELETE CASCADE,
    paused_at timestamptz NOT NULL DEFAULT engine_now()
);

CREATE INDEX jobs_held ON jobs (owner_id) WHERE status = 'queued' AND run_after = 'infinity';

DO $$ BEGIN
    FOR priority IN 10..19 LOOP
        EXECUTE format('CREATE SEQUENCE virtual_clock_%s MINVALUE 0 START 0', priority);
    END LOOP;
END $$;

-- The lane of a job: interactive for work that somebody waits for, bulk for imports and other work on many documents. Interactive
-- jobs of all owners run before bulk jobs, except that a worker now and then takes a bulk job first (see `choose_jobs`).
CREATE FUNCTION lane_of(priority smallint) RETURNS text LANGUAGE sql IMMUTABLE
RETURN CASE WHEN priority < 10 THEN 'interactive' ELSE 'bulk' END;

-- Enqueues jobs in the caller's transaction. If a job with the same key exists, its id is returned instead (made = false). A job
-- without a lane gets the lane of the newest job of its document, so that all jobs of an imported document are bulk jobs.
CREATE OR REPLACE FUNCTION enqueue_jobs(wanted jsonb) RETURNS TABLE (id uuid, made boolean) LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    unknown text;
    capped text[];
    paused uuid[] := '{}';
BEGIN
    SELECT w.kind INTO unknown FROM jsonb_to_recordset(wanted) AS w (kind text)
    WHERE NOT EXISTS (SELECT FROM job_kinds WHERE name = w.kind) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is no job kind %', unknown USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'job_kinds';
    END IF;

    INSERT INTO caps (key, most)
    SELECT DISTINCT ON (coalesce(w.cap_key, 'kind:' || w.kind))
           coalesce(w.cap_key, 'kind:' || w.kind), coalesce(w.cap, k.cap)
    FROM jsonb_to_recordset(wanted) AS w (kind text, cap_key text, cap integer) JOIN job_kinds k ON k.name = w.kind
    WHERE coalesce(w.cap, k.cap) IS NOT NULL
    ORDER BY 1
    ON CONFLICT DO NOTHING;

    -- The lock lets `resume_imports` see these jobs. Owners are locked first, as a merge of owners does.
    IF EXISTS (SELECT FROM paused_imports) THEN
        PERFORM FROM owners o WHERE o.id IN (SELECT w.owner_id FROM jsonb_to_recordset(wanted) AS w (owner_id uuid))
        ORDER BY o.id FOR KEY SHARE;
        paused := ARRAY(SELECT p.owner_id FROM paused_imports p
                        WHERE p.owner_id IN (SELECT w.owner_id FROM jsonb_to_recordset(wanted) AS w (owner_id uuid))
                        ORDER BY p.owner_id FOR KEY SHARE);
    END IF;

    WITH lanes AS (
        SELECT d.document_id, newest.priority >= 10 AS is_bulk
        FROM (SELECT DISTINCT w.document_id FROM jsonb_to_recordset(wanted) AS w (document_id uuid, lane text)
              WHERE w.lane IS NULL AND w.document_id IS NOT NULL) AS d
        CROSS JOIN LATERAL (SELECT j.priority FROM jobs j WHERE j.document_id = d.document_id ORDER BY j.id DESC LIMIT 1) AS newest
    ), given AS (
        SELECT w.id, w.kind, w.owner_id, w.document_id, w.parent_id, w.key, w.max_attempts, w.cap_key, w.input, w.place,
               (coalesce(w.priority, 5) + CASE WHEN l.is_bulk OR w.lane = 'bulk' THEN 10 ELSE 0 END)::smallint AS priority,
               CASE WHEN (l.is_bulk OR w.lane = 'bulk') AND w.owner_id = ANY (paused) THEN timestamptz 'infinity'
                    WHEN w.delay_seconds > 0 THEN at + make_interval(secs => w.delay_seconds) END AS start_at,
               k.max_attempts AS kind_attempts,
               CASE WHEN w.cap_key IS NOT NULL THEN w.cap_key WHEN k.cap IS NOT NULL THEN 'kind:' || w.kind END AS slot_key
        FROM ROWS FROM (jsonb_to_recordset(wanted) AS (
            id uuid, kind text, owner_id uuid, document_id uuid, parent_id uuid, key text, priority smallint,
            max_attempts integer, delay_seconds double precision, cap_key text, cap integer, input jsonb, lane text))
        WITH ORDINALITY AS w (id, kind, owner_id, document_id, parent_id, key, priority, max_attempts, delay_seconds,
                              cap_key, cap, input, lane, place)
        JOIN job_kinds k ON k.name = w.kind
        LEFT JOIN lanes l ON w.lane IS NULL AND l.document_id = w.document_id
    ), placed AS (
        SELECT g.*, row_number() OVER (PARTITION BY g.owner_id, g.priority ORDER BY g.place) - 1 + base.virtual_time AS virtual_time
        FROM given g
        JOIN (SELECT d.owner_id, d.priority, next_virtual_time(d.owner_id, d.priority) AS virtual_time
              FROM (SELECT DISTINCT given.owner_id, given.priority FROM given) AS d) AS base
          ON base.owner_id = g.owner_id AND base.priority = g.priority
    ), inserted AS (
        INSERT INTO jobs (id, kind, owner_id, document_id, parent_id, key, priority, virtual_time, status, max_attempts,
                          run_after, admitted, cap_key, input, created_at, queued_at)
        SELECT p.id, p.kind, p.owner_id, p.document_id, p.parent_id, p.key, p.priority, p.virtual_time,
               'queued', coalesce(p.max_attempts, p.kind_attempts), p.start_at, p.slot_key IS NULL AND p.start_at IS NULL,
               p.slot_key, coalesce(p.input, '{}'), at, at
        FROM placed p ORDER BY p.place
        ON CONFLICT (owner_id, kind, key) WHERE key IS NOT NULL DO NOTHING
        RETURNING jobs.id, jobs.cap_key, jobs.run_after
    )
    SELECT array_agg(DISTINCT i.cap_key) FILTER (WHERE i.cap_key IS NOT NULL AND i.run_after IS NULL)
    INTO capped FROM inserted i;

    IF capped IS NOT NULL THEN
        PERFORM admit_waiting(capped);
    END IF;

    RETURN QUERY
    SELECT coalesce(same.id, twin.id), same.id IS NOT NULL
    FROM ROWS FROM (jsonb_to_recordset(wanted) AS (id uuid, kind text, owner_id uuid, key text))
        WITH ORDINALITY AS w (id, kind, owner_id, key, place)
    LEFT JOIN jobs same ON same.id = w.id
    LEFT JOIN jobs twin ON twin.owner_id = w.owner_id AND twin.kind = w.kind AND twin.key = w.key AND same.id IS NULL
    ORDER BY w.place;
END $$;

-- Pauses chosen bulk jobs whose owner paused imports after they were enqueued. Returns the ids of the other jobs. The lock lets
-- `resume_imports` see the paused jobs.
CREATE FUNCTION hold_paused_imports(candidates uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    paused uuid[] := ARRAY(
        SELECT p.owner_id FROM paused_imports p
        WHERE p.owner_id IN (SELECT owner_id FROM jobs WHERE id = ANY (candidates) AND priority >= 10)
        ORDER BY p.owner_id FOR KEY SHARE);
    kept uuid[];
    returned text[];
BEGIN
    IF cardinality(paused) = 0 THEN
        RETURN candidates;
    END IF;
    WITH held AS (
        UPDATE jobs SET run_after = 'infinity', admitted = false
        WHERE id = ANY (candidates) AND priority >= 10 AND owner_id = ANY (paused)
        RETURNING id, cap_key
    )
    SELECT ARRAY(SELECT one FROM unnest(candidates) AS one WHERE one NOT IN (SELECT id FROM held)),
           ARRAY(SELECT cap_key FROM held WHERE cap_key IS NOT NULL) INTO kept, returned;
    PERFORM return_slots(returned);
    RETURN kept;
END $$;

-- Locks the next jobs of the lane whose first priority is `lane`. The search begins at (mark_priority, mark_time): jobs of that
-- priority before this position were claimed some time ago. More urgent jobs come first, wherever the search begins.
CREATE FUNCTION next_in_lane(lane smallint, known text[], most integer, mark_priority smallint, mark_time bigint,
                             OUT chosen uuid[], OUT priorities smallint[], OUT times bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    IF mark_priority > lane THEN
        SELECT array_agg(n.id), array_agg(n.priority), array_agg(n.virtual_time) INTO chosen, priorities, times
        FROM (SELECT id, priority, virtual_time FROM jobs
              WHERE status = 'queued' AND admitted AND NOT alone AND priority >= lane AND priority < mark_priority
                AND kind = ANY (known)
              ORDER BY priority, virtual_time, id LIMIT most FOR UPDATE SKIP LOCKED) AS n;
    END IF;
    IF chosen IS NULL THEN
        SELECT array_agg(n.id), array_agg(n.priority), array_agg(n.virtual_time) INTO chosen, priorities, times
        FROM (SELECT id, priority, virtual_time FROM jobs
              WHERE status = 'queued' AND admitted AND NOT alone AND (priority, virtual_time) >= (mark_priority, mark_time)
                AND priority < lane + 10 AND kind = ANY (known)
              ORDER BY priority, virtual_time, id LIMIT most FOR UPDATE SKIP LOCKED) AS n;
    END IF;
END $$;

-- squawk-ignore ban-drop-function
DROP FUNCTION exchange_jobs(uuid, uuid[], bigint[], jsonb, text[], integer, interval, smallint, bigint);
-- squawk-ignore ban-drop-function
DROP FUNCTION choose_jobs(uuid, text[], integer, timestamptz, smallint, bigint);

-- Chooses and locks the next jobs for a worker, at most one for each free slot: interactive jobs first, then at most `bulk_most`
-- bulk jobs. If `bulk_first`, one bulk job is chosen before them, so that the bulk lane always advances. The marks are described
-- at `next_in_lane`.
CREATE FUNCTION choose_jobs(worker uuid, known text[], slots integer, bulk_most integer, bulk_first boolean, at timestamptz,
                            mark_priority smallint, mark_time bigint, bulk_mark_priority smallint, bulk_mark_time bigint)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    chosen uuid[];
    priorities smallint[];
    times bigint[];
    bulk_chosen uuid[];
    bulk_priorities smallint[];
    bulk_times bigint[];
    suspect uuid := next_suspect(worker, known);
    room integer := slots;
BEGIN
    IF bulk_first AND bulk_most > 0 THEN
        SELECT b.chosen, b.priorities, b.times INTO bulk_chosen, bulk_priorities, bulk_times
        FROM next_in_lane(10::smallint, known, 1, bulk_mark_priority, bulk_mark_time) AS b;
        room := room - coalesce(cardinality(bulk_chosen), 0);
    END IF;
    IF room > 0 THEN
        SELECT i.chosen, i.priorities, i.times INTO chosen, priorities, times
        FROM next_in_lane(0::smallint, known, room, mark_priority, mark_time) AS i;
        room := room - coalesce(cardinality(chosen), 0);
    END IF;
    IF bulk_chosen IS NULL AND room > 0 AND bulk_most > 0 THEN
        SELECT b.chosen, b.priorities, b.times INTO bulk_chosen, bulk_priorities, bulk_times
        FROM next_in_lane(10::smallint, known, least(room, bulk_most), bulk_mark_priority, bulk_mark_time) AS b;
    END IF;
    IF bulk_chosen IS NOT NULL THEN
        chosen := chosen || bulk_chosen;
        priorities := priorities || bulk_priorities;
        times := times || bulk_times;
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
    IF EXISTS (SELECT FROM paused_imports) THEN
        chosen := hold_paused_imports(chosen);
    END IF;
    IF EXISTS (SELECT FROM start_rates) THEN
        chosen := hold_to_rate(chosen, at);
    END IF;
    RETURN chosen;
END $$;


-- One exchange between a worker and the queue: completes its finished jobs and claims the next ones. It uses one transaction
-- and one UPDATE, because a statement costs far more than a row.
CREATE FUNCTION exchange_jobs(worker uuid, held uuid[], tokens bigint[], outputs jsonb, known text[], slots integer,
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
    -- Lock order: held jobs, claimed jobs, caps. SKIP LOCKED still waits for a row that was updated and locked again at the
    -- same moment, and the transaction that has it may wait for a cap. A transaction that holds a cap never waits for a
    -- running job.
    IF cardinality(held) > 0 THEN
        SELECT array_agg(mine.cap_key) INTO returned FROM (
            SELECT cap_key FROM jobs JOIN unnest(held, tokens) AS h (job, token) ON jobs.id = h.job
            WHERE lease_token = h.token AND status = 'processing' AND cap_key IS NOT NULL FOR UPDATE OF jobs) AS mine;
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

-- Stores the output of a stage, so that it never runs again, and resets the failure count. The count of a stage ends with it.
CREATE OR REPLACE FUNCTION finish_stage(job uuid, token bigint, finished text, of_part text, made jsonb, took interval)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    held jobs;
BEGIN
    UPDATE jobs SET stage = finished, failures = 0, waits = 0, waiting_since = NULL, alone = false, taken_from = '{}',
                    progressed_at = at,
                    done = CASE WHEN of_part = '' THEN 0 ELSE done + 1 END, total = CASE WHEN of_part <> '' THEN total END,
                    unit = CASE WHEN of_part <> '' THEN unit END,
                    deadline_at = CASE WHEN k.limit_renewed_by_stage THEN at + k.time_limit ELSE deadline_at END
    FROM job_kinds k
    WHERE jobs.id = job AND lease_token = token AND status = 'processing' AND k.name = jobs.kind
    RETURNING jobs.* INTO held;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO job_stages (job_id, stage, part, output, attempt, started_at, finished_at)
    VALUES (job, finished, of_part, made, held.attempt, at - took, at);
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    VALUES (job, 'stage', held.owner_id, held.document_id, jsonb_strip_nulls(jsonb_build_object(
        'stage', finished, 'part', nullif(of_part, ''), 'attempt', held.attempt,
        'seconds', round(extract(epoch FROM took)::numeric, 3))));
    RETURN true;
END $$;

-- Stores the progress of a job, which renews its time limit like a finished stage. The count never goes back within a stage.
-- Writes an event when the unit, total or stage changes, at the end, and otherwise at most every two seconds, because events are
-- never deleted.
CREATE OR REPLACE FUNCTION report_progress(job uuid, token bigint, now_done integer, of_total integer, counted text, doing text)
RETURNS boolean LANGUAGE sql AS $$
    WITH before AS (
        SELECT id, progressed_at, total, unit, stage, t.at,
               CASE WHEN k.limit_renewed_by_stage THEN t.at + k.time_limit ELSE deadline_at END AS deadline_at
        FROM jobs JOIN job_kinds k ON k.name = jobs.kind, (SELECT engine_now() AS at) AS t
        WHERE id = job AND lease_token = token AND status = 'processing'
        FOR UPDATE OF jobs
    ), held AS (
        UPDATE jobs SET done = CASE WHEN (coalesce(doing, before.stage), before.total, before.unit)
                                         IS DISTINCT FROM (before.stage, of_total, counted) THEN now_done
                                    ELSE greatest(jobs.done, now_done) END,
                        total = of_total, unit = counted, stage = coalesce(doing, jobs.stage),
                        progressed_at = before.at, deadline_at = before.deadline_at
        FROM before WHERE jobs.id = before.id
        RETURNING jobs.*
    ), told AS (
        INSERT INTO events (at, process_id, kind, owner_id, document_id, detail)
        SELECT before.at, held.id, 'progress', held.owner_id, held.document_id,
               jsonb_strip_nulls(jsonb_build_object('stage', held.stage, 'done', held.done, 'total', of_total, 'unit', counted))
        FROM held JOIN before USING (id)
        WHERE now_done = of_total OR before.progressed_at IS NULL
           OR (before.total, before.unit, before.stage) IS DISTINCT FROM (held.total, held.unit, held.stage)
           OR floor(extract(epoch FROM before.progressed_at) / 2) < floor(extract(epoch FROM before.at) / 2)
    )
    SELECT EXISTS (SELECT FROM held)
$$;

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
    UPDATE jobs SET status = 'queued', queued_at = at, failures = 0, waits = 0, waiting_since = NULL, run_after = NULL,
                    alone = (held.error_code IS NOT DISTINCT FROM 'CRASHED'), taken_from = '{}', admitted = (cap_key IS NULL),
                    virtual_time = next_virtual_time(owner_id, priority), lease_token = lease_token + 1,
                    stage = (SELECT s.stage FROM job_stages s WHERE s.job_id = job ORDER BY s.finished_at DESC LIMIT 1),
                    done = CASE WHEN from_stage IS NULL THEN done ELSE 0 END,
                    total = CASE WHEN from_stage IS NULL THEN total END, unit = CASE WHEN from_stage IS NULL THEN unit END,
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

-- Moves a job into the interactive lane of its owner; false if it is there already. The jobs that follow it use the same lane.
CREATE FUNCTION prioritise_job(job uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    held jobs;
    was_held boolean;
BEGIN
    SELECT * INTO held FROM jobs WHERE id = job FOR UPDATE;
    IF NOT FOUND OR held.priority < 10 THEN
        RETURN false;
    END IF;
    was_held := held.run_after IS NOT DISTINCT FROM 'infinity';
    UPDATE jobs SET priority = held.priority - 10, run_after = CASE WHEN NOT was_held THEN run_after END,
                    virtual_time = next_virtual_time(held.owner_id, (held.priority - 10)::smallint),
                    admitted = admitted OR was_held AND cap_key IS NULL
    WHERE id = job;
    INSERT INTO events (process_id, kind, owner_id, document_id) VALUES (job, 'prioritised', held.owner_id, held.document_id);
    IF was_held AND held.cap_key IS NOT NULL THEN
        PERFORM admit_waiting(ARRAY[held.cap_key]);
    END IF;
    NOTIFY octavo_jobs;
    RETURN true;
END $$;

-- Pauses the bulk lane of an owner; false if it is paused already. Running jobs continue, and `hold_paused_imports` pauses jobs that
-- another transaction is just enqueueing or claiming.
CREATE FUNCTION pause_imports(of_owner uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    returned text[];
BEGIN
    INSERT INTO paused_imports (owner_id) VALUES (of_owner) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO events (process_id, kind, owner_id) VALUES (of_owner, 'imports.paused', of_owner);
    WITH waiting AS (
        SELECT id, cap_key, admitted FROM jobs WHERE owner_id = of_owner AND status = 'queued' AND priority >= 10
        ORDER BY id FOR UPDATE SKIP LOCKED
    ), held AS (
        UPDATE jobs SET run_after = 'infinity', admitted = false FROM waiting WHERE jobs.id = waiting.id
        RETURNING CASE WHEN waiting.admitted THEN waiting.cap_key END AS slot
    )
    SELECT array_agg(slot) FILTER (WHERE slot IS NOT NULL) INTO returned FROM held;
    PERFORM return_slots(coalesce(returned, '{}'));
    RETURN true;
END $$;

-- Resumes the bulk lane of an owner; false if it is not paused. The deletion waits for transactions that are just pausing a job.
CREATE FUNCTION resume_imports(of_owner uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    capped text[];
BEGIN
    DELETE FROM paused_imports WHERE owner_id = of_owner;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO events (process_id, kind, owner_id) VALUES (of_owner, 'imports.resumed', of_owner);
    WITH freed AS (
        UPDATE jobs SET run_after = NULL, admitted = (cap_key IS NULL),
                        virtual_time = greatest(virtual_time, virtual_clock(priority))
        WHERE owner_id = of_owner AND status = 'queued' AND run_after = 'infinity'
        RETURNING cap_key
    )
    SELECT array_agg(DISTINCT cap_key) FILTER (WHERE cap_key IS NOT NULL) INTO capped FROM freed;
    IF capped IS NOT NULL THEN
        PERFORM admit_waiting(capped);
    END IF;
    NOTIFY octavo_jobs;
    RETURN true;
END $$;

-- Why each unfinished job is not running. If there are several reasons, the one that must be resolved first is shown.
CREATE OR REPLACE VIEW job_waiting AS
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
