-- name: insert_invitation(id, owner, email, role, limited, token_hash, days)
-- Replaces an earlier invitation of the same address; also deletes those that have expired.
WITH gone AS (
    DELETE FROM invitations WHERE expires_at < clock_timestamp() OR owner_id = :owner AND email = lower(:email)
)
INSERT INTO invitations (id, owner_id, email, role, limited, token_hash, expires_at)
VALUES (:id, :owner, lower(:email), :role, :limited, :token_hash, clock_timestamp() + make_interval(days => :days))
RETURNING id, email, role, created_at, expires_at, limited;

-- name: list_invitations(owner)
SELECT id, email, role, created_at, expires_at, limited FROM invitations
WHERE owner_id = :owner AND expires_at > clock_timestamp() ORDER BY created_at DESC, id DESC;

-- name: delete_invitation(owner, invitation)!
DELETE FROM invitations WHERE id = :invitation AND owner_id = :owner AND expires_at > clock_timestamp();

-- name: find_invitation(token_hash)
SELECT i.id, i.owner_id, i.email, i.role, owner_name(o) AS account, EXISTS (SELECT FROM users u WHERE u.email = i.email) AS known
FROM invitations i JOIN owners o ON o.id = i.owner_id
WHERE i.token_hash = :token_hash AND i.expires_at > clock_timestamp();

-- name: use_invitation(token_hash)
-- Uses a link; returns no row if it is unknown, used or expired.
DELETE FROM invitations WHERE token_hash = :token_hash AND expires_at > clock_timestamp()
RETURNING id, owner_id, email, role, limited;

-- name: insert_account_link(token_hash, purpose, user, clears, seconds)
-- Replaces the earlier links of this person; also deletes those that have expired.
WITH gone AS (
    DELETE FROM account_links WHERE expires_at < clock_timestamp() OR user_id = :user AND purpose = :purpose
)
INSERT INTO account_links (token_hash, purpose, user_id, clears_second_factor, expires_at)
VALUES (:token_hash, :purpose, :user, :clears, clock_timestamp() + make_interval(secs => :seconds))
RETURNING expires_at;

-- name: find_account_link(token_hash, purpose)
SELECT u.id AS user_id, u.email FROM account_links l JOIN users u ON u.id = l.user_id
WHERE l.token_hash = :token_hash AND l.purpose = :purpose AND l.expires_at > clock_timestamp();

-- name: use_account_link(token_hash, purpose)
-- Uses a link; returns no row if it is unknown, used or expired.
DELETE FROM account_links WHERE token_hash = :token_hash AND purpose = :purpose AND expires_at > clock_timestamp()
RETURNING user_id, clears_second_factor;

-- name: delete_account_links(user)!
-- A changed password ends the links and sign-ins that began before.
DELETE FROM account_links WHERE user_id = :user;

-- name: set_password(user, password_hash)
UPDATE users SET password_hash = :password_hash WHERE id = :user RETURNING owner_id;

-- name: end_sessions_of(user)!
DELETE FROM sessions WHERE user_id = :user;

-- name: list_sessions(user, owner, session_hash)
-- The sessions of a person or, for the administrator on this machine, those of the local owner.
SELECT id, browser, created_at, expires_at, token_hash = :session_hash AS current FROM sessions
WHERE expires_at > clock_timestamp()
  AND (user_id = :user::uuid OR :user::uuid IS NULL AND user_id IS NULL AND owner_id = :owner)
ORDER BY current DESC, created_at DESC, id;

-- name: revoke_session(session, user, owner)!
DELETE FROM sessions
WHERE id = :session AND (user_id = :user::uuid OR :user::uuid IS NULL AND user_id IS NULL AND owner_id = :owner);

-- name: begin_second_factor(user, secret)!
-- A secret that is not confirmed yet is replaced; a confirmed one is kept.
INSERT INTO second_factors (user_id, secret) VALUES (:user, :secret)
ON CONFLICT (user_id) DO UPDATE SET secret = excluded.secret, last_step = 0, created_at = clock_timestamp()
WHERE second_factors.confirmed_at IS NULL;

-- name: second_factor(user)
SELECT f.secret, f.confirmed_at, f.last_step, clock_timestamp() AS now,
       (SELECT count(*) FROM recovery_codes c WHERE c.user_id = f.user_id) AS codes_left
FROM second_factors f WHERE f.user_id = :user;

-- name: use_step(user, step)!
-- Only if no code of this or a later time step was used before.
UPDATE second_factors SET last_step = :step WHERE user_id = :user AND last_step < :step;

-- name: confirm_second_factor(user)!
UPDATE second_factors SET confirmed_at = clock_timestamp() WHERE user_id = :user AND confirmed_at IS NULL;

-- name: replace_recovery_codes(user, hashes)!
WITH gone AS (DELETE FROM recovery_codes WHERE user_id = :user)
INSERT INTO recovery_codes (user_id, code_hash) SELECT :user, unnest(:hashes::bytea[]);

-- name: use_recovery_code(user, code_hash)!
DELETE FROM recovery_codes WHERE user_id = :user AND code_hash = :code_hash;

-- name: delete_second_factor(user)!
DELETE FROM second_factors WHERE user_id = :user;
