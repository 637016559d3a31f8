-- Search: vectors of an earlier embedding model are deleted.

-- The model by which a document was searched before its present one. Its vectors are deleted when they are no longer needed.
CREATE TABLE replaced_models (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    model_id    integer NOT NULL REFERENCES embedding_models,
    replaced_at timestamptz NOT NULL,
    PRIMARY KEY (document_id, model_id)
);
