-- name: insert_user(id, email, password_hash, owner)
-- Creates a person with the role of owner in their personal owner. Returns no row if the address is taken.
WITH made AS (
    INSERT INTO users (id, email, password_hash, owner_id) VALUES (:id, lower(:email), :password_hash, :owner)
    ON CONFLICT (email) DO NOTHING
    RETURNING id, owner_id
)
INSERT INTO memberships (owner_id, user_id, role) SELECT owner_id, id, 'owner' FROM made
RETURNING user_id;

-- name: account_by_email(email)
SELECT id, email, password_hash, owner_id, language FROM users WHERE email = lower(:email);

-- name: account_by_id(user)
SELECT id, email, password_hash, owner_id, language FROM users WHERE id = :user;

-- name: keep_password(user, seen, password_hash)!
-- Changes the password hash only if it is still the one that was checked.
UPDATE users SET password_hash = :password_hash WHERE id = :user AND password_hash IS NOT DISTINCT FROM :seen;

-- name: first_owner(user)
-- The owner that a person acts for after signing in: their personal owner, or else the one they joined first.
SELECT m.owner_id FROM memberships m JOIN users u ON u.id = m.user_id
WHERE m.user_id = :user
ORDER BY m.owner_id = u.owner_id DESC, m.created_at, m.owner_id LIMIT 1;

-- name: move_home(user, owner)!
-- Sets a new personal owner for a person who is no longer a member of any owner.
WITH moved AS (UPDATE users SET owner_id = :owner WHERE id = :user RETURNING id)
INSERT INTO memberships (owner_id, user_id, role) SELECT :owner, id, 'owner' FROM moved;

-- name: users(after_at, after_id, most)
-- Accounts with their people, storage and this month's model costs, newest first. Visitors are not listed.
SELECT o.id AS owner_id, o.kind, o.created_at, coalesce(g.bytes, 0) AS bytes, coalesce(g.documents, 0) AS documents,
       (SELECT coalesce(array_agg(u.email ORDER BY m.created_at, u.email), '{}') FROM memberships m
        JOIN users u ON u.id = m.user_id WHERE m.owner_id = o.id) AS members,
       coalesce((SELECT sum(s.spent_usd) FROM ai_spending s
                 WHERE s.key = ANY (spending_keys(o.id, NULL, engine_now())) AND starts_with(s.key, 'owner:')), 0)::double precision AS spent_usd
FROM owners o LEFT JOIN owner_usage g ON g.owner_id = o.id
WHERE o.kind <> 'anonymous' AND (:after_at::timestamptz IS NULL OR (o.created_at, o.id) < (:after_at, :after_id::uuid))
ORDER BY o.created_at DESC, o.id DESC LIMIT :most;

-- name: visitors()
SELECT count(*) AS owners, coalesce(sum(g.bytes), 0)::bigint AS bytes, coalesce(sum(g.documents), 0)::bigint AS documents
FROM owners o JOIN owner_usage g ON g.owner_id = o.id WHERE o.kind = 'anonymous';

-- name: set_language(user, owner, language)!
-- Of a user, or of the administrator, who is not a user.
WITH person AS (UPDATE users SET language = :language WHERE id = :user)
UPDATE owners SET language = :language WHERE id = :owner AND :user::uuid IS NULL;
