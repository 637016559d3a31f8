-- name: documents_to_compare(documents)
-- The given documents that have vectors and are not in the trash, oldest first.
SELECT id, owner_id, revision FROM documents
WHERE id = ANY (:documents) AND embeddings_ready AND deleted_at IS NULL ORDER BY created_at, id;
