-- Events and finished jobs that were moved to compressed files in the storage.

CREATE TABLE archives (
    name       text PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('events', 'jobs')),
    key        text NOT NULL UNIQUE REFERENCES objects,
    rows       bigint NOT NULL CHECK (rows > 0),
    last_epoch bigint,
    last_id    bigint,
    made_at    timestamptz NOT NULL DEFAULT engine_now(),
    CONSTRAINT events_have_a_position CHECK ((kind = 'events') = (last_id IS NOT NULL) AND (last_id IS NULL) = (last_epoch IS NULL))
);

COMMENT ON COLUMN archives.last_id IS 'The last event in the file. Cursors before it are no longer valid.';

CREATE TRIGGER archives_refer AFTER INSERT OR DELETE ON archives
    FOR EACH ROW EXECUTE FUNCTION count_references();
