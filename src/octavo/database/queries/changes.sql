-- name: keep_values(change, documents, names, facts, custom)!
-- Keeps the values that documents have before an edit. The caller has locked the documents.
INSERT INTO document_changes (change_id, document_id, action, before)
SELECT :change, d.id, 'edit', jsonb_build_object(
    'names', to_jsonb(:names::text[]),
    'fields', jsonb_build_object('title', d.title, 'author', d.author, 'date', d.document_date, 'kind', d.kind,
                                 'collection', d.collection_id, 'expires_on', d.expires_on, 'edited', d.edited),
    'tags', CASE WHEN 'tags' = ANY (:names::text[]) THEN (
        SELECT coalesce(jsonb_agg(jsonb_build_object('id', tag_id, 'made_by', made_by)), '[]') FROM document_tags WHERE document_id = d.id)
        ELSE '[]' END,
    'custom', to_jsonb(:custom::uuid[]),
    'values', (SELECT coalesce(jsonb_object_agg(field_id, value), '{}') FROM document_fields
               WHERE document_id = d.id AND field_id = ANY (:custom::uuid[])),
    'facts', (SELECT coalesce(jsonb_agg(to_jsonb(f)), '[]') FROM facts f
              WHERE f.document_id = d.id AND f.made_by = 'person' AND f.name = ANY (:facts::text[])))
FROM documents d WHERE d.id = ANY (:documents);

-- name: keep_result(change, documents)!
-- Keeps the values that an edit set, too, so that its undo leaves later changes alone.
UPDATE document_changes c SET before = c.before || jsonb_build_object('after', jsonb_build_object(
    'fields', jsonb_build_object('title', d.title, 'author', d.author, 'date', d.document_date, 'kind', d.kind,
                                 'collection', d.collection_id, 'expires_on', d.expires_on),
    'tags', (SELECT coalesce(jsonb_agg(tag_id), '[]') FROM document_tags WHERE document_id = d.id),
    'values', (SELECT coalesce(jsonb_object_agg(field_id, value), '{}') FROM document_fields
               WHERE document_id = d.id AND c.before -> 'custom' ? field_id::text),
    'facts', (SELECT coalesce(jsonb_object_agg(f.name, f.value), '{}') FROM facts f
              WHERE f.document_id = d.id AND f.made_by = 'person' AND c.before -> 'names' ? f.name)))
FROM documents d WHERE d.id = c.document_id AND c.change_id = :change AND c.document_id = ANY (:documents);

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
-- A value that was changed again since stays. A collection that was deleted meanwhile stays deleted. Changes of earlier versions
-- of Octavo have no `after`: of these, all values are restored.
UPDATE documents d SET
    title = CASE WHEN c.undone ? 'title' THEN c.fields ->> 'title' ELSE d.title END,
    author = CASE WHEN c.undone ? 'author' THEN c.fields ->> 'author' ELSE d.author END,
    document_date = CASE WHEN c.undone ? 'date' THEN (c.fields ->> 'date')::date ELSE d.document_date END,
    kind = CASE WHEN c.undone ? 'kind' THEN c.fields ->> 'kind' ELSE d.kind END,
    collection_id = CASE WHEN c.undone ? 'collection'
        THEN (SELECT id FROM collections WHERE id = (c.fields ->> 'collection')::uuid) ELSE d.collection_id END,
    expires_on = CASE WHEN c.undone ? 'expires_on' THEN (c.fields ->> 'expires_on')::date ELSE d.expires_on END,
    edited = CASE WHEN c.undone ? 'tags' THEN ARRAY(SELECT jsonb_array_elements_text(c.fields -> 'edited')) ELSE d.edited END,
    updated_at = clock_timestamp()
FROM (
    SELECT c.document_id, c.before -> 'fields' AS fields, (
        SELECT coalesce(jsonb_agg(n.name), '[]') FROM jsonb_array_elements_text(c.before -> 'names') AS n (name)
        WHERE NOT c.before ? 'after' OR CASE n.name
            WHEN 'tags' THEN ARRAY(SELECT tag_id FROM document_tags WHERE document_id = c.document_id ORDER BY 1)
                = ARRAY(SELECT (kept ->> 'id')::uuid FROM jsonb_array_elements(c.before -> 'tags') AS kept ORDER BY 1)
            ELSE now.fields -> n.name IS NOT DISTINCT FROM c.before -> 'after' -> 'fields' -> n.name END) AS undone
    FROM document_changes c
    JOIN (SELECT id, jsonb_build_object('title', title, 'author', author, 'date', document_date, 'kind', kind,
                                        'collection', collection_id, 'expires_on', expires_on) AS fields
          FROM documents WHERE id = ANY (:documents)) AS now ON now.id = c.document_id
    WHERE c.change_id = :change) AS c
