-- Events are ordered by (epoch, id) instead of (transaction, id): readers no longer wait for transactions that write no events, and
-- a database that was restored into another cluster goes on after its last event.

-- Later events of a job get greater ids, because they are written under the lock of its row, so its transaction is not needed any
-- more. The functions that kept it are replaced by the same functions without it.
DO $do$
DECLARE
    definition text;
BEGIN
    FOR definition IN SELECT pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosrc LIKE '%event_xid%'
    LOOP
        definition := regexp_replace(definition,
            'event_xid = greatest\((jobs\.)?event_xid, pg_current_xact_id\(\)\),\s*', '', 'g');
        definition := regexp_replace(definition,
            ',\s*event_xid = greatest\((jobs\.)?event_xid, pg_current_xact_id\(\)\)', '', 'g');
        definition := regexp_replace(definition,
            '(held\.event_xid|greatest\((n|NEW)\.event_xid, pg_current_xact_id\(\)\)), ', '', 'g');
        EXECUTE replace(definition, 'events (xid, ', 'events (');
    END LOOP;
END $do$;
-- squawk-ignore ban-drop-column
ALTER TABLE jobs DROP COLUMN event_xid;

-- Events that exist keep their transaction as epoch, so that their order and the cursors of readers stay the same.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX events_order, events_owner;
-- squawk-ignore ban-drop-default
ALTER TABLE events ALTER COLUMN xid DROP DEFAULT;
-- squawk-ignore changing-column-type
ALTER TABLE events ALTER COLUMN xid TYPE bigint USING xid::text::bigint;
-- squawk-ignore renaming-column
ALTER TABLE events RENAME COLUMN xid TO epoch;
ALTER TABLE events ALTER COLUMN epoch SET DEFAULT 1000000000000;
CREATE INDEX events_order ON events (epoch, id);
CREATE INDEX events_owner ON events (owner_id, epoch, id);
COMMENT ON COLUMN events.epoch IS 'The epoch in which the event was written (`event_epochs`). Readers follow (epoch, id) up to `event_horizon()`. Events from before there were epochs have the id of their transaction here, which is smaller.';

-- The order of events. Ids are assigned before transactions commit, so an event can become visible after one with a greater id.
-- A transaction therefore announces its first event: it takes a shared lock whose key is the id that was assigned last. No other
-- transaction matters to readers, however long it is open, in any database of the server.
CREATE FUNCTION announce_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('octavo.announced', true) IS DISTINCT FROM 'yes' THEN
        PERFORM pg_advisory_xact_lock_shared(event_lock_class(), (last_event_id() & 2147483647)::integer);
        PERFORM set_config('octavo.announced', 'yes', true);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER events_are_announced BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION announce_events();

CREATE FUNCTION event_lock_class() RETURNS integer LANGUAGE sql IMMUTABLE RETURN 209321986;

-- The id that was assigned last, whether or not its event is committed.
CREATE FUNCTION last_event_id() RETURNS bigint LANGUAGE sql VOLATILE RETURN coalesce(pg_sequence_last_value('events_id_seq'), 0);

-- All events up to this id are committed or will never be. The id is read before the locks, and the events must be read by a later
-- statement: a transaction without a lock has then committed, or will get greater ids. The key of a lock holds the lowest 31
-- bits of an id, which is completed from an id that was assigned later.
CREATE FUNCTION event_horizon() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    assigned bigint := last_event_id();
    announced bigint[] := ARRAY(
        SELECT objid::bigint FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = event_lock_class()
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()));
    later bigint := last_event_id();
BEGIN
    RETURN least(assigned, (SELECT min(later - ((later - lowest) & 2147483647)) FROM unnest(announced) AS lowest));
END $$;

-- A database that was restored into another cluster begins an epoch. Its events come after all earlier ones, and their ids were
-- never used, not even by events that the backup does not contain. A cursor of the epoch before that is not below `first_id` is of
-- such an event.
CREATE TABLE event_epochs (
    number     bigint PRIMARY KEY,
    cluster    text NOT NULL,
    first_id   bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT engine_now()
);

COMMENT ON COLUMN event_epochs.first_id IS 'All events of earlier epochs that exist have smaller ids.';
COMMENT ON COLUMN event_epochs.cluster IS 'The system identifier of the PostgreSQL cluster.';

