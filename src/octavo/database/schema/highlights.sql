-- Highlights and notes on documents.

-- A highlight is kept by its quote and the text around it. Its position is found again in the transaction that writes new chunks.
-- It belongs to the owner of its document.
CREATE TABLE highlights (
    id          uuid PRIMARY KEY,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    user_id     uuid REFERENCES users ON DELETE SET NULL,
    quote       text NOT NULL CHECK (quote <> ''),
    text_before text NOT NULL,
    text_after  text NOT NULL,
    colour      text NOT NULL CHECK (colour IN ('yellow', 'green', 'blue', 'pink')),
    note        text NOT NULL,
    char_start  integer CHECK (char_start >= 0),
    char_end    integer CHECK (char_end > char_start),
    lost        boolean NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT whole_place CHECK ((char_start IS NULL) = (char_end IS NULL)),
    CONSTRAINT lost_without_place CHECK (NOT lost OR char_start IS NULL)
);

COMMENT ON COLUMN highlights.user_id IS 'The person who made it; NULL for a visitor, and if the person was deleted.';
COMMENT ON COLUMN highlights.text_before IS 'The text before the quote. It tells apart several passages with the same words.';
COMMENT ON COLUMN highlights.char_start IS 'In characters of the current Markdown; NULL if lost, or if a new version is not processed yet.';
COMMENT ON COLUMN highlights.lost IS 'The current text does not contain the quote.';

CREATE INDEX highlights_document ON highlights (document_id, char_start);
CREATE INDEX highlights_user ON highlights (user_id) WHERE user_id IS NOT NULL;

-- Highlights with the title of their document and their position in the current text.
CREATE VIEW placed_highlights AS
SELECT h.id, h.document_id, coalesce(nullif(d.title, ''), d.filename) AS title, c.id AS chunk_id,
       page_of(c, h.char_start - c.char_start) AS page, h.char_start AS start, h.char_end AS "end", h.quote, h.colour, h.note,
       h.lost, h.user_id, h.created_at, h.updated_at, d.owner_id, d.superseded, h.text_before, h.text_after
FROM highlights h JOIN documents d ON d.id = h.document_id AND d.deleted_at IS NULL
LEFT JOIN chunks c ON c.id = (
    SELECT o.id FROM chunks o WHERE o.document_id = d.id AND o.revision = d.revision
      AND h.char_start >= o.char_start AND h.char_start < o.char_end
    ORDER BY o.index LIMIT 1);

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
