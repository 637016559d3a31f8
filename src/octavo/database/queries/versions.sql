-- name: versions(owner, document)
-- All versions of a document outside the trash, newest first, with the revisions whose text is kept.
SELECT v.id AS document_id, v.version, coalesce(nullif(v.title, ''), v.filename) AS title, v.filename, v.status, v.bytes,
       encode(v.sha256, 'hex') AS sha256, v.created_at, NOT v.superseded AS newest, v.revision,
       ARRAY(SELECT a.revision FROM artifacts a
             WHERE a.document_id = v.id AND a.kind = 'markdown' AND a.name = '' ORDER BY a.revision DESC) AS revisions
FROM documents d JOIN documents v ON v.family_id = d.family_id AND v.owner_id = d.owner_id AND v.deleted_at IS NULL
WHERE d.id = :document AND d.owner_id = :owner
ORDER BY v.version DESC;

-- name: text_of(owner, document, revision)
-- Key of the text of a revision; by default the current one.
SELECT a.revision, a.key, o.bytes
FROM documents d
JOIN artifacts a ON a.document_id = d.id AND a.kind = 'markdown' AND a.name = ''
                AND a.revision = coalesce(:revision, d.revision)
JOIN objects o ON o.key = a.key
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: page_starts(owner, document, revision)
-- The start of each page. It is known only for the current revision.
SELECT p.number, p.char_start FROM pages p JOIN documents d ON d.id = p.document_id
WHERE d.id = :document AND d.owner_id = :owner AND p.revision = :revision ORDER BY p.number;

-- name: other_connections(owner, old, new, most)
-- Connections that only one of two documents has, strongest first. Two connections count as the same if their engine and target
-- chunk are the same. Dismissed ones are omitted.
WITH sides AS (
    SELECT source_document AS mine, engine, strength, explanation, digest,
           target_document AS document_id, target_chunk AS chunk_id, target_start AS start, target_end AS stop
    FROM connections WHERE owner_id = :owner AND source_document IN (:old, :new)
    UNION ALL
    SELECT target_document, engine, strength, explanation, digest, source_document, source_chunk, source_start, source_end
    FROM connections WHERE owner_id = :owner AND target_document IN (:old, :new)
), kept AS (
    SELECT DISTINCT ON (mine, engine, chunk_id) * FROM sides WHERE document_id NOT IN (:old, :new)
    ORDER BY mine, engine, chunk_id, strength DESC
)
SELECT k.mine = :new AS appeared, k.engine, k.strength, k.document_id, coalesce(nullif(d.title, ''), d.filename) AS title,
       k.chunk_id, substr(c.content, k.start + 1, k.stop - k.start) AS quote, k.explanation
FROM kept k JOIN chunks c ON c.id = k.chunk_id
JOIN documents d ON d.id = k.document_id AND d.revision = c.revision AND d.deleted_at IS NULL
WHERE NOT EXISTS (SELECT FROM kept o WHERE o.mine <> k.mine AND o.engine = k.engine AND o.chunk_id = k.chunk_id)
  AND NOT EXISTS (SELECT FROM connection_verdicts v
                  WHERE v.owner_id = :owner AND v.digest = k.digest AND v.verdict = 'dismissed')
ORDER BY k.strength DESC, k.chunk_id LIMIT :most;
