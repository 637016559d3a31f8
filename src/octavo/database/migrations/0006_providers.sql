-- Progress renews the time limit of a job.
CREATE OR REPLACE FUNCTION report_progress(job uuid, token bigint, now_done integer, of_total integer, counted text, doing text)
RETURNS boolean LANGUAGE sql AS $$
    WITH before AS (
        SELECT id, progressed_at, total, unit, stage, t.at,
               CASE WHEN k.limit_renewed_by_stage THEN t.at + k.time_limit ELSE deadline_at END AS deadline_at
        FROM jobs JOIN job_kinds k ON k.name = jobs.kind, (SELECT engine_now() AS at) AS t
        WHERE id = job AND lease_token = token AND status = 'processing'
        FOR UPDATE OF jobs
    ), held AS (
        UPDATE jobs SET done = now_done, total = of_total, unit = counted, stage = coalesce(doing, jobs.stage),
                        progressed_at = before.at, deadline_at = before.deadline_at,
                        event_xid = greatest(jobs.event_xid, pg_current_xact_id())
        FROM before WHERE jobs.id = before.id
        RETURNING jobs.*
    ), told AS (
        INSERT INTO events (xid, at, process_id, kind, owner_id, document_id, detail)
        SELECT held.event_xid, before.at, held.id, 'progress', held.owner_id, held.document_id,
               jsonb_strip_nulls(jsonb_build_object('stage', held.stage, 'done', now_done, 'total', of_total, 'unit', counted))
        FROM held JOIN before USING (id)
        WHERE now_done = of_total OR before.progressed_at IS NULL
           OR (before.total, before.unit, before.stage) IS DISTINCT FROM (held.total, held.unit, held.stage)
           OR floor(extract(epoch FROM before.progressed_at) / 2) < floor(extract(epoch FROM before.at) / 2)
    )
    SELECT EXISTS (SELECT FROM held)
$$;

-- Start rates allow what was not used in the last quarter of a second.
CREATE OR REPLACE FUNCTION hold_to_rate(candidates uuid[], at timestamptz) RETURNS uuid[] LANGUAGE plpgsql AS $$
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
