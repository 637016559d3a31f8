-- name: subject(document)
-- The document that is compared: what its passages are, of the revision that is read.
SELECT owner_id, revision, deleted_at IS NOT NULL OR NOT embeddings_ready AS is_out, language FROM documents WHERE id = :document;

-- name: model_of(document, preferred)
-- The model whose vectors are compared: that of the settings, if all passages have one of it, or the newest they all have.
SELECT m.id, m.name, m.dimensions
FROM embedding_models m
WHERE EXISTS (SELECT FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision WHERE d.id = :document)
  AND NOT EXISTS (
    SELECT FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
    WHERE d.id = :document AND NOT EXISTS (
        SELECT FROM chunk_embeddings e WHERE e.chunk_id = c.id AND e.model_id = m.id))
ORDER BY m.name = :preferred DESC, m.id DESC LIMIT 1;

-- name: passages_of(document)
SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE d.id = :document ORDER BY c.index;

-- name: left_out(owner, document)
-- Documents that it is not compared with: itself, its other versions, the same file again, and what lies in the trash.
SELECT d.id FROM documents d JOIN documents mine ON mine.id = :document
WHERE d.owner_id = :owner AND (d.family_id = mine.family_id OR d.sha256 = mine.sha256 OR d.deleted_at IS NOT NULL);

-- name: owner_vectors(owner, model, most)
-- How many vectors of a model an owner has, counted no further than it matters.
SELECT count(*)::integer FROM (
    SELECT FROM chunk_embeddings WHERE owner_id = :owner AND model_id = :model LIMIT :most) AS counted;

-- name: vectors_of(chunks, model)
-- Ids and vectors, each in one value.
SELECT count(*)::integer, string_agg(uuid_send(chunk_id), ''::bytea), string_agg(vector_send(vector), ''::bytea)
FROM chunk_embeddings WHERE chunk_id = ANY (:chunks) AND model_id = :model;

-- name: vectors_to_compare(owner, model, left_out, blocks, block)
-- The same for a part of all that an owner has; ids end in chance, so parts are of about the same size.
SELECT count(*)::integer, string_agg(uuid_send(chunk_id), ''::bytea), string_agg(vector_send(vector), ''::bytea)
FROM chunk_embeddings
WHERE owner_id = :owner AND model_id = :model AND document_id <> ALL (:left_out)
  AND (:blocks::integer = 1
       OR mod(get_byte(uuid_send(chunk_id), 14) * 256 + get_byte(uuid_send(chunk_id), 15), :blocks::integer) = :block::integer);

-- name: look_far(ef)
-- An owner's passages may be few among the nearest that an index knows, so it goes on until there are enough.
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', :ef, true);

-- name: nearest(chunks, owner, left_out, most)
-- The nearest of many passages at once, by the index of a model; its number and length stand in the text of the query,
-- because the index is only for that model. Each passage is among its own nearest, unless the index led astray.
SELECT q.chunk_id AS source, n.chunk_id AS target, 1 - n.distance AS similarity
FROM chunk_embeddings q CROSS JOIN LATERAL (
    SELECT e.chunk_id, e.vector::{type} <=> q.vector::{type} AS distance FROM chunk_embeddings e
    WHERE e.model_id = {model} AND e.owner_id = :owner AND (e.document_id <> ALL (:left_out) OR e.chunk_id = q.chunk_id)
    ORDER BY e.vector::{type} <=> q.vector::{type} LIMIT :most + 1) AS n
WHERE q.chunk_id = ANY (:chunks) AND q.model_id = {model};

-- name: has_index(name)
SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(:name) AND indisvalid);

-- name: by_concepts(chunks, owner, left_out, model, most)
-- Passages that share concepts with each of some, those first that share most.
WITH shared AS (
    SELECT mine.chunk_id AS source, theirs.chunk_id AS target, sum(least(mine.importance, theirs.importance)) AS weight
    FROM chunk_concepts mine JOIN chunk_concepts theirs ON lower(theirs.concept) = lower(mine.concept)
    JOIN chunks t ON t.id = theirs.chunk_id JOIN documents d ON d.id = t.document_id AND d.revision = t.revision
    WHERE mine.chunk_id = ANY (:chunks) AND d.owner_id = :owner AND d.id <> ALL (:left_out)
    GROUP BY 1, 2
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY source ORDER BY weight DESC, target) AS place FROM shared
)
SELECT p.source, p.target, 1 - (a.vector <=> b.vector) AS similarity
FROM placed p JOIN chunk_embeddings a ON a.chunk_id = p.source AND a.model_id = :model
JOIN chunk_embeddings b ON b.chunk_id = p.target AND b.model_id = :model
WHERE p.place <= :most;

