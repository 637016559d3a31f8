-- name: subject(document)
-- The document to compare: whether it cannot be compared (in the trash or without vectors), and its current revision.
SELECT owner_id, revision, deleted_at IS NOT NULL OR NOT embeddings_ready AS is_out, language FROM documents WHERE id = :document;

-- name: model_of(document, preferred)
-- The model whose vectors are compared: the configured one if all chunks have its vectors, otherwise the newest for which
-- they all do.
SELECT m.id, m.name, m.dimensions
FROM embedding_models m
WHERE EXISTS (SELECT FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision WHERE d.id = :document)
  AND NOT EXISTS (
    SELECT FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
    WHERE d.id = :document AND NOT EXISTS (
        SELECT FROM chunk_embeddings e WHERE e.chunk_id = c.id AND e.model_id = m.id))
ORDER BY m.name = :preferred DESC, m.id DESC LIMIT 1;

-- name: start_of_comparison()
SELECT clock_timestamp() AS started;

-- name: chunks_of(document)
SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE d.id = :document ORDER BY c.index;

-- name: excluded_documents(owner, document)
-- Documents that a document is not compared with: itself, its other versions, duplicates, and documents in the trash. Each is found
-- by an index, without reading all documents of the owner.
SELECT d.id FROM documents mine JOIN documents d ON d.family_id = mine.family_id WHERE mine.id = :document AND d.owner_id = :owner
UNION
SELECT d.id FROM documents mine JOIN documents d ON d.owner_id = :owner AND d.sha256 = mine.sha256 WHERE mine.id = :document
UNION
SELECT d.id FROM documents d WHERE d.owner_id = :owner AND d.deleted_at IS NOT NULL;

-- name: owner_vectors(owner, model, most)
-- Number of vectors an owner has of a model, counted up to a limit.
SELECT count(*)::integer FROM (
    SELECT FROM chunk_embeddings WHERE owner_id = :owner AND model_id = :model LIMIT :most) AS counted;

-- name: vectors_of(chunks, model)
-- Ids and vectors of chunks, each packed into one value.
SELECT count(*)::integer, string_agg(uuid_send(chunk_id), ''::bytea), string_agg(vector_send(vector), ''::bytea)
FROM chunk_embeddings WHERE chunk_id = ANY (:chunks) AND model_id = :model;

-- name: vectors_to_compare(owner, model, excluded, blocks, block)
-- The same for one block of all vectors of an owner. Ids end in random bits, so all blocks have about the same size.
SELECT count(*)::integer, string_agg(uuid_send(chunk_id), ''::bytea), string_agg(vector_send(vector), ''::bytea)
FROM chunk_embeddings
WHERE owner_id = :owner AND model_id = :model AND document_id <> ALL (:excluded)
  AND (:blocks::integer = 1
       OR mod(get_byte(uuid_send(chunk_id), 14) * 256 + get_byte(uuid_send(chunk_id), 15), :blocks::integer) = :block::integer);

-- name: set_index_search_width(ef)
-- The index contains the chunks of all owners, so the scan continues until enough chunks of this owner are found.
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', :ef, true);

-- name: nearest(chunks, owner, excluded, most)
-- The nearest chunks of many chunks, by the index of a model. The model's id and dimensions are part of the query text,
-- because the index is partial. Each chunk also finds itself, unless the index search missed it.
SELECT q.chunk_id AS source, n.chunk_id AS target, 1 - n.distance AS similarity
FROM chunk_embeddings q CROSS JOIN LATERAL (
    SELECT e.chunk_id, e.vector::{type} <=> q.vector::{type} AS distance FROM chunk_embeddings e
    WHERE e.model_id = {model} AND e.owner_id = :owner AND (e.document_id <> ALL (:excluded) OR e.chunk_id = q.chunk_id)
    ORDER BY e.vector::{type} <=> q.vector::{type} LIMIT :most + 1) AS n
WHERE q.chunk_id = ANY (:chunks) AND q.model_id = {model};

-- name: has_index(name)
SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(:name) AND indisvalid);

