-- name: groups(owner)
SELECT g.id, g.name, g.created_at, coalesce((
    SELECT jsonb_agg(jsonb_build_object('user_id', u.id, 'email', u.email) ORDER BY u.email)
    FROM group_members m JOIN users u ON u.id = m.user_id WHERE m.group_id = g.id), '[]') AS members
FROM groups g WHERE g.owner_id = :owner ORDER BY lower(g.name), g.id;

-- name: insert_group(id, owner, name)!
INSERT INTO groups (id, owner_id, name) VALUES (:id, :owner, :name);

-- name: rename_group(owner, group, name)!
UPDATE groups SET name = :name WHERE id = :group AND owner_id = :owner;

-- name: delete_group(owner, group)!
DELETE FROM groups WHERE id = :group AND owner_id = :owner;

-- name: add_to_group(owner, group, user)!
-- Changes nothing if the group or the member does not exist. A person who is in the group already counts as added.
INSERT INTO group_members (group_id, owner_id, user_id)
SELECT g.id, m.owner_id, m.user_id FROM groups g JOIN memberships m ON m.owner_id = g.owner_id
WHERE g.id = :group AND g.owner_id = :owner AND m.user_id = :user
ON CONFLICT (group_id, user_id) DO UPDATE SET owner_id = excluded.owner_id;

-- name: remove_from_group(owner, group, user)!
DELETE FROM group_members WHERE group_id = :group AND owner_id = :owner AND user_id = :user;

-- name: grants(owner, grant)
-- By collection and receiver. `grant`: only this one.
SELECT a.id, a.collection_id, c.name AS collection, a.user_id, u.email, a.group_id, g.name AS group_name, a.access, a.created_at
FROM grants a JOIN collections c ON c.id = a.collection_id
LEFT JOIN users u ON u.id = a.user_id LEFT JOIN groups g ON g.id = a.group_id
WHERE a.owner_id = :owner AND (:grant::uuid IS NULL OR a.id = :grant)
ORDER BY lower(c.name), c.id, lower(g.name) NULLS LAST, u.email;

-- name: insert_grant(id, owner, collection, user, group, access)
-- Replaces an earlier grant of the same collection to the same receiver. Returns no row if one of them does not exist.
INSERT INTO grants (id, owner_id, collection_id, user_id, group_id, access)
SELECT :id, :owner, c.id, :user::uuid, :group::uuid, :access FROM collections c
WHERE c.id = :collection AND c.owner_id = :owner
  AND (:user::uuid IS NULL OR EXISTS (SELECT FROM memberships m WHERE m.owner_id = :owner AND m.user_id = :user))
  AND (:group::uuid IS NULL OR EXISTS (SELECT FROM groups g WHERE g.owner_id = :owner AND g.id = :group))
ON CONFLICT (collection_id, user_id, group_id) DO UPDATE SET access = excluded.access
RETURNING id;

-- name: delete_grant(owner, grant)
DELETE FROM grants WHERE id = :grant AND owner_id = :owner RETURNING collection_id;

-- name: writable_collections(owner, user)
-- The collections in which a limited member may add and change documents.
SELECT id, name FROM collections WHERE owner_id = :owner AND id = ANY (granted_collections(:owner, :user, 'write')) ORDER BY lower(name);

-- name: writable_documents(owner, user, documents)
-- Which of these documents a limited member may change.
SELECT id FROM documents WHERE owner_id = :owner AND id = ANY (:documents)
  AND collection_id = ANY (granted_collections(:owner, :user, 'write'));

-- name: documents_of_change(change)
SELECT document_id FROM document_changes WHERE change_id = :change;

-- name: document_of_highlight(highlight)
SELECT document_id FROM highlights WHERE id = :highlight;

-- name: is_own_upload(owner, user, upload)
-- Whether a limited member began this upload.
SELECT EXISTS (SELECT FROM uploads WHERE id = :upload AND owner_id = :owner AND given ->> 'by' = :user::uuid::text) AS own;
