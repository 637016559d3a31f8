-- Search: titles, tags, file names, authors and summaries; spelling suggestions; one embedding model per document.

-- The model by whose vectors the document is searched; NULL until all its chunks have vectors of one model.
-- squawk-ignore adding-foreign-key-constraint
ALTER TABLE documents ADD COLUMN embedding_model_id integer REFERENCES embedding_models;
CREATE INDEX documents_embedding_model ON documents (owner_id, embedding_model_id) WHERE embedding_model_id IS NOT NULL;

-- Whether all chunks of the current revision have vectors of the model.
CREATE FUNCTION has_vectors(of_document uuid, of_revision integer, of_model integer) RETURNS boolean LANGUAGE sql STABLE RETURN
    NOT EXISTS (
        SELECT FROM chunks c WHERE c.document_id = of_document AND c.revision = of_revision AND NOT EXISTS (
            SELECT FROM chunk_embeddings e WHERE e.chunk_id = c.id AND e.model_id = of_model));

-- A document without complete vectors is searched by the first model that completes them. A document that has them changes its
-- model only on request (`use_model`).
CREATE FUNCTION model_follows_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents d SET embedding_model_id = m.model_id
    FROM (SELECT DISTINCT document_id, model_id FROM made) AS m
    WHERE d.id = m.document_id AND d.embedding_model_id IS DISTINCT FROM m.model_id
      AND (d.embedding_model_id IS NULL OR NOT has_vectors(d.id, d.revision, d.embedding_model_id))
      AND has_vectors(d.id, d.revision, m.model_id);
    RETURN NULL;
END $$;
CREATE TRIGGER model_follows AFTER INSERT ON chunk_embeddings
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION model_follows_vectors();

-- squawk-ignore require-concurrent-index-deletion
DROP INDEX documents_title_words;

