-- name: passages(owner, chunks)
-- What an answer may be made from: passages of the owner's texts as they are read now, and where their pages begin.
SELECT c.id AS chunk_id, d.id AS document_id, coalesce(nullif(d.title, ''), d.filename) AS title, c.content,
       c.heading_path, c.char_start, c.page_from,
       CASE WHEN c.page_from < c.page_to THEN ARRAY(
           SELECT p.char_start FROM pages p
           WHERE p.document_id = d.id AND p.revision = d.revision AND p.number > c.page_from AND p.number <= c.page_to
           ORDER BY p.number) ELSE '{}' END AS page_starts
FROM documents d JOIN chunks c ON c.document_id = d.id AND c.revision = d.revision
WHERE c.id = ANY (:chunks) AND d.owner_id = :owner AND d.deleted_at IS NULL
ORDER BY array_position(:chunks, c.id);
