-- name: settle()!
-- Planner settings for the rest of the transaction. Reading the words of a chunk costs more than the planner assumes,
-- because they are in TOAST: without this it scans all chunks instead of the index. Starting a parallel worker takes longer
-- than it saves. The nearest neighbours of an index may include few of the owner's chunks, so the scan is iterative.
SELECT set_config('cpu_operator_cost', '0.1', true), set_config('enable_seqscan', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('hnsw.ef_search', '100', true);

-- name: terms(owner, words)
-- Each word as a term of every language of the owner, with the number and average length of the chunks in that language.
-- A single character of a script without spaces matches every word that starts with it. Titles, tags and file names also match
-- unchanged words in any language; such terms have no chunks, and stop words of the owner's languages are left out.
WITH languages AS MATERIALIZED (
    SELECT config, chunks, average FROM owner_texts(:owner)
), configs AS MATERIALIZED (
    SELECT config, chunks, average FROM languages
    UNION ALL SELECT 'pg_catalog.simple', 0, 1
    WHERE NOT EXISTS (SELECT FROM languages WHERE config = 'pg_catalog.simple'::regconfig)
)
SELECT w.word, l.config::text, lexeme_query(t.lexeme)::text || CASE WHEN t.lexeme ~ '^[\u0E00-\u9FFF]$' THEN ':*' ELSE '' END AS query,
       lexeme_query('3 ' || t.lexeme)::text AS often, l.chunks::integer, l.average::double precision
FROM configs l CROSS JOIN unnest(:words::text[]) WITH ORDINALITY AS w (word, place)
CROSS JOIN LATERAL unnest(to_tsvector(l.config, search_text(w.word))) AS t
WHERE NOT (length(w.word) > 1 AND t.lexeme ~ '^[\u0E00-\u9FFF]$')
  AND (l.chunks > 0 OR to_tsvector('pg_catalog.english', t.lexeme) <> ''::tsvector
       AND NOT EXISTS (SELECT FROM languages s WHERE to_tsvector(s.config, t.lexeme) = ''::tsvector))
ORDER BY w.place;

-- name: counts_of_few(owner, queries)
-- The number of chunks per language that match each query. For an owner with few chunks, all chunks are read once.
SELECT p.config::text, q.query::text, count(*)::integer AS found_in
FROM (SELECT search_config(d.language) AS config, (ARRAY[c.words])[1] AS words
      FROM documents d JOIN chunk_words c ON c.document_id = d.id AND c.revision = d.revision
      WHERE d.owner_id = :owner AND d.deleted_at IS NULL OFFSET 0) AS p
JOIN (SELECT unnest(:queries::text[])::tsquery AS query) AS q ON p.words @@ q.query
GROUP BY 1, 2;

-- name: counts(owner, queries)
-- The same with the index, which finds the owner's matches; those in the trash or in old revisions are left out.
SELECT search_config(d.language)::text AS config, a.query::text, count(*)::integer AS found_in
FROM (SELECT unnest(:queries::text[])::tsquery AS query) AS a
CROSS JOIN LATERAL (SELECT document_id, revision FROM chunk_words WHERE words @@ (a.query && owned_by(:owner)) OFFSET 0) AS c
CROSS JOIN LATERAL (SELECT language FROM documents
                    WHERE id = c.document_id AND revision = c.revision AND owner_id = :owner AND deleted_at IS NULL OFFSET 0) AS d
GROUP BY 1, 2;

-- name: sampled_counts(owner, queries, most)
-- How many chunks of a sample match each query, by language, and the size of the sample. The chunks are looked up by their keys.
WITH sampled AS MATERIALIZED (
    SELECT d.language, w.words FROM (
        SELECT chunk_id, document_id, revision FROM chunk_words WHERE owner_id = :owner
        ORDER BY substr(uuid_send(chunk_id), 13) LIMIT :most) AS s
    CROSS JOIN LATERAL (SELECT language FROM documents
                        WHERE id = s.document_id AND revision = s.revision AND deleted_at IS NULL OFFSET 0) AS d
    CROSS JOIN LATERAL (SELECT (ARRAY[words])[1] AS words FROM chunk_words WHERE chunk_id = s.chunk_id OFFSET 0) AS w
)
SELECT search_config(s.language)::text AS config, q.query::text, count(*)::integer AS matches,
       (SELECT count(*) FROM sampled)::integer AS sampled
FROM sampled s JOIN (SELECT unnest(:queries::text[])::tsquery AS query) AS q ON s.words @@ q.query GROUP BY 1, 2;

-- name: phrases(owner, phrases)
-- Phrases as queries in every language of the owner, without those that have no words in a language. In a script without
-- spaces the last character is already part of a pair.
SELECT place, query::text FROM (
    SELECT config FROM owner_texts(:owner)) AS languages
CROSS JOIN unnest(:phrases::text[]) WITH ORDINALITY AS p (phrase, place)
CROSS JOIN LATERAL phraseto_tsquery(
    config, regexp_replace(search_text(phrase), '([\u0E00-\u9FFF]{2}) [\u0E00-\u9FFF](?=\s|$)', '\1', 'g')) AS query
WHERE numnode(query) > 0;

-- name: by_words(owner, chosen, filtered, few, lookups, worth, browsed, browse_worth, most_browsed, required, excluded, configs, queries, weights, averages, most_matches, most_scored, most)
-- BM25 (k1 = 1.5, b = 0.75) of the most promising chunks. The index and the length alone decide which those are; only then
-- are their words read from TOAST, once, by wrapping them in an array. For an owner with few chunks all are scored. A word that a
-- large share of the chunks contains is not looked up, because that alone takes longer than the rest: a sample of the chunks is
-- scored instead. The documents that match the filters are read first. Without filters, only the documents of matches are read.
WITH wanted AS MATERIALIZED (
    SELECT config::regconfig, query::tsquery, weight, average
    FROM unnest(:configs::text[], :queries::text[], :weights::double precision[], :averages::double precision[])
        AS w (config, query, weight, average)
), live AS MATERIALIZED (
    SELECT id, revision, config FROM searched_documents(:owner, :chosen) WHERE :few::boolean OR :filtered::boolean
), browsed AS MATERIALIZED (
    SELECT config::regconfig, worth FROM unnest(:browsed::text[], :browse_worth::double precision[]) AS b (config, worth)
), matching AS MATERIALIZED (
    SELECT chunk_id, config, length, sum(worth) AS worth FROM (
        SELECT c.chunk_id, c.config, c.length, l.worth
        FROM unnest(:lookups::text[], :worth::double precision[]) AS l (query, worth)
        CROSS JOIN LATERAL (
            SELECT m.chunk_id, d.config, m.length
            FROM (SELECT chunk_id, document_id, revision, length FROM chunk_words
                  WHERE words @@ (l.query::tsquery && owned_by(:owner))
                    AND (:required::tsquery IS NULL OR words @@ :required)
                    AND (:excluded::tsquery IS NULL OR NOT words @@ :excluded) OFFSET 0) AS m
            JOIN live d ON d.id = m.document_id AND d.revision = m.revision
            WHERE :filtered LIMIT :most_matches) AS c
        UNION ALL
        SELECT c.chunk_id, c.config, c.length, l.worth
        FROM unnest(:lookups::text[], :worth::double precision[]) AS l (query, worth)
        CROSS JOIN LATERAL (
            SELECT m.chunk_id, d.config, m.length
            FROM (SELECT chunk_id, document_id, revision, length FROM chunk_words
                  WHERE words @@ (l.query::tsquery && owned_by(:owner))
                    AND (:required::tsquery IS NULL OR words @@ :required)
                    AND (:excluded::tsquery IS NULL OR NOT words @@ :excluded) OFFSET 0) AS m
            CROSS JOIN LATERAL (SELECT s.config FROM searched_documents(:owner, :chosen) s
                                WHERE s.id = m.document_id AND s.revision = m.revision OFFSET 0) AS d
            WHERE NOT :filtered LIMIT :most_matches) AS c
        UNION ALL
        SELECT s.chunk_id, b.config, s.length, b.worth
        FROM (SELECT chunk_id, document_id, revision, length FROM chunk_words
              WHERE owner_id = :owner AND NOT :filtered AND cardinality(:browsed::text[]) > 0
              ORDER BY substr(uuid_send(chunk_id), 13) LIMIT :most_browsed) AS s
        CROSS JOIN LATERAL (SELECT d.config FROM searched_documents(:owner, :chosen) d
                            WHERE d.id = s.document_id AND d.revision = s.revision OFFSET 0) AS d
        JOIN browsed b ON b.config = d.config
        UNION ALL
        SELECT s.chunk_id, s.config, s.length, s.worth
        FROM (SELECT w.chunk_id, b.config, w.length, b.worth FROM live d JOIN browsed b ON b.config = d.config
              JOIN chunk_words w ON w.document_id = d.id AND w.revision = d.revision
              WHERE :filtered AND cardinality(:browsed::text[]) > 0
              ORDER BY substr(uuid_send(w.chunk_id), 13) LIMIT :most_browsed) AS s) AS m
    WHERE NOT :few GROUP BY 1, 2, 3
), promising AS MATERIALIZED (
    (SELECT m.chunk_id, m.config FROM matching m JOIN (SELECT DISTINCT config, average FROM wanted) AS a USING (config)
     ORDER BY m.worth / (1 + 1.5 * (0.25 + 0.75 * m.length / a.average)) DESC, m.chunk_id LIMIT :most_scored)
    UNION ALL
    SELECT c.chunk_id, d.config FROM live d JOIN chunk_words c ON c.document_id = d.id AND c.revision = d.revision
    WHERE :few AND (:required::tsquery IS NULL OR c.words @@ :required)
      AND (:excluded::tsquery IS NULL OR NOT c.words @@ :excluded)
), found AS (
    SELECT c.chunk_id, c.document_id, p.config, c.length, (ARRAY[c.words])[1] AS words
    FROM promising p JOIN chunk_words c USING (chunk_id) OFFSET 0
), weighed AS (
    SELECT f.chunk_id, f.document_id, (
        SELECT sum(w.weight * u.times * 2.5 / (u.times + 1.5 * (0.25 + 0.75 * f.length / w.average)))
        FROM wanted w
        CROSS JOIN LATERAL (SELECT ts_rank('{1,1,1,1}', f.words, w.query) AS rank OFFSET 0) AS r
        CROSS JOIN LATERAL (SELECT times_used(r.rank) AS times OFFSET 0) AS u
        WHERE w.config = f.config AND r.rank > 0) AS score
    FROM found f
)
SELECT chunk_id, document_id, coalesce(score, 0) AS score FROM weighed ORDER BY score DESC NULLS LAST, chunk_id LIMIT :most;

-- name: by_fields(owner, chosen, filtered, everything, anything, required, configs, queries, weights, share, most_named, most)
-- Documents whose titles, tags, file names, authors or summaries match most of the query, with their first chunk if they have
-- text, and the field that matches most. Documents that match all of it are read first. `anything` has so many of the words that
-- a document without all of these matches too little. Filters are applied as in `by_words`.
WITH wanted AS MATERIALIZED (
    SELECT config::regconfig, query::tsquery, weight
    FROM unnest(:configs::text[], :queries::text[], :weights::double precision[]) AS w (config, query, weight)
), live AS MATERIALIZED (
    SELECT id, revision, config FROM searched_documents(:owner, :chosen) WHERE :filtered::boolean
), lookups AS MATERIALIZED (
    SELECT query && owned_by(:owner) AS query, without
    FROM (VALUES (:everything::tsquery, NULL), (:anything::tsquery, :everything::tsquery)) AS l (query, without)
), found AS MATERIALIZED (
    SELECT d.id, d.revision, d.config, w.words FROM lookups l
    CROSS JOIN LATERAL (SELECT document_id, words FROM document_words
                        WHERE words @@ l.query AND (l.without IS NULL OR NOT words @@ l.without)
                          AND (:required::tsquery IS NULL OR words @@ :required) OFFSET 0) AS w
    JOIN live d ON d.id = w.document_id WHERE :filtered
    UNION ALL
    (SELECT d.id, d.revision, d.config, w.words FROM lookups l
     CROSS JOIN LATERAL (SELECT document_id, words FROM document_words
                         WHERE words @@ l.query AND (l.without IS NULL OR NOT words @@ l.without)
                           AND (:required::tsquery IS NULL OR words @@ :required) OFFSET 0) AS w
     CROSS JOIN LATERAL (SELECT s.id, s.revision, s.config FROM searched_documents(:owner, :chosen) s
                         WHERE s.id = w.document_id OFFSET 0) AS d
     WHERE NOT :filtered LIMIT :most_named)
), weighed AS (
    SELECT f.id, f.revision, w.config, sum(w.weight) FILTER (WHERE f.words @@ w.query) / sum(w.weight) AS score
    FROM found f JOIN wanted w ON w.config IN (f.config, 'pg_catalog.simple'::regconfig) GROUP BY 1, 2, 3
), best AS MATERIALIZED (
    SELECT * FROM (
        SELECT DISTINCT ON (id) id, revision, config, score FROM weighed WHERE score >= :share
        ORDER BY id, score DESC, config) AS one
    ORDER BY score DESC, id LIMIT :most
), matched AS (
    SELECT b.id, b.revision, b.score, sum(w.weight) FILTER (WHERE ts_filter(f.words, '{a}') @@ w.query) AS title,
           sum(w.weight) FILTER (WHERE ts_filter(f.words, '{b}') @@ w.query) AS tag,
           sum(w.weight) FILTER (WHERE ts_filter(f.words, '{c}') @@ w.query) AS filename,
           sum(w.weight) FILTER (WHERE ts_filter(f.words, '{d}') @@ w.query) AS words
    FROM best b JOIN found f USING (id) JOIN wanted w ON w.config = b.config GROUP BY 1, 2, 3
), named AS (
    SELECT id, revision, score, CASE greatest(title, tag, filename, words)
        WHEN title THEN 'title' WHEN tag THEN 'tag' WHEN filename THEN 'filename' ELSE 'words' END AS field
    FROM matched
)
SELECT c.id AS chunk_id, n.id AS document_id, n.score, n.field
FROM named n LEFT JOIN chunks c ON c.document_id = n.id AND c.revision = n.revision AND c.index = 0
ORDER BY n.score DESC, n.field = 'words', n.id;

-- name: by_facts(owner, chosen, most)
-- The documents that match the filters, latest first, with their first chunk if they have text.
SELECT c.id AS chunk_id, d.id AS document_id, 1.0::double precision AS score, 'title' AS field
FROM searched_documents(:owner, :chosen) s JOIN documents d USING (id)
LEFT JOIN chunks c ON c.document_id = d.id AND c.revision = d.revision AND c.index = 0
ORDER BY d.document_date DESC NULLS LAST, d.created_at DESC, d.id LIMIT :most;

-- name: document_details(owner, documents, marked, begin, end)
-- Hits by title, tag or file name: the fields, and the summary with its matched words between two marks.
SELECT d.id AS document_id, coalesce(nullif(d.title, ''), d.filename) AS title, d.source_type, d.filename,
       ts_headline(search_config(d.language), translate(coalesce(nullif(d.summary, ''), d.filename), :begin || :end, ''), :marked::tsquery,
                   'HighlightAll=true, StartSel=' || :begin || ', StopSel=' || :end) AS marked,
       ARRAY(SELECT t.name FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
             WHERE dt.document_id = d.id AND name_words(search_config(d.language), t.name, 'B') @@ :marked
             ORDER BY lower(t.name)) AS tags
FROM documents d WHERE d.id = ANY (:documents) AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: named_words(owner, words)
-- Which of these words are in a title, tag, file name, author or summary of the owner.
SELECT w.word FROM unnest(:words::text[]) AS w (word) WHERE EXISTS (
    SELECT FROM (SELECT document_id FROM document_words
                 WHERE words @@ (plainto_tsquery('pg_catalog.simple', search_text(w.word)) && owned_by(:owner)) OFFSET 0) AS f
    JOIN documents d ON d.id = f.document_id WHERE d.owner_id = :owner AND d.deleted_at IS NULL);

-- name: near_words(owner, words, edits, most)
-- For each of these words: words of the owner of about the same length that begin or end like it, with the number of documents that list
-- them.
SELECT word, array_agg(near) AS nears, array_agg(listed) AS listed FROM (
    SELECT w.word, n.near, count(DISTINCT n.document_id)::integer AS listed
    FROM unnest(:words::text[], :edits::integer[]) AS w (word, edits)
    CROSS JOIN LATERAL (
        (SELECT v.word AS near, v.document_id FROM vocabulary v
         WHERE v.owner_id = :owner AND left(v.word, 2) = left(w.word, 2)
           AND length(v.word) BETWEEN length(w.word) - w.edits AND length(w.word) + w.edits LIMIT :most)
        UNION ALL
        (SELECT v.word, v.document_id FROM vocabulary v
         WHERE v.owner_id = :owner AND right(v.word, 2) = right(w.word, 2)
           AND length(v.word) BETWEEN length(w.word) - w.edits AND length(w.word) + w.edits LIMIT :most)) AS n
    GROUP BY 1, 2) AS compared
GROUP BY 1;

-- name: models_in_use(owner)
-- The models by whose vectors documents of the owner are searched.
SELECT m.name FROM embedding_models m WHERE EXISTS (
    SELECT FROM documents d WHERE d.owner_id = :owner AND d.embedding_model_id = m.id AND d.deleted_at IS NULL) ORDER BY m.id;

-- name: by_vector(owner, chosen, model, vector, required, excluded, by_index, most)
-- Each document is looked up by its key: the planner would read the documents of all owners.
SELECT n.chunk_id, n.document_id, n.score, d.language FROM nearest_chunks(
    :owner, :chosen, (SELECT id FROM embedding_models WHERE name = :model), :vector::vector, :required::tsquery,
    :excluded::tsquery, :by_index, :most) AS n
CROSS JOIN LATERAL (SELECT language FROM documents WHERE id = n.document_id OFFSET 0) AS d ORDER BY n.score DESC, n.chunk_id;

-- name: count_chunks(owner)
SELECT coalesce(sum(chunks), 0)::integer AS chunks FROM owner_texts(:owner);

-- name: details(owner, chunks, marked, begin, end)
-- The details of hits: the chunk with its matched words between two marks, and where its pages begin.
SELECT c.id AS chunk_id, d.id AS document_id, coalesce(nullif(d.title, ''), d.filename) AS title, d.source_type,
       c.heading_path, c.char_start, c.page_from, c.page_to, c.seconds, d.source_url,
       CASE WHEN :marked::tsquery IS NULL THEN plain.text
            ELSE ts_headline(search_config(d.language), plain.text, :marked,
                             'HighlightAll=true, StartSel=' || :begin || ', StopSel=' || :end) END AS marked,
       CASE WHEN c.page_from < c.page_to THEN ARRAY(
           SELECT p.char_start FROM pages p
           WHERE p.document_id = d.id AND p.revision = d.revision AND p.number > c.page_from AND p.number <= c.page_to
           ORDER BY p.number) ELSE '{}' END AS page_starts
FROM documents d JOIN chunks c ON c.document_id = d.id AND c.revision = d.revision
CROSS JOIN LATERAL (SELECT translate(c.content, :begin || :end, '') AS text) AS plain
WHERE c.id = ANY (:chunks) AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: mean_vector(owner, document, model)
-- The mean vector of a document, by this model or, if it has none (as for visitors), by another one.
SELECT m.name AS model, avg(e.vector)::text AS mean
FROM documents d JOIN chunks c ON c.document_id = d.id AND c.revision = d.revision
JOIN chunk_embeddings e ON e.chunk_id = c.id JOIN embedding_models m ON m.id = e.model_id
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL
GROUP BY m.id, d.embedding_model_id ORDER BY m.id = d.embedding_model_id DESC NULLS LAST, m.name = :model DESC, count(*) DESC LIMIT 1;

-- name: about(owner, documents)
SELECT id AS document_id, coalesce(nullif(title, ''), filename) AS title, source_type, summary
FROM documents WHERE id = ANY (:documents) AND owner_id = :owner AND deleted_at IS NULL;

-- name: similar_tags(owner, name, model, most)
-- The owner's tags with a meaning similar to this one, by this model or else another, with their number of documents.
WITH mine AS MATERIALIZED (
    SELECT t.id, e.model_id, e.vector
    FROM tags t JOIN tag_embeddings e ON e.tag_id = t.id JOIN embedding_models m ON m.id = e.model_id
    WHERE t.owner_id = :owner AND lower(t.name) = lower(:name)
    ORDER BY m.name = :model DESC LIMIT 1
)
SELECT t.name, 1 - (near.vector <=> mine.vector) AS score, used.documents
FROM mine JOIN tag_embeddings near ON near.model_id = mine.model_id AND near.tag_id <> mine.id
JOIN tags t ON t.id = near.tag_id AND t.owner_id = :owner
CROSS JOIN LATERAL (
    SELECT coalesce(sum(c.documents), 0)::integer AS documents FROM document_counts c
    WHERE c.owner_id = :owner AND c.name = 'tag' AND c.value = t.id::text) AS used
WHERE used.documents > 0 ORDER BY score DESC, t.name LIMIT :most;

-- name: kinds(owner)
-- Source types and languages of the owner's documents.
SELECT CASE name WHEN 'source_type' THEN value END AS source_type, CASE name WHEN 'language' THEN primary_language(value) END AS language
FROM document_counts WHERE owner_id = :owner AND name IN ('source_type', 'language') GROUP BY name, value HAVING sum(documents) > 0;

-- name: source_chunks(owner, chunks)
-- The chunks that a question is answered from, of current revisions, and where their pages begin.
SELECT c.id AS chunk_id, d.id AS document_id, coalesce(nullif(d.title, ''), d.filename) AS title, c.content,
       c.heading_path, c.char_start, c.page_from,
       CASE WHEN c.page_from < c.page_to THEN ARRAY(
           SELECT p.char_start FROM pages p
           WHERE p.document_id = d.id AND p.revision = d.revision AND p.number > c.page_from AND p.number <= c.page_to
           ORDER BY p.number) ELSE '{}' END AS page_starts
FROM documents d JOIN chunks c ON c.document_id = d.id AND c.revision = d.revision
WHERE c.id = ANY (:chunks) AND d.owner_id = :owner AND d.deleted_at IS NULL
ORDER BY array_position(:chunks, c.id);

-- name: named_documents(owner, chosen, limited, words, most)
-- The documents whose sender, title, file name, author or kind contain most of these words.
SELECT d.id, coalesce(nullif(d.title, ''), d.filename) AS title, n.score, n.of_sender
FROM documents d JOIN searched_documents(:owner, :chosen) s ON s.id = d.id
CROSS JOIN LATERAL (SELECT lower(concat_ws(' ', d.sender, d.title, d.author, d.filename, d.kind)) AS named) AS t
CROSS JOIN LATERAL (SELECT count(*)::integer AS score, coalesce(bool_or(position(w.word IN lower(d.sender)) > 0), false) AS of_sender
                    FROM unnest(:words::text[]) AS w (word) WHERE position(w.word IN t.named) > 0) AS n
WHERE d.text_ready AND (n.score > 0 OR :limited)
ORDER BY n.score DESC, d.document_date DESC NULLS LAST, d.id LIMIT :most;

-- name: chunks_of_page(document, page)
-- The chunks of a page, or of the whole document if the page is not known.
SELECT c.id, c.content, c.page_from FROM documents d JOIN chunks c ON c.document_id = d.id AND c.revision = d.revision
WHERE d.id = :document AND (:page::integer IS NULL OR :page BETWEEN c.page_from AND c.page_to) ORDER BY c.index LIMIT 200;