WHERE c.document_id = d.id AND d.id = ANY (:documents);

-- name: undo_tags(change, documents)!
-- Deletes the tags that the edit added, and restores those that it removed.
WITH edits AS (
    SELECT document_id, before FROM document_changes
    WHERE change_id = :change AND document_id = ANY (:documents) AND before -> 'names' ? 'tags'
), earlier AS (
    SELECT e.document_id, t.id AS tag_id, kept ->> 'made_by' AS made_by, e.before -> 'after' -> 'tags' AS after
    FROM edits e, jsonb_array_elements(e.before -> 'tags') AS kept JOIN tags t ON t.id = (kept ->> 'id')::uuid
), gone AS (
    DELETE FROM document_tags dt USING edits e
    WHERE dt.document_id = e.document_id AND (NOT e.before ? 'after' OR e.before -> 'after' -> 'tags' ? dt.tag_id::text)
      AND NOT EXISTS (SELECT FROM earlier k WHERE k.document_id = dt.document_id AND k.tag_id = dt.tag_id)
)
INSERT INTO document_tags (document_id, tag_id, made_by) SELECT document_id, tag_id, made_by FROM earlier
WHERE after IS NULL OR NOT after ? tag_id::text AND NOT EXISTS (
    SELECT FROM document_tags dt WHERE dt.document_id = earlier.document_id AND dt.tag_id = earlier.tag_id)
ON CONFLICT (document_id, tag_id) DO UPDATE SET made_by = excluded.made_by;

-- name: undo_custom(change, documents)!
-- A value that was changed again since stays. A field that was deleted meanwhile stays deleted.
WITH edited AS (
    SELECT c.document_id, f.id AS field_id, c.before -> 'values' ->> f.id::text AS value
    FROM document_changes c CROSS JOIN jsonb_array_elements_text(c.before -> 'custom') AS e (id) JOIN fields f ON f.id = e.id::uuid
    LEFT JOIN document_fields v ON v.document_id = c.document_id AND v.field_id = f.id
    WHERE c.change_id = :change AND c.document_id = ANY (:documents)
      AND (NOT c.before ? 'after' OR v.value IS NOT DISTINCT FROM c.before -> 'after' -> 'values' ->> f.id::text)
), cleared AS (
    DELETE FROM document_fields v USING edited e
    WHERE v.document_id = e.document_id AND v.field_id = e.field_id AND e.value IS NULL
)
INSERT INTO document_fields (document_id, field_id, value) SELECT document_id, field_id, value FROM edited WHERE value IS NOT NULL
ON CONFLICT (document_id, field_id) DO UPDATE SET value = excluded.value;

-- name: undo_said(change, documents)!
-- Deletes the corrections that the edit made, unless a person corrected them again since.
DELETE FROM facts f USING document_changes c
WHERE c.change_id = :change AND c.document_id = ANY (:documents) AND f.document_id = c.document_id AND f.made_by = 'person'
  AND c.before -> 'names' ? f.name
  AND (NOT c.before ? 'after' OR f.value IS NOT DISTINCT FROM c.before -> 'after' -> 'facts' ->> f.name);

-- name: undo_facts(change, documents)!
-- Restores the corrections that the edit replaced.
INSERT INTO facts SELECT kept.* FROM document_changes c, jsonb_populate_recordset(NULL::facts, c.before -> 'facts') AS kept
WHERE c.change_id = :change AND c.document_id = ANY (:documents) AND NOT EXISTS (
    SELECT FROM facts f WHERE f.document_id = kept.document_id AND f.made_by = 'person' AND f.name = kept.name);

-- name: follow_undone(change, documents)
-- Copies facts that the undo changed to the columns that filter and sort lists. `undo_fields` restores the other columns.
SELECT follow_all_facts(:documents::uuid[], ARRAY(
    SELECT n.name FROM (SELECT before FROM document_changes WHERE change_id = :change LIMIT 1) AS c,
        jsonb_array_elements_text(c.before -> 'names') AS n (name)
    WHERE n.name IN ('sender', 'amount', 'currency', 'language')));

-- name: forget_changes(days)!
DELETE FROM document_changes WHERE changed_at < clock_timestamp() - make_interval(days => :days);

-- name: present(owner, documents, trashed)
-- Which of these documents still exist.
SELECT id FROM documents WHERE owner_id = :owner AND id = ANY (:documents)
  AND (:trashed::boolean IS NULL OR (deleted_at IS NOT NULL) = :trashed) ORDER BY id;
