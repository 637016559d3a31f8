-- The language is a preference of the person.
-- compatible-from: 40

ALTER TABLE users ADD COLUMN language text;
COMMENT ON COLUMN users.language IS 'The language of pages and mails, such as `de`. NULL: that of the browser.';
ALTER TABLE owners ADD COLUMN language text;
COMMENT ON COLUMN owners.language IS 'As for a user, for the administrator, who signs in without being a user.';

SELECT renew_limited_views();
