-- How many documents of an owner have each kind, language, source type, collection and tag. The library shows these numbers on every page.

-- Changes of the numbers: a number is the sum of its rows, as in `text_totals`. Kinds and languages are counted without older
-- versions. There is no foreign key, because it would lock the owner.
CREATE TABLE document_counts (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_id  uuid NOT NULL,
    name      text NOT NULL CHECK (name IN ('kind', 'language', 'source_type', 'collection', 'tag')),
    value     text NOT NULL,
    documents bigint NOT NULL
);

COMMENT ON COLUMN document_counts.value IS 'The kind, language or source type, or the id of the collection or tag.';

CREATE INDEX document_counts_value ON document_counts (owner_id, name, value);

-- What a document counts as, apart from its tags.
CREATE FUNCTION counted_values(given documents) RETURNS TABLE (owner_id uuid, name text, value text) LANGUAGE sql IMMUTABLE AS $$
    SELECT given.owner_id, v.name, v.value
    FROM (VALUES ('kind', CASE WHEN NOT given.superseded THEN given.kind END),
                 ('language', CASE WHEN NOT given.superseded THEN given.language END),
                 ('source_type', given.source_type),
                 ('collection', given.collection_id::text)) AS v (name, value)
    WHERE given.deleted_at IS NULL AND v.value IS NOT NULL
$$;

-- Replaces the rows of a number by their sum. Rows that another transaction is replacing are left to it.
CREATE FUNCTION sum_counts(of_owner uuid, of_name text, of_value text) RETURNS void LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM document_counts WHERE id IN (
            SELECT id FROM document_counts WHERE owner_id = of_owner AND name = of_name AND value = of_value FOR UPDATE SKIP LOCKED)
        RETURNING documents
    )
    INSERT INTO document_counts (owner_id, name, value, documents)
    SELECT of_owner, of_name, of_value, sum(documents) FROM gone HAVING sum(documents) <> 0
$$;

-- Adds changes to the numbers. A number is summed up after ten changes, on average.
CREATE FUNCTION change_counts(owners uuid[], names text[], of_values text[], changes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    made document_counts;
BEGIN
    FOR made IN
        INSERT INTO document_counts (owner_id, name, value, documents)
        SELECT c.owner_id, c.name, c.value, sum(c.change) FROM unnest(owners, names, of_values, changes) AS c (owner_id, name, value, change)
        WHERE EXISTS (SELECT FROM owners o WHERE o.id = c.owner_id) GROUP BY 1, 2, 3 HAVING sum(c.change) <> 0 ORDER BY 1, 2, 3
        RETURNING *
    LOOP
        IF made.id % 10 = 0 THEN
            PERFORM sum_counts(made.owner_id, made.name, made.value);
        END IF;
    END LOOP;
END $$;

-- The tags of a document change with it only if it moves to or from the trash, or to another owner, or is deleted.
CREATE FUNCTION counts_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM change_counts(array_agg(c.owner_id), array_agg(c.name), array_agg(c.value), array_agg(c.change)) FROM (
        SELECT v.*, -1 AS change FROM counted_values(OLD) AS v WHERE TG_OP <> 'INSERT'
        UNION ALL
        SELECT v.*, 1 FROM counted_values(NEW) AS v WHERE TG_OP <> 'DELETE'
        UNION ALL
        SELECT s.owner_id, 'tag', t.tag_id::text, s.change
        FROM (VALUES (OLD.id, OLD.owner_id, OLD.deleted_at, -1), (NEW.id, NEW.owner_id, NEW.deleted_at, 1))
            AS s (document_id, owner_id, deleted_at, change)
        JOIN document_tags t ON t.document_id = s.document_id
        WHERE s.deleted_at IS NULL AND (OLD.owner_id, OLD.deleted_at IS NULL) IS DISTINCT FROM (NEW.owner_id, NEW.deleted_at IS NULL)) AS c
    HAVING count(*) > 0;
    RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER counts_follow_insert AFTER INSERT ON documents FOR EACH ROW EXECUTE FUNCTION counts_follow_document();
CREATE TRIGGER counts_follow AFTER UPDATE OF kind, language, source_type, collection_id, deleted_at, superseded, owner_id
ON documents FOR EACH ROW
    WHEN ((OLD.kind, OLD.language, OLD.source_type, OLD.collection_id, OLD.deleted_at IS NULL, OLD.superseded, OLD.owner_id)
          IS DISTINCT FROM (NEW.kind, NEW.language, NEW.source_type, NEW.collection_id, NEW.deleted_at IS NULL, NEW.superseded, NEW.owner_id))
    EXECUTE FUNCTION counts_follow_document();
-- Before, because the tags of the document are deleted with it.
CREATE TRIGGER counts_follow_delete BEFORE DELETE ON documents FOR EACH ROW EXECUTE FUNCTION counts_follow_document();

-- The documents that were given a tag, or lost one. A document that was deleted has been counted before.
CREATE FUNCTION counts_follow_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM change_counts(array_agg(c.owner_id), array_agg('tag'::text), array_agg(c.value), array_agg(c.change)) FROM (
        SELECT d.owner_id, t.tag_id::text AS value, CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END AS change
        FROM changed t JOIN documents d ON d.id = t.document_id WHERE d.deleted_at IS NULL GROUP BY 1, 2) AS c
    HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER counts_follow_tagging AFTER INSERT ON document_tags
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION counts_follow_tags();
CREATE TRIGGER counts_follow_untagging AFTER DELETE ON document_tags
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION counts_follow_tags();

-- A deleted owner has no numbers. Its documents are deleted after it, which changes no numbers any more.
CREATE FUNCTION counts_follow_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM document_counts WHERE owner_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER counts_follow AFTER DELETE ON owners FOR EACH ROW EXECUTE FUNCTION counts_follow_owner();
