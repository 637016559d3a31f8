-- The library is sorted by date and by amount with an index.
-- compatible-from: 40

-- squawk-ignore require-concurrent-index-deletion
DROP INDEX documents_owner_date;
CREATE INDEX documents_owner_date ON documents (owner_id, document_date DESC NULLS LAST, id DESC) WHERE deleted_at IS NULL;
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX documents_owner_amount;
CREATE INDEX documents_owner_amount ON documents (owner_id, amount DESC NULLS LAST, id DESC) WHERE deleted_at IS NULL;