CREATE FUNCTION this_cluster() RETURNS text LANGUAGE sql VOLATILE RETURN (SELECT system_identifier::text FROM pg_control_system());

-- Numbers of epochs are greater than any transaction id, so that cursors from before there were epochs are before all of them.
INSERT INTO event_epochs (number, cluster, first_id) SELECT 1000000000000, this_cluster(), last_event_id() + 1;

-- Begins an epoch if the database is in another cluster than before, or if it was restored.
CREATE FUNCTION begin_epoch(restored boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    before event_epochs;
    known bigint;
    skipped CONSTANT bigint := 1000000000;
BEGIN
    SELECT * INTO before FROM event_epochs ORDER BY number DESC LIMIT 1;
    IF before.cluster = this_cluster() AND NOT restored THEN
        RETURN false;
    END IF;
    known := coalesce((SELECT max(id) FROM events), 0);
    PERFORM setval('events_id_seq', (greatest(known, last_event_id()) / skipped + 1) * skipped);
    INSERT INTO event_epochs (number, cluster, first_id) VALUES (before.number + 1, this_cluster(), known + 1);
    EXECUTE format('ALTER TABLE events ALTER COLUMN epoch SET DEFAULT %s', before.number + 1);
    RETURN true;
END $$;

-- squawk-ignore changing-column-type
ALTER TABLE relay ALTER COLUMN xid TYPE bigint USING xid::text::bigint;
-- squawk-ignore renaming-column
ALTER TABLE relay RENAME COLUMN xid TO epoch;

-- Whether there is an event to relay, or a delivery that ended. It only reads two indexes and assigns no transaction id,
-- because even an idle installation calls it all the time.
CREATE OR REPLACE FUNCTION relay_has_work() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    position relay;
    horizon bigint := event_horizon();
BEGIN
    SELECT * INTO position FROM relay;
    PERFORM FROM events e
    WHERE (e.epoch, e.id) > (position.epoch, position.id) AND e.id <= horizon
    ORDER BY e.epoch, e.id LIMIT 1;
    IF FOUND THEN
        RETURN true;
    END IF;
    PERFORM FROM outgoing WHERE ended ORDER BY place LIMIT 1;
    RETURN FOUND;
END $$;

-- One step of the relay, in one transaction and by one relay at a time: reads the next events, writes the notifications of
-- owners, adds deliveries to the queues of recipients, and selects the deliveries that can start.
CREATE OR REPLACE FUNCTION relay_events(most integer, news text[], errors text[], OUT events_read integer, OUT due jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    seen relay;
    horizon bigint;
    last_epoch bigint;
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
    horizon := event_horizon();
    WITH found AS MATERIALIZED (
        SELECT e.epoch, e.id, e.at, e.process_id, e.kind, e.state_after, e.owner_id, e.document_id, e.detail
        FROM events e
        WHERE (e.epoch, e.id) > (seen.epoch, seen.id) AND e.id <= horizon
        ORDER BY e.epoch, e.id LIMIT most
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
        ORDER BY epoch, id
        RETURNING subscriber_id, process_id
    )
    SELECT (SELECT count(*) FROM found), lines.subscribers, lines.processes, l.epoch, l.id
    INTO events_read, new_subscribers, new_processes, last_epoch, last_id
    FROM (SELECT array_agg(subscriber_id) AS subscribers, array_agg(process_id) AS processes FROM put) AS lines
    LEFT JOIN LATERAL (SELECT epoch, id FROM found ORDER BY epoch DESC, id DESC LIMIT 1) AS l ON true;
    IF events_read > 0 THEN
        UPDATE relay SET epoch = last_epoch, id = last_id;
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

-- While a backup copies the objects that it saw, their rows are kept, and with them the objects: only the keys of deleted rows are
-- removed from the bucket. The backup, or the daily sweep, deletes rows without references later.
CREATE FUNCTION keep_during_backup() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN pg_try_advisory_xact_lock_shared(209321987, 0) THEN OLD END;
END $$;
CREATE TRIGGER objects_are_kept BEFORE DELETE ON objects FOR EACH ROW EXECUTE FUNCTION keep_during_backup();
