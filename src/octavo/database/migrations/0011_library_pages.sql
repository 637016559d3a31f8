-- What the library page asks for on every visit is found without reading an owner's whole library.

CREATE INDEX documents_owner_title ON documents (owner_id, lower(coalesce(nullif(title, ''), filename)), id)
    WHERE deleted_at IS NULL;
CREATE INDEX documents_need_somebody ON documents (owner_id, created_at, id)
    WHERE deleted_at IS NULL AND status = 'completed' AND (needs_classification OR quality IN ('partial', 'empty'));
CREATE INDEX documents_stored_only ON documents (owner_id, created_at, id)
    WHERE deleted_at IS NULL AND quality = 'stored_only';
