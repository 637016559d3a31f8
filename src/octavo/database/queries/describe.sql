-- name: chunks(document, revision)
-- The chunks of a revision in order.
SELECT id, content, heading_path FROM chunks WHERE document_id = :document AND revision = :revision ORDER BY index;

-- name: tries(job)
-- The attempts since the last finished stage, including the current one.
SELECT failures + waits + 1 AS tries FROM jobs WHERE id = :job;

-- name: current_revision(document)
-- The revision of a document that is not in the trash; no row if there is none.
SELECT revision FROM documents WHERE id = :document AND deleted_at IS NULL;

-- name: known(document)
-- The facts of a document that help to describe it, without those of an earlier description.
SELECT d.source_type, d.filename, max(f.value) FILTER (WHERE f.name = 'title') AS title,
       max(f.value) FILTER (WHERE f.name = 'author') AS author,
       max(f.normalized) FILTER (WHERE f.name = 'date') AS document_date,
       max(f.normalized) FILTER (WHERE f.name = 'language') AS language,
       max(f.value) FILTER (WHERE f.name = 'kind') AS kind
FROM documents d
LEFT JOIN LATERAL (
    SELECT DISTINCT ON (name) name, value, normalized FROM facts
    WHERE document_id = d.id AND made_by <> 'description'
    ORDER BY name, fact_rank(source, status), confidence DESC, number) AS f ON true
WHERE d.id = :document GROUP BY d.id, d.source_type, d.filename;

-- name: known_tags(document, limit)
-- Tags of the document's owner that at least two documents have, the oldest first.
SELECT t.name FROM tags t JOIN documents d ON d.owner_id = t.owner_id
WHERE d.id = :document
  AND (SELECT count(*) FROM (SELECT FROM document_tags dt WHERE dt.tag_id = t.id LIMIT 2) AS used) = 2
ORDER BY t.created_at LIMIT :limit;

-- name: forget_concepts(chunks)!
DELETE FROM chunk_concepts WHERE chunk_id = ANY (:chunks);

-- name: describe_chunks(insights)!
-- Duplicate concepts of a chunk are stored once.
WITH given AS (
    SELECT * FROM jsonb_to_recordset(:insights) AS i (
        chunk uuid, themes jsonb, concepts jsonb, tone jsonb, importance real, summary text, made_by text)
), described AS (
    UPDATE chunks SET themes = ARRAY(SELECT jsonb_array_elements_text(t.themes)), tone = t.tone, importance = t.importance,
                      summary = t.summary, made_by = t.made_by
    FROM given t WHERE chunks.id = t.chunk
)
INSERT INTO chunk_concepts (chunk_id, concept, importance, owner_id)
SELECT t.chunk, c.text, c.importance, d.owner_id
FROM given t JOIN chunks k ON k.id = t.chunk JOIN documents d ON d.id = k.document_id
CROSS JOIN LATERAL jsonb_to_recordset(t.concepts) AS c (text text, importance real)
ON CONFLICT DO NOTHING;

-- name: embedding_model(name, dimensions)
SELECT embedding_model(:name, :dimensions);

-- name: unembedded(document, model)
-- Chunks of the current revision without a vector of the model.
SELECT c.id, c.content, c.heading_path
FROM documents d JOIN chunks c ON c.document_id = d.id AND c.revision = d.revision
WHERE d.id = :document AND NOT EXISTS (
    SELECT FROM chunk_embeddings e JOIN embedding_models m ON m.id = e.model_id WHERE e.chunk_id = c.id AND m.name = :model)
ORDER BY c.index;

-- name: insert_chunk_vectors(model, chunks, vectors)!
-- Chunks deleted in the meantime are skipped.
INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector)
SELECT :model, c.id, d.owner_id, d.id, given.vector::vector
FROM unnest(:chunks::uuid[], :vectors::text[]) AS given (chunk, vector)
JOIN chunks c ON c.id = given.chunk JOIN documents d ON d.id = c.document_id
ON CONFLICT (chunk_id, model_id) DO UPDATE SET vector = excluded.vector;

-- name: set_embeddings_ready(document)!
UPDATE documents SET embeddings_ready = true, updated_at = clock_timestamp() WHERE id = :document;

-- name: unembedded_tags(document, model)
SELECT t.id, t.name FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
WHERE dt.document_id = :document AND NOT EXISTS (
    SELECT FROM tag_embeddings e JOIN embedding_models m ON m.id = e.model_id WHERE e.tag_id = t.id AND m.name = :model)
ORDER BY t.id;

-- name: insert_tag_vectors(model, tags, vectors)!
INSERT INTO tag_embeddings (model_id, tag_id, vector)
SELECT :model, t.id, given.vector::vector
FROM unnest(:tags::uuid[], :vectors::text[]) AS given (tag, vector) JOIN tags t ON t.id = given.tag
ON CONFLICT (tag_id, model_id) DO UPDATE SET vector = excluded.vector;

