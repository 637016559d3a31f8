-- name: keep_values(change, documents, names, facts, custom)!
-- Keeps the values that documents have before an edit. The caller has locked the documents.
INSERT INTO document_changes (change_id, document_id, action, before)
SELECT :change, d.id, 'edit', jsonb_build_object(
    'names', to_jsonb(:names::text[]),
    'fields', jsonb_build_object('title', d.title, 'author', d.author, 'date', d.document_date, 'kind', d.kind,
                                 'collection', d.collection_id, 'edited', d.edited),
    'tags', CASE WHEN 'tags' = ANY (:names::text[]) THEN (
        SELECT coalesce(jsonb_agg(jsonb_build_object('id', tag_id, 'made_by', made_by)), '[]') FROM document_tags WHERE document_id = d.id)
        ELSE '[]' END,
    'custom', to_jsonb(:custom::uuid[]),
    'values', (SELECT coalesce(jsonb_object_agg(field_id, value), '{}') FROM document_fields
               WHERE document_id = d.id AND field_id = ANY (:custom::uuid[])),
    'facts', (SELECT coalesce(jsonb_agg(to_jsonb(f)), '[]') FROM facts f
              WHERE f.document_id = d.id AND f.made_by = 'person' AND f.name = ANY (:facts::text[])))
FROM documents d WHERE d.id = ANY (:documents);

-- name: keep_deleted(change, documents)!
INSERT INTO document_changes (change_id, document_id, action, before) SELECT :change, unnest(:documents::uuid[]), 'delete', '{}';

-- name: changed_documents(owner, change)
-- The documents of a change, including those for which it was undone.
SELECT c.document_id, c.action, c.undone FROM document_changes c JOIN documents d ON d.id = c.document_id
WHERE c.change_id = :change AND d.owner_id = :owner ORDER BY c.document_id;

-- name: mark_undone(change, documents)
UPDATE document_changes SET undone = true WHERE change_id = :change AND document_id = ANY (:documents) AND NOT undone
RETURNING document_id;

-- name: undo_fields(change, documents)!
-- A collection that was deleted meanwhile stays deleted.
UPDATE documents d SET
    title = CASE WHEN c.before -> 'names' ? 'title' THEN c.fields ->> 'title' ELSE d.title END,
    author = CASE WHEN c.before -> 'names' ? 'author' THEN c.fields ->> 'author' ELSE d.author END,
    document_date = CASE WHEN c.before -> 'names' ? 'date' THEN (c.fields ->> 'date')::date ELSE d.document_date END,
    kind = CASE WHEN c.before -> 'names' ? 'kind' THEN c.fields ->> 'kind' ELSE d.kind END,
    collection_id = CASE WHEN c.before -> 'names' ? 'collection'
        THEN (SELECT id FROM collections WHERE id = (c.fields ->> 'collection')::uuid) ELSE d.collection_id END,
    edited = CASE WHEN c.before -> 'names' ? 'tags' THEN ARRAY(SELECT jsonb_array_elements_text(c.fields -> 'edited')) ELSE d.edited END,
    updated_at = clock_timestamp()
FROM (SELECT document_id, before, before -> 'fields' AS fields FROM document_changes WHERE change_id = :change) AS c
WHERE c.document_id = d.id AND d.id = ANY (:documents);

-- name: undo_tags(change, documents)!
WITH earlier AS (
    SELECT c.document_id, t.id AS tag_id, kept ->> 'made_by' AS made_by
    FROM document_changes c, jsonb_array_elements(c.before -> 'tags') AS kept
    JOIN tags t ON t.id = (kept ->> 'id')::uuid
    WHERE c.change_id = :change AND c.document_id = ANY (:documents) AND c.before -> 'names' ? 'tags'
), gone AS (
    DELETE FROM document_tags dt USING document_changes c
    WHERE c.change_id = :change AND c.document_id = ANY (:documents) AND c.before -> 'names' ? 'tags' AND dt.document_id = c.document_id
      AND NOT EXISTS (SELECT FROM earlier e WHERE e.document_id = dt.document_id AND e.tag_id = dt.tag_id)
)
INSERT INTO document_tags (document_id, tag_id, made_by) SELECT document_id, tag_id, made_by FROM earlier
ON CONFLICT (document_id, tag_id) DO UPDATE SET made_by = excluded.made_by;

-- name: undo_custom(change, documents)!
-- A field that was deleted meanwhile stays deleted.
WITH edited AS (
    SELECT c.document_id, f.id AS field_id, c.before -> 'values' ->> f.id::text AS value
    FROM document_changes c, jsonb_array_elements_text(c.before -> 'custom') AS e (id) JOIN fields f ON f.id = e.id::uuid
    WHERE c.change_id = :change AND c.document_id = ANY (:documents)
), cleared AS (
    DELETE FROM document_fields v USING edited e
    WHERE v.document_id = e.document_id AND v.field_id = e.field_id AND e.value IS NULL
)
INSERT INTO document_fields (document_id, field_id, value) SELECT document_id, field_id, value FROM edited WHERE value IS NOT NULL
ON CONFLICT (document_id, field_id) DO UPDATE SET value = excluded.value;

-- name: undo_said(change, documents)!
-- Deletes the corrections by people that the edit made or replaced.
DELETE FROM facts f USING document_changes c
WHERE c.change_id = :change AND c.document_id = ANY (:documents) AND f.document_id = c.document_id AND f.made_by = 'person'
  AND c.before -> 'names' ? f.name;

-- name: undo_facts(change, documents)!
INSERT INTO facts SELECT kept.* FROM document_changes c, jsonb_populate_recordset(NULL::facts, c.before -> 'facts') AS kept
WHERE c.change_id = :change AND c.document_id = ANY (:documents);

-- name: forget_changes(days)!
DELETE FROM document_changes WHERE changed_at < clock_timestamp() - make_interval(days => :days);

-- name: present(owner, documents, trashed)
-- Which of these documents still exist.
SELECT id FROM documents WHERE owner_id = :owner AND id = ANY (:documents)
  AND (:trashed::boolean IS NULL OR (deleted_at IS NOT NULL) = :trashed) ORDER BY id;
