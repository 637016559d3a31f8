-- name: insert_provider_sign_in(state_hash, browser_hash, nonce, verifier, back, user, seconds)!
-- Remembers a browser that is sent to the provider; also deletes those that did not come back in time.
WITH gone AS (DELETE FROM provider_sign_ins WHERE expires_at < clock_timestamp())
INSERT INTO provider_sign_ins (state_hash, browser_hash, nonce, verifier, back, user_id, expires_at)
VALUES (:state_hash, :browser_hash, :nonce, :verifier, :back, :user, clock_timestamp() + make_interval(secs => :seconds));

-- name: take_provider_sign_in(state_hash, browser_hash)
-- Takes a browser that came back; no row if it is unknown, came back already, is too late or is another browser.
DELETE FROM provider_sign_ins
WHERE state_hash = :state_hash AND browser_hash = :browser_hash AND expires_at > clock_timestamp()
RETURNING nonce, verifier, back, user_id, clock_timestamp() AS now;

-- name: use_identity(issuer, subject)
-- The person with this identity; no row if the identity is unknown.
UPDATE identities SET last_used_at = clock_timestamp() WHERE issuer = :issuer AND subject = :subject
RETURNING user_id;

-- name: insert_identity(issuer, subject, user)
-- Returns no row if the identity belongs to a person already.
INSERT INTO identities (issuer, subject, user_id) VALUES (:issuer, :subject, :user)
ON CONFLICT (issuer, subject) DO NOTHING
RETURNING user_id;

-- name: list_identities(user)
SELECT issuer, subject, created_at, last_used_at FROM identities WHERE user_id = :user ORDER BY created_at, issuer, subject;

-- name: delete_identities(user)!
-- Only if the person can still sign in: with a password.
DELETE FROM identities i USING users u WHERE i.user_id = :user AND u.id = i.user_id AND u.password_hash IS NOT NULL;

-- name: claimed_role(owner, user)
SELECT role, granted_by FROM memberships WHERE owner_id = :owner AND user_id = :user;

-- name: grant_by_claims(owner, user, role)!
-- The open invitations of the account end if an owner gets another role, as when a person changes it.
WITH withdrawn AS (
    DELETE FROM invitations i WHERE i.owner_id = :owner AND :role::text <> 'owner'
      AND EXISTS (SELECT FROM memberships m WHERE m.owner_id = :owner AND m.user_id = :user AND m.role = 'owner')
)
INSERT INTO memberships (owner_id, user_id, role, granted_by) VALUES (:owner, :user, :role, 'claims')
ON CONFLICT (owner_id, user_id) DO UPDATE SET role = excluded.role, granted_by = 'claims',
    limited = memberships.limited AND excluded.role <> 'owner';
