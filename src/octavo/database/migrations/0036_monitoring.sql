-- Metrics that all processes count together, and the traces of jobs.

-- Metrics that all processes count together. Each process adds its counts every few seconds. The table is unlogged: after a crash of the
-- server, the counts begin again at zero, as monitoring systems expect of counters.
CREATE UNLOGGED TABLE metric_totals (
    name   text NOT NULL,
    labels jsonb NOT NULL DEFAULT '{}',
    value  double precision NOT NULL,
    PRIMARY KEY (name, labels)
);

CREATE FUNCTION add_to_metric(metric text, of_labels jsonb, amount double precision) RETURNS void LANGUAGE sql AS $$
    INSERT INTO metric_totals (name, labels, value) VALUES (metric, of_labels, amount)
    ON CONFLICT (name, labels) DO UPDATE SET value = metric_totals.value + excluded.value
$$;

-- The trace that each job belongs to, if traces are recorded.
CREATE TABLE job_traces (
    job_id  uuid PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    context text NOT NULL
);

COMMENT ON COLUMN job_traces.context IS 'The trace and the parent span, in the format of the header traceparent (W3C).';

-- Stores the trace of each new job whose description names one.
CREATE FUNCTION record_traces(wanted jsonb) RETURNS void LANGUAGE sql AS $$
    INSERT INTO job_traces (job_id, context)
    SELECT w.id, w.trace FROM jsonb_to_recordset(wanted) AS w (id uuid, trace text) JOIN jobs USING (id)
    WHERE w.trace IS NOT NULL ON CONFLICT DO NOTHING
$$;

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

CREATE OR REPLACE FUNCTION take_over_jobs(taken uuid[], at timestamptz, because text, suspicious boolean) RETURNS integer
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
