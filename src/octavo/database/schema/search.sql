-- Full-text search: the words of chunks by language, and the totals that ranking needs.

-- The first part of a language tag, in lower case: en for en-US and en_GB. It is used to compare languages, as is
-- `core.languages.primary_language` in Python.
CREATE FUNCTION primary_language(tag text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    nullif(btrim(split_part(translate(lower(tag), '_', '-'), '-', 1)), '');

-- The text search configuration of a language. A text in an unknown language is indexed as English, which is most common, and
-- again when its language is known. A language without a configuration is indexed without stemming.
CREATE FUNCTION search_config(of_language text) RETURNS regconfig LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    CASE coalesce(primary_language(of_language), 'en')
        WHEN 'en' THEN 'pg_catalog.english'::regconfig
        WHEN 'ar' THEN 'pg_catalog.arabic'::regconfig
        WHEN 'ca' THEN 'pg_catalog.catalan'::regconfig
        WHEN 'da' THEN 'pg_catalog.danish'::regconfig
        WHEN 'de' THEN 'pg_catalog.german'::regconfig
        WHEN 'el' THEN 'pg_catalog.greek'::regconfig
        WHEN 'es' THEN 'pg_catalog.spanish'::regconfig
        WHEN 'eu' THEN 'pg_catalog.basque'::regconfig
        WHEN 'fi' THEN 'pg_catalog.finnish'::regconfig
        WHEN 'fr' THEN 'pg_catalog.french'::regconfig
        WHEN 'ga' THEN 'pg_catalog.irish'::regconfig
        WHEN 'hi' THEN 'pg_catalog.hindi'::regconfig
        WHEN 'hu' THEN 'pg_catalog.hungarian'::regconfig
        WHEN 'hy' THEN 'pg_catalog.armenian'::regconfig
        WHEN 'id' THEN 'pg_catalog.indonesian'::regconfig
        WHEN 'it' THEN 'pg_catalog.italian'::regconfig
        WHEN 'lt' THEN 'pg_catalog.lithuanian'::regconfig
        WHEN 'ne' THEN 'pg_catalog.nepali'::regconfig
        WHEN 'nl' THEN 'pg_catalog.dutch'::regconfig
        WHEN 'no' THEN 'pg_catalog.norwegian'::regconfig
        WHEN 'nb' THEN 'pg_catalog.norwegian'::regconfig
        WHEN 'pt' THEN 'pg_catalog.portuguese'::regconfig
        WHEN 'ro' THEN 'pg_catalog.romanian'::regconfig
        WHEN 'ru' THEN 'pg_catalog.russian'::regconfig
        WHEN 'sr' THEN 'pg_catalog.serbian'::regconfig
        WHEN 'sv' THEN 'pg_catalog.swedish'::regconfig
        WHEN 'ta' THEN 'pg_catalog.tamil'::regconfig
        WHEN 'tr' THEN 'pg_catalog.turkish'::regconfig
        WHEN 'yi' THEN 'pg_catalog.yiddish'::regconfig
        ELSE 'pg_catalog.simple'::regconfig
    END;

-- Prepares a text for indexing: removes Markdown syntax, which joins words, and splits scripts without spaces (Chinese,
-- Japanese, Thai, …) into pairs of characters.
CREATE FUNCTION search_text(given text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    plain text := normalize(translate(left(given, 100000), '/\*_`#|<>~=@', '            '), NFKC);
    unspaced CONSTANT text := '\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3040-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF';
BEGIN
    IF plain !~ ('[' || unspaced || ']') THEN
        RETURN plain;
    END IF;
    RETURN (
        SELECT string_agg(CASE WHEN part[1] ~ ('^[' || unspaced || ']') THEN (
            SELECT string_agg(substr(part[1], place, 2), ' ' ORDER BY place) FROM generate_series(1, length(part[1])) AS place)
            ELSE part[1] END, ' ' ORDER BY number)
        FROM regexp_matches(plain, format('[%1$s]+|[^%1$s]+', unspaced), 'g') WITH ORDINALITY AS parts (part, number));
END $$;

-- One lexeme as a query.
CREATE FUNCTION lexeme_query(lexeme text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')::tsquery;

-- How often a chunk uses a word, computed from its `ts_rank` with weights of 1, because unpacking the tsvector takes far longer.
-- The rank is the sum 1/1² + 1/2² + … divided by its limit, π²/6; the difference from the limit is about 1/(times + ½).
CREATE FUNCTION times_used(rank real) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    1 / (1.64493406685 * greatest(1.00001 - rank::double precision, 0.002)) - 0.5;

-- The words of a chunk with their positions. A word that occurs at least three times is added again with a mark, so that chunks
-- about a common word can be distinguished from the many that only mention it.
CREATE FUNCTION search_words(config regconfig, given text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT said || array_to_tsvector(ARRAY(SELECT '3 ' || lexeme FROM unnest(said) WHERE cardinality(positions) >= 3))
    FROM to_tsvector(config, search_text(given)) AS said
$$;

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

-- Rows are deliberately short: the words are in TOAST, so that chunks can be counted without reading the words.
CREATE TABLE chunk_words (
    chunk_id    uuid PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision    integer NOT NULL,
    length      integer NOT NULL,
    words       tsvector NOT NULL,
    owner_id    uuid NOT NULL
) WITH (toast_tuple_target = 128);

COMMENT ON COLUMN chunk_words.length IS 'Number of words, without the stop words of its language.';
COMMENT ON COLUMN chunk_words.owner_id IS 'The owner of the document.';

CREATE INDEX chunk_words_document ON chunk_words (document_id);
CREATE INDEX chunk_words_words ON chunk_words USING gin (words);
-- An owner's chunks in a random order: the end of an id is random, so the first ones are a sample.
CREATE INDEX chunk_words_sample ON chunk_words (owner_id, substr(uuid_send(chunk_id), 13));

ALTER TABLE chunk_words ALTER COLUMN words SET STORAGE EXTERNAL;

-- The size of each revision. A search uses their totals (`text_totals`).
CREATE TABLE document_passages (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision    integer NOT NULL,
    passages    integer NOT NULL,
    words       bigint NOT NULL,
    owner_id    uuid,
    config      text NOT NULL,
    PRIMARY KEY (document_id, revision)
);

COMMENT ON COLUMN document_passages.owner_id IS 'The owner whose searches cover this revision; NULL if it is not the current one or in the trash.';
COMMENT ON COLUMN document_passages.config IS 'The text search configuration of its words.';

CREATE FUNCTION count_chunks(of_documents uuid[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM document_passages p WHERE document_id = ANY (of_documents) AND NOT EXISTS (
        SELECT FROM chunk_words w WHERE w.document_id = p.document_id AND w.revision = p.revision);
    INSERT INTO document_passages (document_id, revision, passages, words, owner_id, config)
    SELECT d.id, w.revision, count(*), sum(w.length), CASE WHEN d.revision = w.revision AND d.deleted_at IS NULL THEN d.owner_id END,
           search_config(d.language)::text
    FROM chunk_words w JOIN documents d ON d.id = w.document_id WHERE w.document_id = ANY (of_documents) GROUP BY d.id, w.revision
    ON CONFLICT (document_id, revision) DO UPDATE SET passages = excluded.passages, words = excluded.words,
        owner_id = excluded.owner_id, config = excluded.config;
$$;

CREATE FUNCTION index_chunks(of_chunks uuid[]) RETURNS void LANGUAGE sql AS $$
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

-- Indexes the words of a chunk in the transaction that writes the chunk, no matter which code writes it.
CREATE FUNCTION words_follow_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_chunks(ARRAY(SELECT id FROM made));
    PERFORM list_words(d.document_id, ARRAY(
        SELECT DISTINCT unnest(plain_words(m.content)) FROM made m WHERE m.document_id = d.document_id))
    FROM (SELECT DISTINCT document_id FROM made) AS d;
    RETURN NULL;
END $$;
CREATE TRIGGER words_follow AFTER INSERT ON chunks
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION words_follow_chunks();

CREATE FUNCTION count_after_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_chunks(ARRAY(SELECT DISTINCT document_id FROM gone));
    RETURN NULL;
END $$;
CREATE TRIGGER count_after_delete AFTER DELETE ON chunks
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_after_delete();

CREATE FUNCTION words_follow_language() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_chunks(ARRAY(SELECT id FROM chunks WHERE document_id = NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER words_follow AFTER UPDATE OF language ON documents FOR EACH ROW
    WHEN (search_config(OLD.language) <> search_config(NEW.language)) EXECUTE FUNCTION words_follow_language();

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

-- The words that a document has outside of its text: title (weight A), tags (B), file name (C), author, summary and fields (D).
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

-- Indexes the titles, tags, file names, authors, summaries and fields of documents, in the transaction that changes them. In plpgsql,
-- because a session plans these statements once; an SQL function would plan them in every call.
CREATE FUNCTION index_documents(of_documents uuid[]) RETURNS void LANGUAGE plpgsql AS $$
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

CREATE FUNCTION words_follow_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_documents(ARRAY(SELECT id FROM made));
    RETURN NULL;
END $$;
CREATE TRIGGER words_follow_insert AFTER INSERT ON documents
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION words_follow_insert();

CREATE FUNCTION words_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_documents(ARRAY[NEW.id]);
    RETURN NULL;
END $$;
CREATE TRIGGER words_follow_edit AFTER UPDATE OF title, filename, author, summary, language ON documents FOR EACH ROW
    WHEN ((OLD.title, OLD.filename, OLD.author, OLD.summary, OLD.language)
          IS DISTINCT FROM (NEW.title, NEW.filename, NEW.author, NEW.summary, NEW.language))
    EXECUTE FUNCTION words_follow_document();

CREATE FUNCTION words_follow_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM changed) THEN
        PERFORM index_documents(ARRAY(SELECT DISTINCT document_id FROM changed));
    END IF;
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
    UPDATE document_words SET words = with_mark(words, OLD.owner_id, NEW.owner_id) WHERE document_id = NEW.id;
    UPDATE chunk_words SET words = with_mark(words, OLD.owner_id, NEW.owner_id), owner_id = NEW.owner_id WHERE document_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER vocabulary_follows AFTER UPDATE OF owner_id ON documents
    FOR EACH ROW WHEN (OLD.owner_id <> NEW.owner_id) EXECUTE FUNCTION vocabulary_follows_document();

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
      AND (chosen -> 'kind' IS NULL OR chosen ->> 'kind' IN (d.kind, d.source_type))
      AND (chosen -> 'sender' IS NULL OR position(lower(chosen ->> 'sender') IN lower(d.sender)) > 0)
      AND (chosen -> 'before' IS NULL OR d.document_date < (chosen ->> 'before')::date)
      AND (chosen -> 'after' IS NULL OR d.document_date >= (chosen ->> 'after')::date)
      AND (chosen -> 'amount_min' IS NULL OR d.amount >= (chosen ->> 'amount_min')::numeric)
      AND (chosen -> 'amount_max' IS NULL OR d.amount <= (chosen ->> 'amount_max')::numeric)
      AND (chosen -> 'field' IS NULL OR EXISTS (
          SELECT FROM document_fields v JOIN fields f ON f.id = v.field_id
          WHERE v.document_id = d.id AND f.owner_id = of_owner AND lower(f.name) = lower(chosen ->> 'field')
              AND (chosen -> 'field_value' IS NULL OR lower(v.value) = lower(chosen ->> 'field_value'))))
$$;

-- The chunks nearest to a vector. The index is used only if there are many vectors: comparing all is exact, and fast enough for
-- tens of thousands. A document is compared by one model only: the one that has vectors of all its chunks, so two models never mix
-- within a document. Model and length are literals in the statement, because the planner finds a partial index only that way.
CREATE FUNCTION nearest_chunks(of_owner uuid, chosen jsonb, of_model integer, given vector, required tsquery, excluded tsquery,
                                 by_index boolean, most integer)
RETURNS TABLE (chunk_id uuid, document_id uuid, score double precision) LANGUAGE plpgsql STABLE AS $$
DECLARE
    -- The index of earlier versions is used until the one with half precision is built.
    has_halves boolean := vector_dims(given) > 2000 OR EXISTS (
        SELECT FROM pg_index WHERE indexrelid = to_regclass('chunk_embeddings_half_' || of_model) AND indisvalid);
    as_indexed text := CASE WHEN by_index THEN format(
        CASE WHEN has_halves THEN '::halfvec(%s)' ELSE '::vector(%s)' END, vector_dims(given)) ELSE '' END;
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