-- name: pieces(owner, chunks)
-- Passages as the engines see them.
SELECT c.id, c.document_id, c.content, c.themes, c.importance, (c.tone ->> 'polarity')::float8 AS polarity,
       c.tone ->> 'primary_emotion' AS emotion, d.language,
       coalesce((SELECT jsonb_object_agg(k.concept, k.importance) FROM chunk_concepts k WHERE k.chunk_id = c.id), '{}') AS concepts,
       ARRAY(SELECT lower(t.name) FROM document_tags dt JOIN tags t ON t.id = dt.tag_id WHERE dt.document_id = d.id) AS tags
FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE c.id = ANY (:chunks) AND d.owner_id = :owner;

-- name: wait_for_turn(owner)
-- Those who save connections of one owner take turns, so that none waits for rows of another that waits for his.
SELECT pg_advisory_xact_lock(hashtextextended('connections:' || :owner::text, 0));

-- name: hold_documents(documents)
-- Nothing of these changes its revision until the transaction ends.
SELECT id FROM documents WHERE id = ANY (:documents) ORDER BY id FOR SHARE;

-- name: forget(document)!
DELETE FROM connections WHERE source_document = :document OR target_document = :document;

-- name: save(owner, found)!
-- All that was found, without what is not there any more.
INSERT INTO connections (id, owner_id, engine, source_chunk, target_chunk, source_document, target_document, strength,
                         source_start, source_end, target_start, target_end, explanation, status, made_by, digest, detail)
SELECT f.id, :owner, f.engine, s.id, t.id, s.document_id, t.document_id, f.strength, f.source_start, f.source_end,
       f.target_start, f.target_end, f.explanation, f.status, f.made_by, decode(f.digest, 'hex'), f.detail
FROM jsonb_to_recordset(:found) AS f (
    id uuid, engine text, source uuid, target uuid, strength real, source_start integer, source_end integer,
    target_start integer, target_end integer, explanation text, status text, made_by text, digest text, detail jsonb)
JOIN chunks s ON s.id = f.source JOIN documents ds ON ds.id = s.document_id AND ds.revision = s.revision
JOIN chunks t ON t.id = f.target JOIN documents dt ON dt.id = t.document_id AND dt.revision = t.revision
WHERE ds.owner_id = :owner AND dt.owner_id = :owner AND ds.deleted_at IS NULL AND dt.deleted_at IS NULL
ON CONFLICT (source_chunk, target_chunk, engine) DO NOTHING;

-- name: how_many(document)
SELECT engine, count(*)::integer FROM connections
WHERE source_document = :document OR target_document = :document GROUP BY engine;

-- name: prune(chunks, engine, most)!
-- No passage has more than so many; the strongest stay.
DELETE FROM connections WHERE id IN (
    SELECT id FROM (
        SELECT c.id, row_number() OVER (PARTITION BY k.chunk ORDER BY c.strength DESC, c.id) AS place
        FROM unnest(:chunks::uuid[]) AS k (chunk)
        JOIN LATERAL (
            SELECT id, strength FROM connections WHERE source_chunk = k.chunk AND engine = :engine
            UNION ALL
            SELECT id, strength FROM connections WHERE target_chunk = k.chunk AND engine = :engine) AS c ON true) AS placed
    WHERE place > :most);

-- name: connect_documents(documents, because)
SELECT connect_documents(:documents, :because);

-- name: connectable(owner, documents)
-- Documents of an owner that can be compared, and the job that is in line for it already.
SELECT d.id, d.revision, (
    SELECT j.id FROM jobs j WHERE j.document_id = d.id AND j.kind = 'detect_connections' AND j.status = 'queued' LIMIT 1) AS in_line
FROM documents d
WHERE d.owner_id = :owner AND d.deleted_at IS NULL AND d.embeddings_ready
  AND (:documents::uuid[] IS NULL OR d.id = ANY (:documents))
ORDER BY d.created_at, d.id;

-- name: model(model)
SELECT id, name, dimensions FROM embedding_models WHERE id = :model;

-- name: drop_index()!
-- Half of one, which a kill left.
DROP INDEX CONCURRENTLY IF EXISTS {index};

-- name: more_memory()
-- An index that fits into memory is built several times as fast.
SELECT set_config('maintenance_work_mem', '512MB', false);

-- name: create_index()!
CREATE INDEX CONCURRENTLY {index} ON chunk_embeddings USING hnsw ((vector::{type}) {operators}) WHERE model_id = {model};
