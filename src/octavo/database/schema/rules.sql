-- Rules that sort, send and expire documents, and the log of their runs.

CREATE TABLE rules (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    position   integer NOT NULL,
    conditions jsonb NOT NULL,
    actions    jsonb NOT NULL,
    enabled    boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN rules.position IS 'Rules run in this order. The first rule that sets a value wins.';
COMMENT ON COLUMN rules.enabled IS 'Whether it runs on each new document.';

CREATE UNIQUE INDEX rules_name ON rules (owner_id, lower(name));
CREATE INDEX rules_order ON rules (owner_id, position, id);

CREATE TABLE rule_runs (
    id         uuid PRIMARY KEY,
    rule_id    uuid NOT NULL REFERENCES rules ON DELETE CASCADE,
    automatic  boolean NOT NULL,
    documents  integer NOT NULL DEFAULT 0 CHECK (documents >= 0),
    conflicts  text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    undone_at  timestamptz,
    deliveries integer NOT NULL DEFAULT 0 CHECK (deliveries >= 0)
);

COMMENT ON COLUMN rule_runs.id IS 'The change in `document_changes` by which the run can be undone.';
COMMENT ON COLUMN rule_runs.documents IS 'How many documents were changed.';
COMMENT ON COLUMN rule_runs.deliveries IS 'How many messages about documents were sent to recipients. They cannot be undone.';
COMMENT ON COLUMN rule_runs.conflicts IS 'Values that were not set, because an earlier rule had set them.';

CREATE INDEX rule_runs_rule ON rule_runs (rule_id, created_at, id);

-- Which recipients a rule has sent a document to. A rule sends a document to a recipient only once.
CREATE TABLE rule_deliveries (
    rule_id       uuid NOT NULL REFERENCES rules ON DELETE CASCADE,
    document_id   uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    subscriber_id uuid NOT NULL REFERENCES subscribers ON DELETE CASCADE,
    sent_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (rule_id, document_id, subscriber_id)
);

CREATE INDEX rule_deliveries_document ON rule_deliveries (document_id);
CREATE INDEX rule_deliveries_subscriber ON rule_deliveries (subscriber_id);

ALTER TABLE documents ADD COLUMN expires_on date;
COMMENT ON COLUMN documents.expires_on IS 'On this day, the daily clean-up moves it to the trash. NULL: no such day.';
CREATE INDEX documents_expire ON documents (expires_on) WHERE expires_on IS NOT NULL AND deleted_at IS NULL;

-- Moves the rules of a visitor to a person, after the person's own.
CREATE FUNCTION merge_rules(visitor uuid, person uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    last integer := coalesce((SELECT max(position) FROM rules WHERE owner_id = person), 0);
BEGIN
    UPDATE rules mine SET owner_id = person, position = last + mine.position, name = CASE WHEN EXISTS (
        SELECT FROM rules theirs WHERE theirs.owner_id = person AND lower(theirs.name) = lower(mine.name))
        THEN format('%s (%s)', mine.name, mine.id) ELSE mine.name END
    WHERE owner_id = visitor;
END $$;
