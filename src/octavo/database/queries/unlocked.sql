-- name: source(owner, document)
-- The uploaded file of a document that is not a link.
SELECT CASE WHEN d.source_url IS NULL THEN d.source_type END AS source_type, a.key
FROM documents d LEFT JOIN artifacts a ON a.document_id = d.id AND a.kind = 'source' AND a.revision = 0
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: delete_unlocked(document)
DELETE FROM artifacts WHERE document_id = :document AND revision = 0 AND kind = 'unlocked' RETURNING key;

-- name: insert_object(key, bytes, sha256)!
INSERT INTO objects (key, bytes, sha256) VALUES (:key, :bytes, decode(:sha256, 'hex'));

-- name: insert_unlocked(id, document, key)!
INSERT INTO artifacts (id, document_id, kind, revision, key, content_type)
VALUES (:id, :document, 'unlocked', 0, :key, 'application/pdf');

-- name: delete_unused_objects(keys)
DELETE FROM objects WHERE key = ANY (:keys) AND refs = 0 RETURNING key;
