-- Two chunks can contradict each other in several sentences, so the quotes are part of the key.

ALTER TABLE connections DROP CONSTRAINT kept_once;
ALTER TABLE connections ADD CONSTRAINT kept_once UNIQUE (source_chunk, target_chunk, engine, digest);
CREATE UNIQUE INDEX connections_one_of_a_kind ON connections (source_chunk, target_chunk, engine)
WHERE engine <> 'contradiction_detection';
