-- name: list_members(owner)
SELECT u.id AS user_id, u.email, m.role, m.created_at, m.limited FROM memberships m JOIN users u ON u.id = m.user_id
WHERE m.owner_id = :owner ORDER BY u.email;

-- name: list_owners(user)
-- The owners that a person can act for. `email` is the address of the owner's first person.
SELECT m.owner_id, o.kind, m.role, (SELECT min(email) FROM users WHERE users.owner_id = m.owner_id) AS email
FROM memberships m JOIN owners o ON o.id = m.owner_id
WHERE m.user_id = :user ORDER BY m.created_at, m.owner_id;

-- name: lock_owner(owner)
-- Serialises changes of an owner's members without blocking other work of the owner.
SELECT FROM owners WHERE id = :owner FOR NO KEY UPDATE;

-- name: add_member(owner, user, role, limited)!
INSERT INTO memberships (owner_id, user_id, role, limited) VALUES (:owner, :user, :role, :limited) ON CONFLICT DO NOTHING;

-- name: change_role(owner, user, role)!
-- A person decides about the role from now on, unless the claims of a provider grant one. The open invitations of the account
-- end if an owner gets another role, because the person may know the link of one for an owner.
WITH withdrawn AS (
    DELETE FROM invitations i WHERE i.owner_id = :owner AND :role::text <> 'owner'
      AND EXISTS (SELECT FROM memberships m WHERE m.owner_id = :owner AND m.user_id = :user AND m.role = 'owner')
)
UPDATE memberships SET role = :role, granted_by = 'person', limited = limited AND :role::text <> 'owner'
WHERE owner_id = :owner AND user_id = :user;

-- name: limit_member(owner, user, limited)!
-- A member who becomes limited loses the shared links that they created, because the links may show more than they see now.
WITH changed AS (
    UPDATE memberships SET limited = :limited
    WHERE owner_id = :owner AND user_id = :user AND limited <> :limited RETURNING owner_id, user_id
)
DELETE FROM shares s USING changed c WHERE :limited AND s.owner_id = c.owner_id AND s.created_by = c.user_id;

-- name: remove_member(owner, user)!
-- Also ends what would still give them access: their sessions, keys and shared links for this owner and, after an owner, the open
-- invitations.
WITH gone AS (
    DELETE FROM memberships WHERE owner_id = :owner AND user_id = :user RETURNING owner_id, user_id, role
), ended AS (
    DELETE FROM sessions s USING gone WHERE s.owner_id = gone.owner_id AND s.user_id = gone.user_id
), unshared AS (
    DELETE FROM shares s USING gone WHERE s.owner_id = gone.owner_id AND s.created_by = gone.user_id
), withdrawn AS (
    DELETE FROM invitations i USING gone WHERE i.owner_id = gone.owner_id AND gone.role = 'owner'
)
UPDATE api_keys k SET revoked_at = clock_timestamp() FROM gone
WHERE k.owner_id = gone.owner_id AND k.user_id = gone.user_id AND k.revoked_at IS NULL;

-- name: switch_owner(session_hash, user, owner)!
UPDATE sessions SET owner_id = :owner
WHERE token_hash = :session_hash AND user_id = :user
  AND EXISTS (SELECT FROM memberships m WHERE m.owner_id = :owner AND m.user_id = :user);
