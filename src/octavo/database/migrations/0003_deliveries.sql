-- Refused uploads can be listed.
CREATE INDEX uploads_listed ON uploads (owner_id, state, created_at, id);

-- Recipients of persons, and recipients that fail.
ALTER TABLE subscribers ADD COLUMN failing_since timestamptz, ADD COLUMN warned_at timestamptz;
-- squawk-ignore adding-foreign-key-constraint
ALTER TABLE subscribers ADD COLUMN user_id uuid REFERENCES users ON DELETE CASCADE;

COMMENT ON COLUMN subscribers.failing_since IS 'The first failed delivery after the last successful one.';
COMMENT ON COLUMN subscribers.warned_at IS 'When its owner was notified that it is failing.';
COMMENT ON COLUMN subscribers.user_id IS 'Of a person: gets mail only about the processes that this person requested.';

CREATE UNIQUE INDEX subscribers_person ON subscribers (owner_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX subscribers_user ON subscribers (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE requesters (
    process_id uuid PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE
);

CREATE INDEX requesters_user ON requesters (user_id);

CREATE FUNCTION is_for_person(recipient subscribers, process uuid, event text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM requesters r JOIN memberships m ON m.user_id = r.user_id
                   WHERE r.process_id = process AND r.user_id = recipient.user_id AND m.owner_id = recipient.owner_id)
       AND NOT EXISTS (SELECT FROM subscribers o
                       WHERE o.owner_id = recipient.owner_id AND o.user_id IS NULL AND o.active AND o.channel = 'mail'
                         AND lower(o.address) = lower(recipient.address) AND event = ANY (o.events))
$$;

-- Notifications with a reason, also of conversions.
ALTER TABLE notifications ADD COLUMN reason text;

COMMENT ON COLUMN notifications.reason IS 'Why it failed, or why it needs review.';

CREATE OR REPLACE FUNCTION event_type(job_kind text, event_kind text, state_after text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN job_kind IN ('deliver', 'housekeeping') THEN NULL
        WHEN split_part(event_kind, '.', 1) IN ('analysis', 'conversion', 'webhook') AND strpos(event_kind, '.') > 0
            THEN event_kind
        WHEN job_kind = 'convert' AND event_kind IN ('downloaded', 'expired') THEN 'conversion.' || event_kind
        WHEN event_kind = 'dead_letter' THEN 'job.dead_letter'
        WHEN job_kind IN ('analyse_document', 'answer_segment', 'consolidate_answers', 'recover_analyses') THEN NULL
        ELSE CASE coalesce(job_kind, 'process_document') WHEN 'process_document' THEN 'document.' ELSE 'job.' END
             || CASE WHEN state_after = 'complete' THEN 'completed' ELSE event_kind END
    END
$$;

CREATE OR REPLACE FUNCTION relay_events(most integer, news text[], errors text[], OUT events_read integer, OUT due jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    seen relay;
    last_xid xid8;
    last_id bigint;
    new_subscribers uuid[];
    new_processes uuid[];
    freed_subscribers uuid[];
    freed_processes uuid[];
BEGIN
    events_read := 0;
    due := '[]';
    SELECT * INTO seen FROM relay FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    WITH found AS MATERIALIZED (
        SELECT e.xid, e.id, e.at, e.process_id, e.kind, e.state_after, e.owner_id, e.document_id, e.detail
        FROM events e
        WHERE (e.xid, e.id) > (seen.xid, seen.id) AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY e.xid, e.id LIMIT most
    ), named AS MATERIALIZED (
        -- The owner of a job may have changed since: a visitor who signed in.
        SELECT f.*, event_type(j.kind, f.kind, f.state_after) AS type, coalesce(j.owner_id, f.owner_id) AS whose,
               -- A conversion has its own event for its failure.
               coalesce(j.kind = 'convert' AND f.kind IN ('failed', 'dead_letter'), false) AS twice
        FROM found f LEFT JOIN jobs j ON j.id = f.process_id
    ), told AS (
        INSERT INTO notifications (id, owner_id, event_id, process_id, document_id, type, level, title, error_code, reason,
                                   created_at)
        SELECT gen_random_uuid(), o.id, n.id, n.process_id, d.id, n.type,
               CASE WHEN n.type = ANY (errors) THEN 'error' ELSE 'news' END,
               coalesce(c.filename, d.title, d.filename, CASE s.channel WHEN 'slack' THEN 'Slack' ELSE s.address END),
               n.detail #>> '{error,code}', coalesce(n.detail #>> '{error,message}', n.detail ->> 'reason'), n.at
        FROM named n JOIN owners o ON o.id = n.whose LEFT JOIN documents d ON d.id = n.document_id
        LEFT JOIN conversions c ON c.id = n.process_id LEFT JOIN subscribers s ON s.id = n.process_id
        WHERE n.type = ANY (news || errors) AND NOT n.twice
    ), put AS (
        INSERT INTO outgoing (subscriber_id, event_id, process_id, type)
        SELECT subscriber, id, process_id, type FROM (
            SELECT s.id AS subscriber, n.* FROM named n JOIN subscribers s ON s.owner_id = n.whose AND NOT s.everybodys
            WHERE s.active AND n.type = ANY (s.events) AND n.at >= s.created_at
              AND (s.user_id IS NULL OR is_for_person(s, n.process_id, n.type))
              AND NOT (n.twice AND 'conversion.failed' = ANY (s.events))
            UNION ALL
            SELECT s.id, n.* FROM named n CROSS JOIN subscribers s
            WHERE s.everybodys AND s.active AND n.type = ANY (s.events) AND n.at >= s.created_at
              AND NOT (n.twice AND 'conversion.failed' = ANY (s.events))) AS wanted
        ORDER BY xid, id
        RETURNING subscriber_id, process_id
    )
    SELECT (SELECT count(*) FROM found), lines.subscribers, lines.processes, l.xid, l.id
    INTO events_read, new_subscribers, new_processes, last_xid, last_id
    FROM (SELECT array_agg(subscriber_id) AS subscribers, array_agg(process_id) AS processes FROM put) AS lines
    LEFT JOIN LATERAL (SELECT xid, id FROM found ORDER BY xid DESC, id DESC LIMIT 1) AS l ON true;
    IF events_read > 0 THEN
        UPDATE relay SET xid = last_xid, id = last_id;
    END IF;
    -- ORDER BY makes the planner use the small index on `ended`, even before the table has statistics.
    WITH freed AS (
        DELETE FROM outgoing WHERE place = ANY (ARRAY(SELECT place FROM outgoing WHERE ended ORDER BY place LIMIT most))
        RETURNING subscriber_id, process_id
    )
    SELECT array_agg(subscriber_id), array_agg(process_id) INTO freed_subscribers, freed_processes FROM freed;
    IF new_subscribers IS NOT NULL OR freed_subscribers IS NOT NULL THEN
        due := take_due_deliveries(freed_subscribers || new_subscribers, freed_processes || new_processes);
    END IF;
END $$;

CREATE FUNCTION summarise_record(record jsonb, OUT found bigint, OUT unverified bigint, OUT lowest double precision,
                                 OUT missing bigint, OUT broken bigint) LANGUAGE sql IMMUTABLE AS $$
    SELECT count(*), count(*) FILTER (WHERE NOT (v ->> 4)::boolean AND (v ->> 2)::double precision < 1),
           min((v ->> 2)::double precision), jsonb_array_length(record -> 'missing'),
           (SELECT count(*) FROM jsonb_array_elements(record -> 'checks') k WHERE k -> 1 = 'false')
    FROM jsonb_array_elements(record -> 'values') v
$$;

CREATE FUNCTION review_reason(record jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN s.unverified > 0 THEN format('%s of %s values unverified', s.unverified, s.found)
                WHEN s.missing > 0 THEN format('%s required value%s missing', s.missing, CASE s.missing WHEN 1 THEN '' ELSE 's' END)
                WHEN s.broken > 0 THEN format('%s check%s failed', s.broken, CASE s.broken WHEN 1 THEN '' ELSE 's' END) END
    FROM summarise_record(record) s
$$;

CREATE FUNCTION conversion_ends() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    reason text;
BEGIN
    IF NEW.status = 'complete' THEN
        SELECT review_reason(r.record) INTO reason
        FROM conversions c JOIN revisions r ON r.conversion_id = c.id AND r.number = c.revision WHERE c.id = NEW.id;
    END IF;
    INSERT INTO events (xid, process_id, kind, owner_id, document_id, detail)
    VALUES (greatest(NEW.event_xid, pg_current_xact_id()), NEW.id,
            CASE WHEN NEW.status <> 'complete' THEN 'conversion.failed'
                 WHEN reason IS NULL THEN 'conversion.completed' ELSE 'conversion.needs_review' END,
            NEW.owner_id, NEW.document_id, jsonb_strip_nulls(jsonb_build_object('reason', reason, 'error',
                CASE WHEN NEW.error_code IS NOT NULL
                     THEN jsonb_build_object('code', NEW.error_code, 'message', NEW.error_message) END)));
    RETURN NULL;
END $$;
CREATE TRIGGER conversion_ends AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind = 'convert' AND OLD.status <> NEW.status AND NEW.status IN ('complete', 'failed', 'dead_letter'))
    EXECUTE FUNCTION conversion_ends();

CREATE OR REPLACE FUNCTION refuse_conversion(new_id uuid, owner uuid, name text, mapping_name text, code text, message text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
BEGIN
    INSERT INTO jobs (id, kind, owner_id, virtual_time, status, max_attempts, admitted, input, error_code, error_message,
                      created_at, failed_at)
    SELECT new_id, k.name, owner, 0, 'failed', k.max_attempts, false, jsonb_build_object('mapping', mapping_name), code,
           message, at, at
    FROM job_kinds k WHERE k.name = 'convert';
    INSERT INTO conversions (id, owner_id, filename, mapping, live) VALUES (new_id, owner, name, mapping_name, false);
    INSERT INTO events (process_id, kind, owner_id, detail)
    VALUES (new_id, 'conversion.failed', owner,
            jsonb_build_object('error', jsonb_build_object('code', code, 'message', message)));
END $$;

-- Retention of visitors' documents and of collections.
ALTER TABLE owners ADD COLUMN left_at timestamptz;

COMMENT ON COLUMN owners.left_at IS 'When it was found that a visitor has no session left. Nobody can reach these documents any more.';

CREATE INDEX owners_left ON owners (left_at) WHERE left_at IS NOT NULL;

ALTER TABLE collections ADD COLUMN keep_days integer CHECK (keep_days > 0);

COMMENT ON COLUMN collections.keep_days IS 'Days after their last change until its documents go to the trash; NULL keeps them.';

CREATE INDEX collections_expire ON collections (id) WHERE keep_days IS NOT NULL;

-- Nothing read it.
-- squawk-ignore ban-drop-column
ALTER TABLE uploads DROP COLUMN received_at;

-- One table and one rule for all circuit breakers.
-- squawk-ignore ban-drop-function
DROP FUNCTION gateway_pause(text, interval);
-- squawk-ignore ban-drop-function
DROP FUNCTION gateway_answered(text, boolean);
-- squawk-ignore ban-drop-table
DROP TABLE gateway_circuits;

CREATE FUNCTION count_for_circuit(gate text, well boolean, most integer, at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF well THEN
        UPDATE ai_gates SET failures = 0, open_until = NULL, probe_until = NULL WHERE name = gate AND failures > 0;
        RETURN;
    END IF;
    INSERT INTO ai_gates (name) VALUES (gate) ON CONFLICT DO NOTHING;
    UPDATE ai_gates SET
        failures = failures + 1, probe_until = NULL,
        open_until = CASE WHEN failures + 1 >= most
            THEN at + make_interval(secs => least(600, 30 * 2 ^ least(failures + 1 - most, 10))) END
    WHERE name = gate AND coalesce(open_until <= at, true);
END $$;

CREATE OR REPLACE FUNCTION settle_call(call uuid, read integer, written integer, cost numeric, took double precision, answer jsonb)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    settled ai_calls;
BEGIN
    UPDATE ai_calls SET
        state = 'settled', tokens_in = read, tokens_out = written, cost_usd = cost, seconds = took, ended_at = at,
        response = CASE WHEN request_hash IS NOT NULL THEN answer END
    WHERE id = call AND state = 'reserved' RETURNING * INTO settled;
    IF settled.id IS NULL THEN
        UPDATE ai_calls SET tokens_in = read, tokens_out = written, cost_usd = cost, seconds = took, is_estimated = false
        WHERE id = call AND fault = 'abandoned';
        RETURN false;
    END IF;
    PERFORM count_for_circuit(settled.provider, true, NULL, at);
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION fail_call(call uuid, of_fault text, read integer, written integer, cost numeric, took double precision,
                          hurts boolean, hold double precision)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    most CONSTANT integer := 5;
    at timestamptz := engine_now();
    failed ai_calls;
BEGIN
    UPDATE ai_calls SET
        state = 'failed', fault = of_fault, tokens_in = read, tokens_out = written, seconds = took,
        cost_usd = coalesce(cost, estimate_usd), is_estimated = cost IS NULL, ended_at = coalesce(ended_at, at)
    WHERE id = call AND (state = 'reserved' OR fault = 'abandoned') RETURNING * INTO failed;
    IF hurts IS NOT NULL AND failed.provider IS NOT NULL THEN
        PERFORM count_for_circuit(failed.provider, NOT hurts, most, at);
    END IF;
    IF hold > 0 THEN
        INSERT INTO ai_gates (name, held_until)
        VALUES (failed.provider || ':' || failed.model, at + make_interval(secs => hold))
        ON CONFLICT (name) DO UPDATE SET held_until = greatest(ai_gates.held_until, excluded.held_until);
    END IF;
END $$;

CREATE FUNCTION gateway_pause(gate text, probe interval) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    seconds double precision;
BEGIN
    PERFORM FROM ai_gates WHERE name = gate FOR UPDATE;
    seconds := circuit_pause(gate, at);
    IF seconds = 0 THEN
        UPDATE ai_gates SET probe_until = at + probe WHERE name = gate AND open_until IS NOT NULL;
    END IF;
    RETURN seconds;
END $$;
