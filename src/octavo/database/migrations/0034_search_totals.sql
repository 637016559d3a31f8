-- Searches no longer add up the sizes of all documents of an owner, and no longer read the texts of other owners.

-- A word that all texts of an owner have, and other owners' texts do not. The index intersects it with the words of a query, so a
-- search takes no longer if other owners have more texts. Two owners may have the same mark; a search also compares the owner.
CREATE FUNCTION owner_mark(of_owner uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    '1 ' || right(of_owner::text, 12);

-- The query for an owner's mark.
CREATE FUNCTION owned_by(of_owner uuid) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    lexeme_query(owner_mark(of_owner));

-- The mark of an owner in place of another owner's.
CREATE FUNCTION with_mark(words tsvector, before uuid, after uuid) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    ts_delete(words, owner_mark(before)) || array_to_tsvector(ARRAY[owner_mark(after)]);

-- The mark is added to all words. Building the index again takes less time than changing it for each row.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX chunk_words_words;
ALTER TABLE chunk_words ADD COLUMN owner_id uuid;
UPDATE chunk_words w SET owner_id = d.owner_id, words = w.words || array_to_tsvector(ARRAY[owner_mark(d.owner_id)])
FROM documents d WHERE d.id = w.document_id;
-- squawk-ignore adding-not-nullable-field
ALTER TABLE chunk_words ALTER COLUMN owner_id SET NOT NULL;
COMMENT ON COLUMN chunk_words.owner_id IS 'The owner of the document.';
CREATE INDEX chunk_words_words ON chunk_words USING gin (words);
-- An owner's chunks in a random order: the end of an id is random, so the first ones are a sample.
CREATE INDEX chunk_words_sample ON chunk_words (owner_id, substr(uuid_send(chunk_id), 13));

-- squawk-ignore require-concurrent-index-deletion
DROP INDEX document_words_words;
UPDATE document_words w SET words = w.words || array_to_tsvector(ARRAY[owner_mark(d.owner_id)])
FROM documents d WHERE d.id = w.document_id;
CREATE INDEX document_words_words ON document_words USING gin (words);

ALTER TABLE document_passages ADD COLUMN owner_id uuid, ADD COLUMN config text;
UPDATE document_passages p SET owner_id = CASE WHEN p.revision = d.revision AND d.deleted_at IS NULL THEN d.owner_id END,
                               config = search_config(d.language)::text
FROM documents d WHERE d.id = p.document_id;
-- squawk-ignore adding-not-nullable-field
ALTER TABLE document_passages ALTER COLUMN config SET NOT NULL;
COMMENT ON COLUMN document_passages.owner_id IS 'The owner whose searches cover this revision; NULL if it is not the current one or in the trash.';
COMMENT ON COLUMN document_passages.config IS 'The text search configuration of its words.';

CREATE OR REPLACE FUNCTION count_chunks(of_documents uuid[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM document_passages p WHERE document_id = ANY (of_documents) AND NOT EXISTS (
        SELECT FROM chunk_words w WHERE w.document_id = p.document_id AND w.revision = p.revision);
    INSERT INTO document_passages (document_id, revision, passages, words, owner_id, config)
    SELECT d.id, w.revision, count(*), sum(w.length), CASE WHEN d.revision = w.revision AND d.deleted_at IS NULL THEN d.owner_id END,
           search_config(d.language)::text
    FROM chunk_words w JOIN documents d ON d.id = w.document_id WHERE w.document_id = ANY (of_documents) GROUP BY d.id, w.revision
    ON CONFLICT (document_id, revision) DO UPDATE SET passages = excluded.passages, words = excluded.words,
        owner_id = excluded.owner_id, config = excluded.config;
$$;

CREATE OR REPLACE FUNCTION index_chunks(of_chunks uuid[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO chunk_words (chunk_id, document_id, revision, length, words, owner_id)
    SELECT c.id, c.document_id, c.revision, coalesce((SELECT sum(cardinality(positions)) FROM unnest(said.words)), 0),
           said.words || array_to_tsvector(ARRAY[owner_mark(d.owner_id)]), d.owner_id
    FROM chunks c JOIN documents d ON d.id = c.document_id
    CROSS JOIN LATERAL search_words(search_config(d.language),
                                    array_to_string(c.heading_path, E'\n') || E'\n' || c.content) AS said (words)
    WHERE c.id = ANY (of_chunks)
    ON CONFLICT (chunk_id) DO UPDATE SET length = excluded.length, words = excluded.words, owner_id = excluded.owner_id;
    SELECT count_chunks(ARRAY(SELECT DISTINCT document_id FROM chunks WHERE id = ANY (of_chunks)));
$$;

CREATE OR REPLACE FUNCTION index_documents(of_documents uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO document_words (document_id, words)
    SELECT d.id, name_words(f.config, d.title, 'A') || name_words(f.config, f.tags, 'B')
        || name_words(f.config, concat_ws(' ', d.filename, name_text(d.filename)), 'C')
        || name_words(f.config, concat_ws(E'\n', d.author, d.summary, f.field_values), 'D')
        || array_to_tsvector(ARRAY[owner_mark(d.owner_id)])
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

CREATE OR REPLACE FUNCTION vocabulary_follows_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE vocabulary SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    UPDATE document_words SET words = with_mark(words, OLD.owner_id, NEW.owner_id) WHERE document_id = NEW.id;
    UPDATE chunk_words SET words = with_mark(words, OLD.owner_id, NEW.owner_id), owner_id = NEW.owner_id WHERE document_id = NEW.id;
    RETURN NULL;
END $$;

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

INSERT INTO text_totals (owner_id, config, chunks, words)
SELECT owner_id, config, sum(passages), sum(words) FROM document_passages WHERE owner_id IS NOT NULL GROUP BY 1, 2;

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