-- name: by_concepts(chunks, owner, excluded, model, least_tone, most, most_opposed, most_per_concept, most_candidates)
-- Chunks that share concepts with the given ones: those that share most, and in addition those of opposite tone. The candidates are
-- the chunks with the rarest concepts of each given chunk. Of every concept, at most `most_per_concept` chunks are counted and read,
-- the most important first, so that the cost does not grow with the number of chunks of the owner.
WITH mine AS (
    SELECT chunk_id, lower(concept) AS concept, importance FROM chunk_concepts WHERE chunk_id = ANY (:chunks)
), counted AS (
    SELECT m.concept, (
        SELECT count(*) FROM (
            SELECT FROM chunk_concepts k WHERE k.owner_id = :owner AND lower(k.concept) = m.concept
            LIMIT :most_per_concept) AS found) AS number
    FROM (SELECT DISTINCT concept FROM mine) AS m
), rarest AS (
    SELECT source, concept FROM (
        SELECT m.chunk_id AS source, m.concept,
               sum(c.number) OVER (PARTITION BY m.chunk_id ORDER BY c.number, m.concept) - c.number AS before
        FROM (SELECT DISTINCT chunk_id, concept FROM mine) AS m JOIN counted c USING (concept)) AS added_up
    WHERE before < :most_candidates
), theirs AS MATERIALIZED (
    SELECT r.concept, t.chunk_id AS target FROM (SELECT DISTINCT concept FROM rarest) AS r
    CROSS JOIN LATERAL (
        SELECT k.chunk_id FROM chunk_concepts k
        JOIN chunks c ON c.id = k.chunk_id JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
        WHERE k.owner_id = :owner AND lower(k.concept) = r.concept AND d.id <> ALL (:excluded)
        ORDER BY k.importance DESC, k.chunk_id LIMIT :most_per_concept) AS t
), shared AS (
    SELECT p.source, p.target, sum(least(m.importance, k.importance)) AS weight
    FROM (SELECT DISTINCT source, target FROM rarest JOIN theirs USING (concept)) AS p
    JOIN mine m ON m.chunk_id = p.source
    JOIN chunk_concepts k ON k.chunk_id = p.target AND lower(k.concept) = m.concept
    GROUP BY 1, 2
), toned AS (
    SELECT s.*, coalesce(sign(m.polarity) * sign(t.polarity) < 0 AND least(abs(m.polarity), abs(t.polarity)) >= :least_tone::float8,
                         false) AS opposed
    FROM shared s
    JOIN (SELECT id, (tone ->> 'polarity')::float8 AS polarity FROM chunks) AS m ON m.id = s.source
    JOIN (SELECT id, (tone ->> 'polarity')::float8 AS polarity FROM chunks) AS t ON t.id = s.target
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY source ORDER BY weight DESC, target) AS place,
           row_number() OVER (PARTITION BY source, opposed ORDER BY weight DESC, target) AS place_of_tone
    FROM toned
)
SELECT p.source, p.target, 1 - (a.vector <=> b.vector) AS similarity
FROM placed p JOIN chunk_embeddings a ON a.chunk_id = p.source AND a.model_id = :model
JOIN chunk_embeddings b ON b.chunk_id = p.target AND b.model_id = :model
WHERE p.place <= :most OR p.opposed AND p.place_of_tone <= :most_opposed;

-- name: comparable_chunks(owner, chunks)
-- Chunks with the data the engines use.
SELECT c.id, c.document_id, c.content, c.themes, c.importance, (c.tone ->> 'polarity')::float8 AS polarity,
       c.tone ->> 'primary_emotion' AS emotion, d.language,
       coalesce((SELECT jsonb_object_agg(k.concept, k.importance) FROM chunk_concepts k WHERE k.chunk_id = c.id), '{}') AS concepts
FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE c.id = ANY (:chunks) AND d.owner_id = :owner;

-- name: domains(owner, documents, model, most)
-- The most frequent themes of documents, and the mean of their vectors.
SELECT d.id, ARRAY(
    SELECT lower(t.theme) FROM chunks c CROSS JOIN unnest(c.themes) AS t (theme)
    WHERE c.document_id = d.id AND c.revision = d.revision
    GROUP BY 1 ORDER BY count(*) DESC, sum(c.importance) DESC NULLS LAST, 1 LIMIT :most) AS topics, (
    SELECT avg(e.vector)::text FROM chunk_embeddings e JOIN chunks c ON c.id = e.chunk_id
    WHERE e.document_id = d.id AND e.model_id = :model AND c.revision = d.revision) AS mean
FROM documents d WHERE d.id = ANY (:documents) AND d.owner_id = :owner;

-- name: lock_owner(owner)
-- Only one transaction at a time saves connections of an owner, which rules out deadlocks.
SELECT pg_advisory_xact_lock(hashtextextended('connections:' || :owner::text, 0));

-- name: lock_documents(documents)
-- Locks documents, so that their revision does not change until the transaction ends.
SELECT id FROM documents WHERE id = ANY (:documents) ORDER BY id FOR SHARE;

