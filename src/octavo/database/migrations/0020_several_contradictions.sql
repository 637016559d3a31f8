-- Two chunks can contradict each other in several sentences, so the quotes are part of the key. The table has a few rows for each
-- document, so building the two indexes takes little time.

-- squawk-ignore ban-drop-constraint
ALTER TABLE connections DROP CONSTRAINT kept_once;
-- squawk-ignore constraint-missing-not-valid, disallowed-unique-constraint
ALTER TABLE connections ADD CONSTRAINT kept_once UNIQUE (source_chunk, target_chunk, engine, digest);
CREATE UNIQUE INDEX connections_one_of_a_kind ON connections (source_chunk, target_chunk, engine)
WHERE engine <> 'contradiction_detection';
