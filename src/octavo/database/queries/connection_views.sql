-- name: connections(owner, document, connection, chunk, other, engine, status, default_weights, after_rank, after_id, most)
-- Connections of a document, whose side is always the source, ordered by strength times the owner's weight. Connections
-- to superseded versions of other documents are omitted.
WITH sides AS (
    SELECT id, engine, strength, status, explanation, made_by, digest, detail, found_at,
           source_chunk AS my_chunk, source_start AS my_start, source_end AS my_end,
           target_chunk AS their_chunk, target_start AS their_start, target_end AS their_end
    FROM connections WHERE source_document = :document AND owner_id = :owner
    UNION ALL
    SELECT id, engine, strength, status, explanation, made_by, digest, detail, found_at,
           target_chunk, target_start, target_end, source_chunk, source_start, source_end
    FROM connections WHERE target_document = :document AND owner_id = :owner
), ranked AS (
    SELECT s.*, coalesce(v.verdict, s.status) AS now,
           round((s.strength * coalesce(CASE s.engine WHEN 'semantic_similarity' THEN w.semantic_similarity
                                                      WHEN 'contradiction_detection' THEN w.contradiction_detection
                                                      ELSE w.thematic_bridge END, (:default_weights::jsonb ->> s.engine)::integer))::numeric, 4) AS rank
    FROM sides s LEFT JOIN connection_verdicts v ON v.owner_id = :owner AND v.digest = s.digest
    LEFT JOIN connection_weights w ON w.owner_id = :owner
    WHERE (:engine::text IS NULL OR s.engine = :engine) AND (:chunk::uuid IS NULL OR s.my_chunk = :chunk)
      AND (:connection::uuid IS NULL OR s.id = :connection)
)
SELECT r.id, r.engine, r.strength, r.now AS status, r.explanation, r.made_by, r.rank, r.detail ->> 'kind' AS kind,
       mine.document_id AS source_document, mine_in.title AS source_title, r.my_chunk AS source_chunk,
       substr(mine.content, r.my_start + 1, r.my_end - r.my_start) AS source_quote, mine.char_start + r.my_start AS source_start,
       page_of(mine, r.my_start) AS source_page,
       theirs.document_id AS target_document, theirs_in.title AS target_title, r.their_chunk AS target_chunk,
       substr(theirs.content, r.their_start + 1, r.their_end - r.their_start) AS target_quote,
       theirs.char_start + r.their_start AS target_start, page_of(theirs, r.their_start) AS target_page
FROM ranked r
JOIN chunks mine ON mine.id = r.my_chunk
JOIN chunks theirs ON theirs.id = r.their_chunk
JOIN (SELECT id, revision, coalesce(nullif(title, ''), filename) AS title FROM documents
      WHERE owner_id = :owner AND deleted_at IS NULL) AS mine_in ON mine_in.id = mine.document_id AND mine_in.revision = mine.revision
JOIN (SELECT id, revision, coalesce(nullif(title, ''), filename) AS title FROM documents
      WHERE owner_id = :owner AND deleted_at IS NULL AND NOT superseded) AS theirs_in ON theirs_in.id = theirs.document_id AND theirs_in.revision = theirs.revision
WHERE (:other::uuid IS NULL OR theirs.document_id = :other) AND CASE WHEN :status::text IS NULL THEN r.now <> 'dismissed' ELSE r.now = :status END
  AND (:after_id::uuid IS NULL OR (r.rank, r.id) < (:after_rank::numeric, :after_id::uuid))
ORDER BY r.rank DESC, r.id DESC LIMIT :most;

-- name: counts(owner, document)
-- Connections of a document by engine, without dismissed ones.
SELECT c.engine, count(*)::integer AS connections
FROM connections c
JOIN documents s ON s.id = c.source_document AND s.deleted_at IS NULL
JOIN documents t ON t.id = c.target_document AND t.deleted_at IS NULL
WHERE c.owner_id = :owner
  AND (c.source_document = :document AND NOT t.superseded OR c.target_document = :document AND NOT s.superseded) AND NOT EXISTS (
    SELECT FROM connection_verdicts v WHERE v.owner_id = :owner AND v.digest = c.digest AND v.verdict = 'dismissed')
GROUP BY 1;

-- name: chunk_counts(owner, document, chunks)
-- Connections of some chunks of a document by engine, without dismissed ones.
SELECT sides.chunk, sides.engine, count(*)::integer AS connections
FROM (SELECT source_chunk AS chunk, target_document AS other, engine, digest FROM connections
      WHERE owner_id = :owner AND source_document = :document AND source_chunk = ANY (:chunks)
      UNION ALL
      SELECT target_chunk, source_document, engine, digest FROM connections
      WHERE owner_id = :owner AND target_document = :document AND target_chunk = ANY (:chunks)) AS sides
JOIN documents d ON d.id = sides.other AND d.deleted_at IS NULL AND NOT d.superseded
WHERE NOT EXISTS (
    SELECT FROM connection_verdicts v WHERE v.owner_id = :owner AND v.digest = sides.digest AND v.verdict = 'dismissed')
GROUP BY 1, 2 ORDER BY 1, 2;

