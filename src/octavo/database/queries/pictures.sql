-- name: page(owner, document, number, name)
-- The source file of a page image, and the stored image if there is one.
SELECT d.source_type, d.page_count, s.key, s.revision, p.width AS page_width, a.key AS picture_key,
       encode(o.sha256, 'hex') AS picture_sha256
FROM documents d
JOIN LATERAL (
    -- Of an image there is a copy for screens, which is far quicker to read; it has the first sheet only.
    SELECT key, revision FROM artifacts
    WHERE document_id = d.id AND (revision IN (0, d.revision) OR d.revision = 0)
      AND (kind IN ('source', 'unlocked', 'page_raw') OR kind = 'image_jpeg' AND d.page_count = 1)
    ORDER BY kind = 'source', revision DESC LIMIT 1
) AS s ON true
LEFT JOIN pages p ON p.document_id = d.id AND p.revision = d.revision AND p.number = :number
LEFT JOIN artifacts a ON a.document_id = d.id AND a.revision = s.revision AND a.kind = 'page_picture' AND a.name = :name
LEFT JOIN objects o ON o.key = a.key
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: insert_object(key, bytes, sha256)!
INSERT INTO objects (key, bytes, sha256) VALUES (:key, :bytes, decode(:sha256, 'hex'));

-- name: insert_picture(id, document, revision, name, key)!
-- No row if another request stored it first, or the document is gone.
INSERT INTO artifacts (id, document_id, kind, name, revision, key, content_type)
SELECT :id, d.id, 'page_picture', :name, :revision, :key, 'image/png'
FROM documents d WHERE d.id = :document FOR KEY SHARE
ON CONFLICT DO NOTHING;

-- name: delete_unused_objects(keys)
DELETE FROM objects WHERE key = ANY (:keys) AND refs = 0 RETURNING key;

-- name: boxes(owner, document, chunk)
SELECT c.boxes
FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE d.id = :document AND d.owner_id = :owner AND c.id = :chunk;

-- name: delete_old_pictures(days, most)
-- Images can be rendered again at any time, so unused ones are deleted.
DELETE FROM artifacts WHERE id IN (
    SELECT id FROM artifacts
    WHERE kind = 'page_picture' AND created_at < engine_now() - make_interval(days => :days) LIMIT :most)
RETURNING key;
