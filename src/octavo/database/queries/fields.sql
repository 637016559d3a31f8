-- name: list_fields(owner)
SELECT f.id, f.name, f.type, f.choices, f.created_at,
       (SELECT count(*) FROM document_fields v JOIN documents d ON d.id = v.document_id
        WHERE v.field_id = f.id AND d.deleted_at IS NULL) AS documents
FROM fields f WHERE f.owner_id = :owner ORDER BY lower(f.name);

-- name: insert_field(id, owner, name, type, choices)
INSERT INTO fields (id, owner_id, name, type, choices) VALUES (:id, :owner, :name, :type, :choices) RETURNING id;

-- name: edit_field(id, owner, name, choices)
UPDATE fields SET name = coalesce(:name, name), choices = coalesce(:choices::text[], choices)
WHERE id = :id AND owner_id = :owner RETURNING id;

-- name: rename_in_rules(owner, old, new)!
-- Rules name fields, so a renamed field is renamed in the conditions and actions of rules, too.
UPDATE rules SET
    conditions = CASE jsonb_typeof(conditions -> 'field') WHEN 'object' THEN jsonb_set(conditions, '{field}', coalesce((
        SELECT jsonb_object_agg(CASE lower(e.key) WHEN lower(:old) THEN :new ELSE e.key END, e.value) FROM jsonb_each(conditions -> 'field') AS e), '{}'))
        ELSE conditions END,
    actions = CASE jsonb_typeof(actions -> 'fields') WHEN 'object' THEN jsonb_set(actions, '{fields}', coalesce((
        SELECT jsonb_object_agg(CASE lower(e.key) WHEN lower(:old) THEN :new ELSE e.key END, e.value) FROM jsonb_each(actions -> 'fields') AS e), '{}'))
        ELSE actions END
WHERE owner_id = :owner AND (conditions ? 'field' OR actions ? 'fields');

-- name: delete_field(id, owner)
DELETE FROM fields WHERE id = :id AND owner_id = :owner RETURNING id;

-- name: named_fields(owner, names)
SELECT id, name, type, choices FROM fields
WHERE owner_id = :owner AND lower(name) IN (SELECT lower(name) FROM unnest(:names::text[]) AS n (name));

-- name: fields_of(documents)
SELECT v.document_id, f.name, v.value FROM document_fields v JOIN fields f ON f.id = v.field_id
WHERE v.document_id = ANY (:documents) ORDER BY lower(f.name);

-- name: set_fields(documents, fields, texts)!
INSERT INTO document_fields (document_id, field_id, value)
SELECT d.id, f.id, f.value FROM unnest(:documents::uuid[]) AS d (id), unnest(:fields::uuid[], :texts::text[]) AS f (id, value)
ON CONFLICT (document_id, field_id) DO UPDATE SET value = excluded.value WHERE document_fields.value <> excluded.value;

-- name: clear_fields(documents, fields)!
DELETE FROM document_fields WHERE document_id = ANY (:documents) AND field_id = ANY (:fields::uuid[]);
