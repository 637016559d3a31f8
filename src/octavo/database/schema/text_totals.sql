-- How much text each owner has, by text search configuration. Ranking needs these totals for every search.

-- Changes of the totals: the total is the sum of an owner's rows. A writer adds a row and changes none, so that no writer waits for
-- another. There is no foreign key, because it would lock the owner.
CREATE TABLE text_totals (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_id uuid NOT NULL,
    config   text NOT NULL,
    chunks   bigint NOT NULL,
    words    bigint NOT NULL
);

CREATE INDEX text_totals_owner ON text_totals (owner_id);

-- Replaces the rows of an owner by their sums. Rows that another transaction is replacing are left to it.
CREATE FUNCTION sum_totals(of_owner uuid) RETURNS void LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM text_totals WHERE id IN (SELECT id FROM text_totals WHERE owner_id = of_owner FOR UPDATE SKIP LOCKED)
        RETURNING config, chunks, words
    )
    INSERT INTO text_totals (owner_id, config, chunks, words)
    SELECT of_owner, config, sum(chunks), sum(words) FROM gone GROUP BY config HAVING sum(chunks) <> 0 OR sum(words) <> 0
$$;

-- Totals are summed up after so many changes.
CREATE FUNCTION changes_to_sum() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 50';

-- Adds each change of a counted revision to the totals.
CREATE FUNCTION totals_follow_passages() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    made text_totals;
BEGIN
    FOR made IN
        INSERT INTO text_totals (owner_id, config, chunks, words)
        SELECT c.owner_id, c.config, sum(c.chunks), sum(c.words)
        FROM (VALUES (OLD.owner_id, OLD.config, -OLD.passages, -OLD.words), (NEW.owner_id, NEW.config, NEW.passages, NEW.words))
            AS c (owner_id, config, chunks, words)
        WHERE EXISTS (SELECT FROM owners o WHERE o.id = c.owner_id) GROUP BY 1, 2 HAVING sum(c.chunks) <> 0 OR sum(c.words) <> 0
        RETURNING *
    LOOP
        IF made.id % changes_to_sum() = 0 THEN
            PERFORM sum_totals(made.owner_id);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER totals_follow AFTER INSERT OR UPDATE OR DELETE ON document_passages
    FOR EACH ROW EXECUTE FUNCTION totals_follow_passages();

-- Which revision of a document is counted, for whom and in which language. The name of the trigger puts it before `words_follow`,
-- which indexes the words again if the language changes.
CREATE FUNCTION totals_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE document_passages SET
        owner_id = CASE WHEN revision = NEW.revision AND NEW.deleted_at IS NULL THEN NEW.owner_id END,
        config = search_config(NEW.language)::text
    WHERE document_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER totals_follow AFTER UPDATE OF revision, deleted_at, language, owner_id ON documents FOR EACH ROW
    WHEN ((OLD.revision, OLD.deleted_at IS NULL, search_config(OLD.language), OLD.owner_id)
          IS DISTINCT FROM (NEW.revision, NEW.deleted_at IS NULL, search_config(NEW.language), NEW.owner_id))
    EXECUTE FUNCTION totals_follow_document();

-- A deleted owner has no totals. Its documents are deleted after it, which changes no totals any more.
CREATE FUNCTION totals_follow_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM text_totals WHERE owner_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER totals_follow AFTER DELETE ON owners FOR EACH ROW EXECUTE FUNCTION totals_follow_owner();

-- The texts of an owner by text search configuration, with their average length.
CREATE FUNCTION owner_texts(of_owner uuid) RETURNS TABLE (config regconfig, chunks bigint, average double precision)
LANGUAGE sql STABLE AS $$
    SELECT config::regconfig, sum(chunks)::bigint, greatest(sum(words)::double precision / sum(chunks), 1) FROM text_totals
    WHERE owner_id = of_owner GROUP BY text_totals.config HAVING sum(chunks) > 0
$$;
