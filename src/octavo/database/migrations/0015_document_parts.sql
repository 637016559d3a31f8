-- Parts: files in archives and attachments of emails become documents that know where they come from.

-- The files in an archive and the attachments of an email, each a document. A document can be part of several others, because a
-- file that exists is not stored again. Deleting a document deletes only the relation.
CREATE TABLE document_parts (
    parent_id   uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    number      integer NOT NULL CHECK (number >= 0),
    name        text NOT NULL,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    added_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (parent_id, number),
    CHECK (parent_id <> document_id)
);

COMMENT ON COLUMN document_parts.number IS 'The place in the file, from 0. It identifies the part if the file is processed again.';
COMMENT ON COLUMN document_parts.name IS 'The name in the file, including folders. It is only a label.';

CREATE INDEX document_parts_document ON document_parts (document_id);
