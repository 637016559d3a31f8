-- Reading positions, and the text around a quote in the list of highlights. Pages mark the right passage with it if the words are
-- repeated.

-- Where a person stopped reading a document. A visitor has no user; after signing in, the person continues where the visitor stopped.
CREATE TABLE reading_positions (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    user_id     uuid REFERENCES users ON DELETE CASCADE,
    char_start  integer NOT NULL CHECK (char_start >= 0),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT one_position_each UNIQUE NULLS NOT DISTINCT (document_id, user_id)
);

COMMENT ON COLUMN reading_positions.char_start IS 'In characters of the Markdown that was read.';

CREATE INDEX reading_positions_user ON reading_positions (user_id) WHERE user_id IS NOT NULL;

-- Highlights with the title of their document and their position in the current text.
CREATE OR REPLACE VIEW placed_highlights AS
SELECT h.id, h.document_id, coalesce(nullif(d.title, ''), d.filename) AS title, c.id AS chunk_id,
       page_of(c, h.char_start - c.char_start) AS page, h.char_start AS start, h.char_end AS "end", h.quote, h.colour, h.note,
       h.lost, h.user_id, h.created_at, h.updated_at, d.owner_id, d.superseded, h.text_before, h.text_after
FROM highlights h JOIN documents d ON d.id = h.document_id AND d.deleted_at IS NULL
LEFT JOIN chunks c ON c.id = (
    SELECT o.id FROM chunks o WHERE o.document_id = d.id AND o.revision = d.revision
      AND h.char_start >= o.char_start AND h.char_start < o.char_end
    ORDER BY o.index LIMIT 1);
