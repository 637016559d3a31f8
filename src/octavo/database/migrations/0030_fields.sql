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

-- Also indexes the values of fields.
CREATE OR REPLACE FUNCTION index_documents(of_documents uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO document_words (document_id, words)
    SELECT d.id, name_words(f.config, d.title, 'A') || name_words(f.config, f.tags, 'B')
        || name_words(f.config, concat_ws(' ', d.filename, name_text(d.filename)), 'C')
        || name_words(f.config, concat_ws(E'\n', d.author, d.summary, f.field_values), 'D')
    FROM documents d CROSS JOIN LATERAL (
        SELECT search_config(d.language) AS config, (
            SELECT string_agg(t.name, E'\n' ORDER BY t.name) FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
            WHERE dt.document_id = d.id) AS tags, (
            SELECT string_agg(value, E'\n' ORDER BY value) FROM document_fields WHERE document_id = d.id) AS field_values) AS f
    WHERE d.id = ANY (of_documents)
    ON CONFLICT (document_id) DO UPDATE SET words = excluded.words WHERE document_words.words <> excluded.words;
    PERFORM list_words(d.id, plain_words(concat_ws(E'\n', d.title, name_text(d.filename), d.author, d.summary, (
        SELECT string_agg(t.name, E'\n') FROM document_tags dt JOIN tags t ON t.id = dt.tag_id WHERE dt.document_id = d.id))))
    FROM documents d WHERE d.id = ANY (of_documents);
END $$;

-- Also copies the values of fields.
CREATE OR REPLACE FUNCTION inherit_corrections(before documents, next uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents SET collection_id = before.collection_id, edited = before.edited WHERE id = next;
    INSERT INTO facts (document_id, made_by, name, value, normalized, confidence, source, status)
    SELECT next, made_by, name, value, normalized, confidence, source, status FROM facts
    WHERE document_id = before.id AND made_by = 'person'
      AND name IN ('kind', 'title', 'sender', 'author', 'recipient', 'language', 'party')
    ON CONFLICT DO NOTHING;
    INSERT INTO document_fields (document_id, field_id, value) SELECT next, field_id, value FROM document_fields WHERE document_id = before.id;
    PERFORM follow_facts(next, ARRAY(SELECT name FROM facts WHERE document_id = next));
    INSERT INTO highlights (id, document_id, user_id, quote, text_before, text_after, colour, note, created_at, updated_at)
    SELECT gen_random_uuid(), next, user_id, quote, text_before, text_after, colour, note, created_at, updated_at
    FROM highlights WHERE document_id = before.id;
END $$;
