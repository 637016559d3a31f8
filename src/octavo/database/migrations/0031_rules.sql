-- Rules that tag and file documents, and the log of their runs.

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
    undone_at  timestamptz
);

COMMENT ON COLUMN rule_runs.id IS 'The change in `document_changes` by which the run can be undone.';
COMMENT ON COLUMN rule_runs.documents IS 'How many documents were changed.';
COMMENT ON COLUMN rule_runs.conflicts IS 'Values that were not set, because an earlier rule had set them.';

CREATE INDEX rule_runs_rule ON rule_runs (rule_id, created_at, id);

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

-- Also moves fields and rules.
CREATE OR REPLACE FUNCTION merge_owner(visitor uuid, person uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moved uuid[];
BEGIN
    PERFORM FROM owners WHERE id IN (visitor, person) ORDER BY id FOR UPDATE;
    IF NOT EXISTS (SELECT FROM owners WHERE id = visitor AND kind = 'anonymous') THEN
        RAISE EXCEPTION 'owner % is not a visitor', visitor USING ERRCODE = 'check_violation';
    END IF;
    -- Jobs before documents: the order in which a job that ends locks them.
    PERFORM FROM jobs WHERE owner_id = visitor ORDER BY id FOR UPDATE;
    PERFORM resume_imports(visitor);
    UPDATE prompts SET owner_id = person WHERE owner_id = visitor;
    PERFORM merge_mappings(visitor, person);
    UPDATE conversions c SET live = false WHERE owner_id = visitor AND live AND EXISTS (
        SELECT FROM conversions o WHERE o.live AND o.owner_id = person AND o.sha256 = c.sha256 AND o.mapping = c.mapping
        AND o.mapping_sha256 = c.mapping_sha256 AND o.bytes = c.bytes);
    UPDATE conversion_batches SET owner_id = person WHERE owner_id = visitor;
    UPDATE conversions SET owner_id = person WHERE owner_id = visitor;
    UPDATE corrections SET owner_id = person WHERE owner_id = visitor;
    UPDATE documents d SET duplicate_of = twin.document_id
    FROM uploads u JOIN uploads twin ON twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical
    WHERE u.owner_id = visitor AND u.is_canonical AND d.id = u.document_id;
    UPDATE uploads u SET is_canonical = false
    WHERE owner_id = visitor AND is_canonical AND EXISTS (
        SELECT FROM uploads twin WHERE twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical);
    UPDATE uploads SET owner_id = person WHERE owner_id = visitor;
    -- Collections and tags with the same name are merged.
    UPDATE documents d SET collection_id = theirs.id
    FROM collections mine JOIN collections theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor AND d.collection_id = mine.id;
    DELETE FROM collections mine USING collections theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE collections SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO document_tags (document_id, tag_id, made_by)
    SELECT dt.document_id, theirs.id, dt.made_by FROM document_tags dt
    JOIN tags mine ON mine.id = dt.tag_id JOIN tags theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor
    ON CONFLICT DO NOTHING;
    DELETE FROM tags mine USING tags theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE tags SET owner_id = person WHERE owner_id = visitor;
    UPDATE views mine SET owner_id = person WHERE owner_id = visitor
        AND NOT EXISTS (SELECT FROM views theirs WHERE theirs.owner_id = person AND lower(theirs.name) = lower(mine.name));
    UPDATE threads SET owner_id = person WHERE owner_id = visitor;
    PERFORM merge_fields(visitor, person);
    PERFORM merge_rules(visitor, person);
    UPDATE jobs j SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM jobs same WHERE same.owner_id = person AND same.kind = j.kind AND same.key = j.key)
        THEN format('%s:%s', j.key, j.id) ELSE j.key END
    WHERE owner_id = visitor;
    UPDATE imports mine SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM imports same WHERE same.owner_id = person AND same.key = mine.key) THEN NULL ELSE key END
    WHERE owner_id = visitor;
    WITH moving AS (
        UPDATE documents SET owner_id = person, updated_at = clock_timestamp() WHERE owner_id = visitor RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO moved FROM moving;
    UPDATE notifications SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO connection_verdicts (owner_id, digest, verdict, decided_at)
    SELECT person, digest, verdict, decided_at FROM connection_verdicts WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    INSERT INTO connection_weights (owner_id, semantic_similarity, contradiction_detection, thematic_bridge)
    SELECT person, semantic_similarity, contradiction_detection, thematic_bridge FROM connection_weights
    WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    DELETE FROM sessions WHERE owner_id = visitor;
    DELETE FROM owners WHERE id = visitor;
    RETURN moved;
END $$;