-- name: delete_earlier(document, started)!
-- Connections that a later comparison found are newer than what this one knows, so they stay.
DELETE FROM connections
WHERE (source_document = :document OR target_document = :document) AND found_at <= :started;

-- name: save(owner, found, started)!
-- Save connections, except those whose chunks or documents are gone.
INSERT INTO connections (id, owner_id, engine, source_chunk, target_chunk, source_document, target_document, strength,
                         source_start, source_end, target_start, target_end, explanation, status, made_by, digest, detail, found_at)
SELECT f.id, :owner, f.engine, s.id, t.id, s.document_id, t.document_id, f.strength, f.source_start, f.source_end,
       f.target_start, f.target_end, f.explanation, f.status, f.made_by, decode(f.digest, 'hex'), f.detail,
       :started
FROM jsonb_to_recordset(:found) AS f (
    id uuid, engine text, source uuid, target uuid, strength real, source_start integer, source_end integer,
    target_start integer, target_end integer, explanation text, status text, made_by text, digest text, detail jsonb)
JOIN chunks s ON s.id = f.source JOIN documents ds ON ds.id = s.document_id AND ds.revision = s.revision
JOIN chunks t ON t.id = f.target JOIN documents dt ON dt.id = t.document_id AND dt.revision = t.revision
WHERE ds.owner_id = :owner AND dt.owner_id = :owner AND ds.deleted_at IS NULL AND dt.deleted_at IS NULL
ON CONFLICT DO NOTHING;

-- name: delete_contradicted(document)!
-- Chunks that contradict each other are not called similar. Either of the two comparisons may have found the contradiction.
DELETE FROM connections s USING connections c
WHERE s.engine = 'semantic_similarity' AND c.engine = 'contradiction_detection'
  AND (s.source_chunk, s.target_chunk) = (c.source_chunk, c.target_chunk)
  AND (s.source_document = :document OR s.target_document = :document);

-- name: count_by_engine(document)
SELECT engine, count(*)::integer FROM connections
WHERE source_document = :document OR target_document = :document GROUP BY engine;

-- name: prune(chunks, engine, most)!
-- Keep only the strongest connections of each chunk.
DELETE FROM connections WHERE id IN (
    SELECT id FROM (
        SELECT c.id, row_number() OVER (PARTITION BY k.chunk ORDER BY c.strength DESC, c.id) AS place
        FROM unnest(:chunks::uuid[]) AS k (chunk)
        JOIN LATERAL (
            SELECT id, strength FROM connections WHERE source_chunk = k.chunk AND engine = :engine
            UNION ALL
            SELECT id, strength FROM connections WHERE target_chunk = k.chunk AND engine = :engine) AS c ON true) AS placed
    WHERE place > :most);

-- name: model(model)
SELECT id, name, dimensions FROM embedding_models WHERE id = :model;

-- name: drop_index()!
-- Drops the invalid index that a killed attempt left behind.
DROP INDEX CONCURRENTLY IF EXISTS {index};

-- name: drop_earlier_index()!
DROP INDEX CONCURRENTLY IF EXISTS {earlier};

-- name: raise_maintenance_memory(memory)
-- An index that fits into memory is built several times faster.
SELECT set_config('maintenance_work_mem', :memory, false);

-- name: create_index()!
CREATE INDEX CONCURRENTLY {index} ON chunk_embeddings USING hnsw ((vector::{type}) halfvec_cosine_ops) WHERE model_id = {model};

-- name: models_without_index(most)
-- Models that need an index and have none: an owner has more of their vectors than can be compared one by one. Each is returned
-- with that owner and the key of its job, which allows one job per day, so that a failure is not repeated every few minutes.
SELECT m.id AS model, o.owner_id, concat_ws(':', 'chunk_embeddings_half', m.id, engine_now()::date) AS key
FROM embedding_models m
CROSS JOIN LATERAL (
    SELECT d.owner_id FROM documents d JOIN document_passages p ON p.document_id = d.id AND p.revision = d.revision
    WHERE d.embedding_model_id = m.id GROUP BY 1 HAVING sum(p.passages) > :most ORDER BY sum(p.passages) DESC LIMIT 1) AS o
WHERE NOT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('chunk_embeddings_half_' || m.id) AND indisvalid)
  AND NOT EXISTS (
      SELECT FROM jobs j WHERE j.kind = 'index_vectors' AND j.status IN ('queued', 'processing', 'paused')
      AND j.input @> jsonb_build_object('model', m.id));