-- name: set_embeddings_ready_if_whole(document)!
UPDATE documents d SET embeddings_ready = true, updated_at = clock_timestamp()
WHERE d.id = :document AND NOT d.embeddings_ready AND NOT EXISTS (
    SELECT FROM chunks c WHERE c.document_id = d.id AND c.revision = d.revision
    AND NOT EXISTS (SELECT FROM chunk_embeddings e WHERE e.chunk_id = c.id));

-- name: documents_to_embed(owner, model, kind)
-- Documents with chunks that lack a vector of the model, except those with an active job of this kind.
SELECT d.id FROM documents d
WHERE d.owner_id = :owner AND d.deleted_at IS NULL AND d.status = 'completed'
  AND EXISTS (SELECT FROM chunks c WHERE c.document_id = d.id AND c.revision = d.revision AND NOT EXISTS (
      SELECT FROM chunk_embeddings e JOIN embedding_models m ON m.id = e.model_id WHERE e.chunk_id = c.id AND m.name = :model))
  AND NOT EXISTS (SELECT FROM jobs j WHERE j.document_id = d.id AND j.kind = :kind AND j.status IN ('queued', 'processing'))
ORDER BY d.created_at, d.id;

-- name: use_model(document, model)!
-- The document is searched by the vectors of this model, if all its chunks have one. The vectors of its earlier model can be
-- deleted later.
WITH changed AS (
    UPDATE documents d SET embedding_model_id = m.id, updated_at = clock_timestamp()
    FROM embedding_models m, documents before
    WHERE d.id = :document AND before.id = d.id AND m.name = :model AND d.embedding_model_id IS DISTINCT FROM m.id
      AND has_vectors(d.id, d.revision, m.id)
    RETURNING d.id, m.id AS model_id, before.embedding_model_id AS earlier
), used_again AS (
    DELETE FROM replaced_models r USING changed c WHERE r.document_id = c.id AND r.model_id = c.model_id
)
INSERT INTO replaced_models (document_id, model_id, replaced_at)
SELECT id, earlier, engine_now() FROM changed WHERE earlier IS NOT NULL
ON CONFLICT (document_id, model_id) DO UPDATE SET replaced_at = excluded.replaced_at;

-- name: delete_old_vectors(embed, compare, most)!
-- Deletes at most `most` vectors of earlier models, if their documents have been compared since, and no document of the owner is
-- searched by that model any more.
DELETE FROM chunk_embeddings e USING (
    SELECT old.chunk_id, old.model_id FROM replaced_models r
    JOIN documents d ON d.id = r.document_id AND d.embedding_model_id <> r.model_id
    JOIN chunk_embeddings old ON old.document_id = r.document_id AND old.model_id = r.model_id
    WHERE EXISTS (
        SELECT FROM jobs j WHERE j.document_id = d.id AND j.kind = :compare AND j.status = 'complete'
        AND j.completed_at >= r.replaced_at)
      AND NOT EXISTS (
        SELECT FROM jobs j WHERE j.document_id = d.id AND j.kind IN (:embed, :compare)
        AND j.status IN ('queued', 'processing', 'paused'))
      AND NOT EXISTS (
        SELECT FROM documents other
        WHERE other.owner_id = d.owner_id AND other.embedding_model_id = r.model_id AND other.deleted_at IS NULL)
    LIMIT :most) AS o
WHERE e.chunk_id = o.chunk_id AND e.model_id = o.model_id;

-- name: forget_replaced_models()!
DELETE FROM replaced_models r WHERE NOT EXISTS (
    SELECT FROM chunk_embeddings e WHERE e.document_id = r.document_id AND e.model_id = r.model_id);

-- name: outdated_documents(model, visitors, kind, most)
-- Documents searched by the vectors of another model, oldest first, each with the key of its job: one per model and day, so that
-- a failure is not repeated every few minutes.
SELECT d.id, d.owner_id, n.key FROM documents d JOIN owners o ON o.id = d.owner_id
JOIN embedding_models m ON m.id = d.embedding_model_id
CROSS JOIN LATERAL (SELECT concat_ws(':', 'vectors', d.id, d.revision, :model::text, engine_now()::date) AS key) AS n
WHERE m.name <> :model AND d.deleted_at IS NULL AND d.status = 'completed' AND (:visitors OR o.kind <> 'anonymous')
  AND NOT EXISTS (
      SELECT FROM jobs j WHERE j.document_id = d.id AND j.kind = :kind
      AND (j.key = n.key OR j.status IN ('queued', 'processing', 'paused')))
ORDER BY d.created_at, d.id LIMIT :most;

-- name: embedding_progress(owner, model, visitors)
-- How many documents of the owner have vectors, and how many of them are searched by this model. Documents of visitors have local
-- vectors.
SELECT count(*)::integer AS documents,
       count(*) FILTER (WHERE m.name = :model OR o.kind = 'anonymous' AND NOT :visitors)::integer AS done
FROM documents d JOIN owners o ON o.id = d.owner_id JOIN embedding_models m ON m.id = d.embedding_model_id
WHERE d.owner_id = :owner AND d.deleted_at IS NULL;
