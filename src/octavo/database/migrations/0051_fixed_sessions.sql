-- Sessions that were opened with the sign-in provider end at a fixed time, so that the person's roles are read again.
-- compatible-from: 40

ALTER TABLE sessions ADD COLUMN is_fixed boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN sessions.is_fixed IS 'Whether using the session does not extend it, because the person must sign in with the provider again.';

SELECT renew_limited_views();
