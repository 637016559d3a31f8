-- Custom fields that an owner defines, and their values on documents.

CREATE TABLE fields (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    type       text NOT NULL CHECK (type IN ('text', 'number', 'date', 'money', 'choice', 'link', 'person')),
    choices    text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN fields.choices IS 'The allowed values of the type `choice`; empty for other types.';

CREATE UNIQUE INDEX fields_name ON fields (owner_id, lower(name));

CREATE TABLE document_fields (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    field_id    uuid NOT NULL REFERENCES fields ON DELETE CASCADE,
    value       text NOT NULL CHECK (value <> '' AND length(value) <= 500),
    PRIMARY KEY (document_id, field_id)
);

COMMENT ON COLUMN document_fields.value IS 'In a form that can be compared: 2026-11-15 for a date, 12.50 EUR for money.';

CREATE INDEX document_fields_value ON document_fields (field_id, lower(value));

-- Values of fields are found by a search, like titles and tags.
CREATE FUNCTION words_follow_fields() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_documents(ARRAY(SELECT DISTINCT c.document_id FROM changed c JOIN documents d ON d.id = c.document_id));
    RETURN NULL;
END $$;
CREATE TRIGGER words_follow_fields AFTER INSERT ON document_fields
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION words_follow_fields();
CREATE TRIGGER words_follow_new_values AFTER UPDATE ON document_fields
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION words_follow_fields();
CREATE TRIGGER words_follow_cleared_fields AFTER DELETE ON document_fields
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION words_follow_fields();

-- Moves the fields of a visitor to a person. A field with the name and type of one of the person's fields becomes that field.
CREATE FUNCTION merge_fields(visitor uuid, person uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE document_fields v SET field_id = theirs.id
    FROM fields mine JOIN fields theirs
        ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name) AND theirs.type = mine.type
    WHERE mine.owner_id = visitor AND v.field_id = mine.id;
    DELETE FROM fields mine USING fields theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name) AND theirs.type = mine.type;
    UPDATE fields mine SET owner_id = person, name = CASE WHEN EXISTS (
        SELECT FROM fields theirs WHERE theirs.owner_id = person AND lower(theirs.name) = lower(mine.name))
        THEN format('%s (%s)', mine.name, mine.id) ELSE mine.name END
    WHERE owner_id = visitor;
END $$;
