-- The functions of the job engine. Each is one atomic step that preserves all invariants.

-- How far the queue of each priority has advanced. These are sequences, because they are neither locked nor rolled back.
DO $$ BEGIN
    FOR priority IN 0..19 LOOP
        EXECUTE format('CREATE SEQUENCE virtual_clock_%s MINVALUE 0 START 0', priority);
    END LOOP;
END $$;

CREATE FUNCTION virtual_clock(priority smallint) RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT coalesce(pg_sequence_last_value(('virtual_clock_' || priority)::regclass), 0) $$;

-- The lane of a job: interactive for work that somebody waits for, bulk for imports and other work on many documents. Interactive
-- jobs of all owners run before bulk jobs, except that a worker now and then takes a bulk job first (see `choose_jobs`).
CREATE FUNCTION lane_of(priority smallint) RETURNS text LANGUAGE sql IMMUTABLE
RETURN CASE WHEN priority < 10 THEN 'interactive' ELSE 'bulk' END;

-- The position of an owner's next job: behind the owner's other jobs, and never before jobs that were already claimed.
CREATE FUNCTION next_virtual_time(owner uuid, wanted smallint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT greatest(virtual_clock(wanted),
        coalesce((SELECT max(virtual_time) FROM jobs
                  WHERE owner_id = owner AND status = 'queued' AND priority = wanted), 0)) + 1
$$;

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
CREATE FUNCTION admit_waiting(keys text[]) RETURNS void LANGUAGE plpgsql AS $$
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

-- Returns slots: each goes to the next job of its cap, or stays free.
CREATE FUNCTION return_slots(returned text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(returned) > 0 THEN
        PERFORM FROM caps WHERE key = ANY (returned) ORDER BY key FOR NO KEY UPDATE;
        UPDATE caps SET taken = taken - back.number
        FROM (SELECT key, count(*) AS number FROM unnest(returned) AS key GROUP BY key) AS back
        WHERE caps.key = back.key;
        PERFORM admit_waiting(returned);
    END IF;
END $$;

-- Sets how many jobs of a key can run at the same time. A lower limit takes effect as running jobs end.
CREATE FUNCTION set_cap(wanted_key text, wanted integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO caps (key, most) VALUES (wanted_key, wanted)
    ON CONFLICT (key) DO UPDATE SET most = excluded.most;
    PERFORM admit_waiting(ARRAY[wanted_key]);
    NOTIFY octavo_jobs;
END $$;

-- Enqueues jobs in the caller's transaction. If a job with the same key exists, its id is returned instead (made = false). A job
-- without a lane gets the lane of the newest job of its document, so that all jobs of an imported document are bulk jobs.
CREATE FUNCTION enqueue_jobs(wanted jsonb) RETURNS TABLE (id uuid, made boolean) LANGUAGE plpgsql AS $$
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
    IF wanted @? '$[*].trace' THEN
        PERFORM record_traces(wanted);
    END IF;

    RETURN QUERY
    SELECT coalesce(same.id, twin.id), same.id IS NOT NULL
    FROM ROWS FROM (jsonb_to_recordset(wanted) AS (id uuid, kind text, owner_id uuid, key text))
        WITH ORDINALITY AS w (id, kind, owner_id, key, place)
    LEFT JOIN jobs same ON same.id = w.id
    LEFT JOIN jobs twin ON twin.owner_id = w.owner_id AND twin.kind = w.kind AND twin.key = w.key AND same.id IS NULL
    ORDER BY w.place;
END $$;

-- Makes jobs claimable when their delay is over.
CREATE FUNCTION promote_due(at timestamptz, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    promoted integer;
    capped text[];
BEGIN
    WITH due AS (
        SELECT id FROM jobs WHERE status = 'queued' AND run_after <= at
        ORDER BY run_after LIMIT most FOR UPDATE SKIP LOCKED
    ), awake AS (
        UPDATE jobs SET run_after = NULL, admitted = (cap_key IS NULL),
                        virtual_time = greatest(virtual_time, virtual_clock(priority))
        FROM due WHERE jobs.id = due.id
        RETURNING jobs.cap_key
    )
    SELECT count(*), array_agg(DISTINCT cap_key) FILTER (WHERE cap_key IS NOT NULL) INTO promoted, capped FROM awake;
    IF capped IS NOT NULL THEN
        PERFORM admit_waiting(capped);
    END IF;
    RETURN promoted;
END $$;

-- How many workers in a row may end or stop responding while they run a job, before the job is suspected, and before it fails
-- for good.
CREATE FUNCTION takeovers_to_suspect() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 2';
CREATE FUNCTION takeovers_to_give_up() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 10';

-- Requeues jobs whose worker ended or stopped responding. This is not a failure of the job, because most workers that end are
-- killed from outside. If that is not certain (`suspicious`), the worker is recorded in `taken_from`. A job with two such
-- workers since its last finished stage is suspected: it waits a little longer each time, and a worker runs one such job at a
-- time. So suspected jobs never end each other's workers, and only the job that is the cause reaches the limit and fails for good.
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
    PERFORM add_to_metric('octavo_job_takeovers_total', jsonb_build_object('reason', because), number);
    RETURN number;
END $$;

-- Requeues jobs whose lease expired.
CREATE FUNCTION take_over_expired(at timestamptz, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    expired uuid[];
BEGIN
    SELECT array_agg(id) INTO expired FROM (
        SELECT id FROM jobs WHERE status = 'processing' AND lease_expires_at <= at
        ORDER BY lease_expires_at LIMIT most FOR UPDATE SKIP LOCKED) AS late;
    RETURN CASE WHEN expired IS NULL THEN 0 ELSE take_over_jobs(expired, at, 'lease_expired', true) END;
END $$;

-- Jobs that were taken from these workers are no longer suspected because of them, and a job that failed for good for this
-- reason is queued again.
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

-- Makes all changes that are due at this time. Workers call it a few times a second, so that claiming need not check the time.
-- `taking_over` is false for a short time after an outage, so that live workers can renew their leases first.
CREATE FUNCTION pass_time(taking_over boolean) RETURNS integer LANGUAGE plpgsql AS $$
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

-- Postpones jobs that would exceed the start rate of their kind. Returns the ids of jobs that can start now. At a fast rate, starts
-- of the last quarter of a second that were not used can still be used, because postponed jobs become ready only so often.
CREATE FUNCTION hold_to_rate(candidates uuid[], at timestamptz) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    rate record;
    candidate record;
    start_at timestamptz;
    held_until timestamptz;
    kept uuid[] := candidates;
    returned text[] := '{}';
BEGIN
    FOR rate IN
        SELECT r.kind, r.next_at, make_interval(secs => 1 / k.starts_per_second) AS gap
        FROM start_rates r JOIN job_kinds k ON k.name = r.kind
        WHERE r.kind IN (SELECT kind FROM jobs WHERE id = ANY (candidates))
        ORDER BY r.kind FOR UPDATE OF r
    LOOP
        start_at := greatest(rate.next_at, CASE WHEN rate.gap < interval '0.25 seconds' THEN at - interval '0.25 seconds' ELSE at END);
        held_until := greatest(start_at, at);
        FOR candidate IN
            SELECT id, cap_key FROM jobs WHERE id = ANY (candidates) AND kind = rate.kind ORDER BY priority, virtual_time, id
        LOOP
            IF start_at <= at THEN
                start_at := start_at + rate.gap;
                held_until := greatest(start_at, at);
            ELSE
                kept := array_remove(kept, candidate.id);
                UPDATE jobs SET run_after = held_until, admitted = false WHERE id = candidate.id;
                returned := array_append(returned, candidate.cap_key);
                held_until := held_until + rate.gap;
            END IF;
        END LOOP;
        UPDATE start_rates SET next_at = start_at WHERE kind = rate.kind;
    END LOOP;
    PERFORM return_slots(array_remove(returned, NULL));
    RETURN kept;
END $$;

-- Advances the virtual clocks. Jobs that are enqueued later are placed after these times.
CREATE FUNCTION advance_clocks(priorities smallint[], times bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR place IN 1..cardinality(times) LOOP
        -- In the order of the queue, so the last one of a priority is the latest.
        CONTINUE WHEN place < cardinality(times) AND priorities[place + 1] = priorities[place];
        IF times[place] > virtual_clock(priorities[place]) THEN
            PERFORM setval(('virtual_clock_' || priorities[place])::regclass, times[place]);
        END IF;
    END LOOP;
END $$;

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

-- Pauses chosen bulk jobs whose owner paused imports after they were enqueued. Returns the ids of the other jobs. The lock lets
-- `resume_imports` see the paused jobs. An owner who is just resuming is not waited for: that transaction may itself wait for a job
-- that this one has locked.
CREATE FUNCTION hold_paused_imports(candidates uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    paused uuid[] := ARRAY(
        SELECT p.owner_id FROM paused_imports p
        WHERE p.owner_id IN (SELECT owner_id FROM jobs WHERE id = ANY (candidates) AND priority >= 10)
        ORDER BY p.owner_id FOR KEY SHARE SKIP LOCKED);
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

-- Renews the leases that a worker still holds. An expired lease that no worker took over becomes valid again, but the time
-- limit of the job is never extended. A job that is just being written is skipped, so that others do not wait for it.
CREATE FUNCTION renew_leases(worker uuid, held uuid[], tokens bigint[], lease interval) RETURNS SETOF uuid LANGUAGE sql AS $$
    WITH valid AS (
        SELECT jobs.id, t.at FROM jobs, unnest(held, tokens) AS h (id, token), (SELECT engine_now() AS at) AS t
        WHERE jobs.id = h.id AND jobs.lease_token = h.token AND jobs.status = 'processing' AND jobs.deadline_at > t.at
        FOR NO KEY UPDATE OF jobs SKIP LOCKED
    )
    UPDATE jobs SET lease_expires_at = valid.at + lease FROM valid WHERE jobs.id = valid.id RETURNING jobs.id
$$;

-- The given leases that are no longer valid: the job was cancelled, taken over, or exceeded its time limit.
CREATE FUNCTION lost_leases(held uuid[], tokens bigint[]) RETURNS SETOF uuid LANGUAGE sql AS $$
    SELECT h.id FROM unnest(held, tokens) AS h (id, token)
    WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.id = h.id AND j.lease_token = h.token AND j.status = 'processing')
$$;

-- Locks a job for a write that requires its lease; false if the lease is no longer valid.
CREATE FUNCTION hold_lease(job uuid, token bigint) RETURNS boolean LANGUAGE sql AS $$
    SELECT EXISTS (SELECT FROM jobs WHERE id = job AND lease_token = token AND status = 'processing' FOR UPDATE)
$$;

-- Stores the output of a stage, so that it never runs again, and resets the failure count. The count of a stage ends with it.
CREATE FUNCTION finish_stage(job uuid, token bigint, finished text, of_part text, made jsonb, took interval)
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
CREATE FUNCTION report_progress(job uuid, token bigint, now_done integer, of_total integer, counted text, doing text)
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

-- Ends an attempt with an error. `first_delay` is NULL for errors that a retry would not solve. `charged`: whether the attempt
-- counts towards max_attempts. If not, the job waits until another service works again, for a day at most.
CREATE FUNCTION fail_job(job uuid, token bigint, code text, message text, first_delay double precision,
                         factor double precision, charged boolean, retry_after double precision)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    held jobs;
    used_up boolean;
    pause double precision;
    next_status text;
    error jsonb := jsonb_build_object('code', code, 'message', message);
BEGIN
    SELECT * INTO held FROM jobs WHERE id = job AND lease_token = token AND status = 'processing' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    used_up := CASE WHEN charged THEN held.failures + 1 >= held.max_attempts
                    ELSE at - coalesce(held.waiting_since, at) >= interval '24 hours' END;
    next_status := CASE WHEN first_delay IS NULL THEN 'failed' WHEN used_up THEN 'dead_letter' ELSE 'queued' END;
    -- A fifth of the pause is random, so that jobs that failed together do not return together.
    pause := greatest(
        least(900, first_delay * factor ^ (CASE WHEN charged THEN held.failures ELSE held.waits END)) * (0.9 + 0.2 * random()),
        coalesce(retry_after, 0));
    UPDATE jobs SET
        status = next_status,
        failures = failures + CASE WHEN charged OR first_delay IS NULL THEN 1 ELSE 0 END,
        waits = CASE WHEN charged THEN waits ELSE waits + 1 END,
        waiting_since = CASE WHEN charged THEN waiting_since ELSE coalesce(waiting_since, at) END,
        run_after = CASE WHEN next_status = 'queued' THEN at + make_interval(secs => pause) END,
        admitted = false, leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
        queued_at = CASE WHEN next_status = 'queued' THEN at ELSE queued_at END,
        failed_at = CASE WHEN next_status <> 'queued' THEN at END,
        error_code = CASE WHEN next_status <> 'queued' THEN code END,
        error_message = CASE WHEN next_status <> 'queued' THEN message END,
        note = jsonb_build_object('error', error)
    WHERE id = job;
    IF held.cap_key IS NOT NULL THEN
        PERFORM return_slots(ARRAY[held.cap_key]);
    END IF;
    RETURN next_status;
END $$;

-- Returns the jobs of a stopping worker to the queue. No failure is counted, and finished stages are kept.
CREATE FUNCTION hand_back_jobs(held uuid[], tokens bigint[], because text) RETURNS integer LANGUAGE plpgsql AS $$
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

-- Pauses a job without an error, until it is requeued.
CREATE FUNCTION pause_job(job uuid, token bigint, code text, message text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    held jobs;
BEGIN
    SELECT * INTO held FROM jobs WHERE id = job FOR UPDATE;
    IF NOT FOUND OR (token IS NOT NULL AND (held.lease_token <> token OR held.status <> 'processing')) THEN
        RETURN false;
    END IF;
    UPDATE jobs SET status = 'paused', lease_token = lease_token + 1, admitted = false, run_after = NULL,
                    leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
                    note = jsonb_build_object('error', jsonb_build_object('code', code, 'message', message))
    WHERE id = job;
    IF held.admitted AND held.cap_key IS NOT NULL THEN
        PERFORM return_slots(ARRAY[held.cap_key]);
    END IF;
    RETURN true;
END $$;

-- Requeues a job that is not running. Its old error remains in the events. With `from_stage`, that stage and all later ones run
-- again.
CREATE FUNCTION requeue_job(job uuid, from_stage text) RETURNS boolean LANGUAGE plpgsql AS $$
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

-- Cancels a job and all jobs that were started by it. The fencing token changes, so its worker can no longer write.
CREATE FUNCTION cancel_job(job uuid, event text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    number integer;
    returned text[];
    before text;
BEGIN
    SELECT status INTO before FROM jobs WHERE id = job FOR UPDATE;
    IF before IN ('complete', 'failed', 'cancelled') THEN
        PERFORM refuse_step(job, before, 'cancelled');
    END IF;
    WITH RECURSIVE family AS (
        SELECT id FROM jobs WHERE id = job
        UNION
        SELECT j.id FROM jobs j JOIN family f ON j.parent_id = f.id
    ), locked AS (
        SELECT jobs.id, jobs.admitted, jobs.cap_key FROM jobs JOIN family USING (id)
        WHERE jobs.id = job OR jobs.status NOT IN ('complete', 'failed', 'cancelled')
        ORDER BY jobs.id FOR UPDATE OF jobs
    ), stopped AS (
        UPDATE jobs SET status = 'cancelled', lease_token = lease_token + 1, admitted = false, run_after = NULL,
                        leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
                        error_code = NULL, error_message = NULL, failed_at = NULL,
                        note = jsonb_strip_nulls(jsonb_build_object('event', event,
                            'because', CASE WHEN jobs.id <> job THEN job END))
        FROM locked WHERE jobs.id = locked.id
        RETURNING CASE WHEN locked.admitted THEN locked.cap_key END AS slot
    )
    SELECT count(*), array_agg(slot) FILTER (WHERE slot IS NOT NULL) INTO number, returned FROM stopped;
    IF returned IS NOT NULL THEN
        PERFORM return_slots(returned);
    END IF;
    NOTIFY octavo_jobs;
    RETURN number;
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
    NOTIFY octavo_jobs;
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
