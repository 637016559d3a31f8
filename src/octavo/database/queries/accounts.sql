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
SELECT id, email, password_hash FROM users WHERE email = lower(:email);

-- name: account_by_id(user)
SELECT id, email, password_hash FROM users WHERE id = :user;

-- name: keep_password(user, seen, password_hash)!
-- Changes the password hash only if it is still the one that was checked.
UPDATE users SET password_hash = :password_hash WHERE id = :user AND password_hash = :seen;

-- name: first_owner(user)
-- The owner that a person acts for after signing in: their personal owner, or else the one they joined first.
SELECT m.owner_id FROM memberships m JOIN users u ON u.id = m.user_id
WHERE m.user_id = :user
ORDER BY m.owner_id = u.owner_id DESC, m.created_at, m.owner_id LIMIT 1;

-- name: move_home(user, owner)!
-- Sets a new personal owner for a person who is no longer a member of any owner.
WITH moved AS (UPDATE users SET owner_id = :owner WHERE id = :user RETURNING id)
INSERT INTO memberships (owner_id, user_id, role) SELECT :owner, id, 'owner' FROM moved;
