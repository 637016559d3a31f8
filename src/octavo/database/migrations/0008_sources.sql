-- Links and transcripts: a passage of something that was spoken knows when it begins.

ALTER TABLE chunks ADD COLUMN seconds real CHECK (seconds >= 0);

COMMENT ON COLUMN chunks.seconds IS 'Where in a recording the passage begins; NULL for what was not spoken.';