-- A name as words: file names join words by underscores, dots, hyphens, digits and capitals.
CREATE FUNCTION name_text(given text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    regexp_replace(
        regexp_replace(translate(given, '._-+()[]{},;&!''', '               '), '([a-z])([A-Z])', '\1 \2', 'g'),
        '([0-9]+)', ' \1 ', 'g');

-- The words of a name, both unchanged and in the form of its language, so that a query in any language of the owner finds it.
CREATE FUNCTION name_words(config regconfig, given text, weight "char") RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT setweight(to_tsvector('pg_catalog.simple', plain) || to_tsvector(config, plain), weight)
    FROM search_text(coalesce(given, '')) AS plain
$$;

-- The words that a document has outside of its text: title (weight A), tags (B), file name (C), author and summary (D).
CREATE TABLE document_words (
    document_id uuid PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    words       tsvector NOT NULL
);

CREATE INDEX document_words_words ON document_words USING gin (words);

-- The words of an owner, for spelling suggestions. Up to three documents list a word, so that it survives the deletion of one.
-- There is no unique index, so that no writer waits for another; a duplicate row is harmless.
CREATE TABLE vocabulary (
    owner_id    uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    word        text NOT NULL
);

CREATE INDEX vocabulary_word ON vocabulary (owner_id, word);
CREATE INDEX vocabulary_begin ON vocabulary (owner_id, left(word, 2), length(word));
CREATE INDEX vocabulary_end ON vocabulary (owner_id, right(word, 2), length(word));
CREATE INDEX vocabulary_document ON vocabulary (document_id);

-- Adds words of a document to the vocabulary: only letters, and only scripts with spaces between words. The words are looked up
-- in one index scan; the planner would choose a slower one for each word.
CREATE FUNCTION list_words(of_document uuid, given text[]) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    of_owner uuid;
    kept text[];
BEGIN
    SELECT owner_id INTO of_owner FROM documents WHERE id = of_document;
    SELECT array_agg(DISTINCT word) INTO kept FROM unnest(given) AS w (word)
    WHERE length(word) BETWEEN 4 AND 24
      AND word !~ '[0-9[:punct:][:space:]\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3040-\u30FF\u3400-\u9FFF\uF900-\uFAFF]';
    INSERT INTO vocabulary (owner_id, document_id, word)
    SELECT of_owner, of_document, w.word FROM unnest(kept) AS w (word)
    LEFT JOIN (
        SELECT v.word, count(*) AS documents, bool_or(v.document_id = of_document) AS is_mine
        FROM vocabulary v WHERE v.owner_id = of_owner AND v.word = ANY (kept) GROUP BY 1) AS listed USING (word)
    WHERE of_owner IS NOT NULL AND (listed.word IS NULL OR NOT listed.is_mine AND listed.documents < 3);
END $$;

-- The distinct words of a text, in lower case.
CREATE FUNCTION plain_words(given text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    tsvector_to_array(to_tsvector('pg_catalog.simple', search_text(given)));

-- Indexes the titles, tags, file names, authors and summaries of documents, in the transaction that changes them.
CREATE FUNCTION index_documents(of_documents uuid[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO document_words (document_id, words)
    SELECT d.id, name_words(f.config, d.title, 'A') || name_words(f.config, f.tags, 'B')
        || name_words(f.config, concat_ws(' ', d.filename, name_text(d.filename)), 'C')
        || name_words(f.config, concat_ws(E'\n', d.author, d.summary), 'D')
    FROM documents d CROSS JOIN LATERAL (
        SELECT search_config(d.language) AS config, (
            SELECT string_agg(t.name, E'\n' ORDER BY t.name) FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
            WHERE dt.document_id = d.id) AS tags) AS f
    WHERE d.id = ANY (of_documents)
    ON CONFLICT (document_id) DO UPDATE SET words = excluded.words WHERE document_words.words <> excluded.words;
    SELECT list_words(d.id, plain_words(concat_ws(E'\n', d.title, name_text(d.filename), d.author, d.summary, (
        SELECT string_agg(t.name, E'\n') FROM document_tags dt JOIN tags t ON t.id = dt.tag_id WHERE dt.document_id = d.id))))
    FROM documents d WHERE d.id = ANY (of_documents);
$$;

CREATE FUNCTION words_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_documents(ARRAY[NEW.id]);
    RETURN NULL;
END $$;
CREATE TRIGGER words_follow_insert AFTER INSERT ON documents FOR EACH ROW EXECUTE FUNCTION words_follow_document();
CREATE TRIGGER words_follow_edit AFTER UPDATE OF title, filename, author, summary, language ON documents FOR EACH ROW
    WHEN ((OLD.title, OLD.filename, OLD.author, OLD.summary, OLD.language)
          IS DISTINCT FROM (NEW.title, NEW.filename, NEW.author, NEW.summary, NEW.language))
    EXECUTE FUNCTION words_follow_document();

CREATE FUNCTION words_follow_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_documents(ARRAY(SELECT DISTINCT document_id FROM changed));
    RETURN NULL;
END $$;
CREATE TRIGGER words_follow_tagging AFTER INSERT ON document_tags
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION words_follow_tags();
CREATE TRIGGER words_follow_untagging AFTER DELETE ON document_tags
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION words_follow_tags();

-- When a document moves to another owner, its words move too.
CREATE FUNCTION vocabulary_follows_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE vocabulary SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER vocabulary_follows AFTER UPDATE OF owner_id ON documents
    FOR EACH ROW WHEN (OLD.owner_id <> NEW.owner_id) EXECUTE FUNCTION vocabulary_follows_document();

CREATE OR REPLACE FUNCTION words_follow_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_chunks(ARRAY(SELECT id FROM made));
    PERFORM list_words(d.document_id, ARRAY(
        SELECT DISTINCT unnest(plain_words(m.content)) FROM made m WHERE m.document_id = d.document_id))
    FROM (SELECT DISTINCT document_id FROM made) AS d;
    RETURN NULL;
END $$;

-- squawk-ignore ban-drop-function
DROP FUNCTION searched_documents(uuid, jsonb);
-- The documents that a search covers: those of the owner that are not in the trash and match the filters. Of several
-- versions only the newest one with text is searched, unless documents are named or older versions are requested.
CREATE FUNCTION searched_documents(of_owner uuid, chosen jsonb)
RETURNS TABLE (id uuid, revision integer, config regconfig, model integer) LANGUAGE sql STABLE AS $$
    SELECT d.id, d.revision, search_config(d.language), d.embedding_model_id FROM documents d
    WHERE d.owner_id = of_owner AND d.deleted_at IS NULL
      AND (NOT d.superseded OR chosen ?| '{documents,versions}' OR NOT EXISTS (
          SELECT FROM documents newer WHERE newer.family_id = d.family_id AND newer.version > d.version
              AND newer.deleted_at IS NULL AND newer.text_ready))
      AND (chosen -> 'documents' IS NULL OR d.id = ANY (ARRAY(SELECT jsonb_array_elements_text(chosen -> 'documents')::uuid)))
      AND (chosen -> 'without' IS NULL OR d.id <> (chosen ->> 'without')::uuid)
      AND (chosen -> 'tags' IS NULL OR EXISTS (
          SELECT FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
          WHERE dt.document_id = d.id AND lower(t.name) IN (SELECT lower(jsonb_array_elements_text(chosen -> 'tags')))))
      AND (chosen -> 'collection' IS NULL OR EXISTS (
          SELECT FROM collections c WHERE c.id = d.collection_id AND lower(c.name) = lower(chosen ->> 'collection')))
      AND (chosen -> 'kinds' IS NULL OR d.source_type IN (SELECT jsonb_array_elements_text(chosen -> 'kinds')))
      AND (chosen -> 'language' IS NULL OR primary_language(d.language) = primary_language(chosen ->> 'language'))
      AND (chosen -> 'since' IS NULL OR coalesce(d.document_date, d.created_at::date) >= (chosen ->> 'since')::date)
      AND (chosen -> 'until' IS NULL OR coalesce(d.document_date, d.created_at::date) <= (chosen ->> 'until')::date)
$$;

-- The chunks nearest to a vector. The index is used only if there are many vectors: comparing all is exact, and fast enough for
-- tens of thousands. A document is compared by one model only: the one that has vectors of all its chunks, so two models never mix
-- within a document. Model and length are literals in the statement, because the planner finds a partial index only that way.
CREATE OR REPLACE FUNCTION nearest_chunks(of_owner uuid, chosen jsonb, of_model integer, given vector, required tsquery, excluded tsquery,
                                 by_index boolean, most integer)
RETURNS TABLE (chunk_id uuid, document_id uuid, score double precision) LANGUAGE plpgsql STABLE AS $$
DECLARE
    as_indexed text := CASE WHEN by_index THEN format(
        CASE WHEN vector_dims(given) > 2000 THEN '::halfvec(%s)' ELSE '::vector(%s)' END, vector_dims(given)) ELSE '' END;
BEGIN
    IF of_model IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($query$
        SELECT near.chunk_id, near.document_id, 1 - near.distance FROM (
            SELECT e.chunk_id, e.document_id, d.revision, e.vector%1$s <=> $1%1$s AS distance
            FROM chunk_embeddings e JOIN searched_documents($2, $3) d ON d.id = e.document_id AND d.model = e.model_id %3$s
            WHERE e.model_id = %2$s AND e.owner_id = $2
            ORDER BY e.vector%1$s <=> $1%1$s LIMIT 2 * $4) AS near
        JOIN chunks c ON c.id = near.chunk_id AND c.revision = near.revision
        ORDER BY near.distance, near.chunk_id LIMIT $4$query$,
        as_indexed, of_model, CASE WHEN required IS NOT NULL OR excluded IS NOT NULL THEN
            'JOIN chunk_words w ON w.chunk_id = e.chunk_id AND ($5 IS NULL OR w.words @@ $5) AND ($6 IS NULL OR NOT w.words @@ $6)'
            ELSE '' END)
    USING given, of_owner, chosen, most, required, excluded;
END $$;

-- Existing documents.
SELECT index_documents(ARRAY(SELECT id FROM documents));
SELECT list_words(d.id, ARRAY(SELECT DISTINCT unnest(plain_words(c.content)) FROM chunks c
                              WHERE c.document_id = d.id AND c.revision = d.revision))
FROM documents d WHERE d.revision > 0;
UPDATE documents d SET embedding_model_id = (
    SELECT e.model_id FROM chunk_embeddings e JOIN chunks c ON c.id = e.chunk_id
    WHERE e.document_id = d.id AND c.revision = d.revision AND has_vectors(d.id, d.revision, e.model_id)
    GROUP BY e.model_id ORDER BY e.model_id DESC LIMIT 1);