-- name: find(owner, part, most)
-- Connections whose id begins or ends with the given characters, dismissed ones too.
SELECT c.id FROM connections c
JOIN documents s ON s.id = c.source_document AND s.deleted_at IS NULL
JOIN documents t ON t.id = c.target_document AND t.deleted_at IS NULL
WHERE c.owner_id = :owner AND (starts_with(c.id::text, :part) OR right(c.id::text, length(:part)) = :part
  OR starts_with(right(c.id::text, 8), :part))
ORDER BY c.id LIMIT :most;

-- name: document_of(owner, connection)
-- The documents of a connection, and the digest under which its verdict is stored.
SELECT c.source_document, c.target_document, c.digest FROM connections c
JOIN documents s ON s.id = c.source_document AND s.deleted_at IS NULL
JOIN documents t ON t.id = c.target_document AND t.deleted_at IS NULL
WHERE c.id = :connection AND c.owner_id = :owner;

-- name: decide(owner, digest, verdict)!
INSERT INTO connection_verdicts (owner_id, digest, verdict) VALUES (:owner, :digest, :verdict)
ON CONFLICT (owner_id, digest) DO UPDATE SET verdict = excluded.verdict, decided_at = clock_timestamp();

-- name: undecide(owner, digest)!
DELETE FROM connection_verdicts WHERE owner_id = :owner AND digest = :digest;

-- name: weights(owner)
SELECT semantic_similarity, contradiction_detection, thematic_bridge FROM connection_weights WHERE owner_id = :owner;

-- name: set_weights(owner, semantic_similarity, contradiction_detection, thematic_bridge)!
INSERT INTO connection_weights (owner_id, semantic_similarity, contradiction_detection, thematic_bridge)
VALUES (:owner, :semantic_similarity, :contradiction_detection, :thematic_bridge)
ON CONFLICT (owner_id) DO UPDATE SET semantic_similarity = excluded.semantic_similarity,
    contradiction_detection = excluded.contradiction_detection, thematic_bridge = excluded.thematic_bridge;

-- name: edges(owner, focus, engine, least, most)
-- Connected documents for the map: per pair and engine the number of connections and the highest strength, strongest first.
SELECT least(c.source_document, c.target_document) AS one, greatest(c.source_document, c.target_document) AS other, c.engine,
       count(*)::integer AS connections, max(c.strength)::float8 AS strength
FROM connections c
JOIN documents s ON s.id = c.source_document AND s.deleted_at IS NULL
JOIN documents t ON t.id = c.target_document AND t.deleted_at IS NULL
WHERE c.owner_id = :owner AND c.strength >= :least AND (:engine::text IS NULL OR c.engine = :engine)
  AND (:focus::uuid IS NULL OR c.source_document = :focus OR c.target_document = :focus)
  AND (NOT s.superseded OR s.id = :focus) AND (NOT t.superseded OR t.id = :focus)
  AND NOT EXISTS (SELECT FROM connection_verdicts v WHERE v.owner_id = :owner AND v.digest = c.digest AND v.verdict = 'dismissed')
GROUP BY 1, 2, 3 ORDER BY strength DESC, one, other, engine LIMIT :most;

-- name: titles(owner, documents)
SELECT id, coalesce(nullif(title, ''), filename) AS title FROM documents WHERE owner_id = :owner AND id = ANY (:documents);

-- name: last_comparison(owner, document, revision, kind)
-- The newest job that compares a revision of a document.
SELECT id FROM jobs
WHERE document_id = :document AND owner_id = :owner AND kind = :kind AND (input ->> 'revision')::integer = :revision
ORDER BY created_at DESC, id DESC LIMIT 1;

-- name: unfinished_comparisons(owner, kind)
-- Documents that are being processed, or whose comparison waits or runs.
SELECT count(*)::integer AS documents FROM documents d
WHERE d.owner_id = :owner AND d.deleted_at IS NULL AND (d.status = 'pending' OR EXISTS (
    SELECT FROM jobs j WHERE j.document_id = d.id AND j.kind = :kind AND j.status IN ('queued', 'processing', 'paused')));

-- name: failed_comparisons(owner, kind)
SELECT d.id FROM documents d CROSS JOIN LATERAL (
    SELECT j.status FROM jobs j
    WHERE j.document_id = d.id AND j.kind = :kind AND (j.input ->> 'revision')::integer = d.revision
    ORDER BY j.created_at DESC, j.id DESC LIMIT 1) AS last
WHERE d.owner_id = :owner AND d.deleted_at IS NULL AND d.embeddings_ready AND last.status IN ('failed', 'dead_letter')
ORDER BY d.created_at, d.id;

-- name: connectable(owner, documents)
-- Documents of an owner that can be compared, with the job that is already queued for each.
SELECT d.id, d.revision, (
    SELECT j.id FROM jobs j WHERE j.document_id = d.id AND j.kind = 'detect_connections' AND j.status = 'queued' LIMIT 1) AS queued
FROM documents d
WHERE d.owner_id = :owner AND d.deleted_at IS NULL AND d.embeddings_ready
  AND (:documents::uuid[] IS NULL OR d.id = ANY (:documents))
ORDER BY d.created_at, d.id;
