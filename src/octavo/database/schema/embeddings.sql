-- Vectors of chunks and tags.

-- Vectors of several models can exist at the same time; only vectors of one model can be compared.
CREATE TABLE embedding_models (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 16000),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE chunk_embeddings (
    model_id    integer NOT NULL REFERENCES embedding_models,
    chunk_id    uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    owner_id    uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    vector      vector NOT NULL,
    PRIMARY KEY (chunk_id, model_id)
);

CREATE INDEX chunk_embeddings_owner ON chunk_embeddings (owner_id, model_id);
CREATE INDEX chunk_embeddings_document ON chunk_embeddings (document_id);

CREATE TABLE tag_embeddings (
    model_id integer NOT NULL REFERENCES embedding_models,
    tag_id   uuid NOT NULL REFERENCES tags ON DELETE CASCADE,
    vector   vector NOT NULL,
    PRIMARY KEY (tag_id, model_id)
);

-- The id of a model, created on first use. NULL if its vectors had another length before.
CREATE FUNCTION embedding_model(of_name text, of_dimensions integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    found embedding_models;
BEGIN
    SELECT * INTO found FROM embedding_models WHERE name = of_name;
    IF found.id IS NULL THEN
        INSERT INTO embedding_models (name, dimensions) VALUES (of_name, of_dimensions) ON CONFLICT DO NOTHING;
        SELECT * INTO found FROM embedding_models WHERE name = of_name;
    END IF;
    RETURN CASE WHEN found.dimensions = of_dimensions THEN found.id END;
END $$;

-- The model by whose vectors the document is searched; NULL until all its chunks have vectors of one model.
-- squawk-ignore adding-foreign-key-constraint
ALTER TABLE documents ADD COLUMN embedding_model_id integer REFERENCES embedding_models;
CREATE INDEX documents_embedding_model ON documents (owner_id, embedding_model_id) WHERE embedding_model_id IS NOT NULL;

-- Whether all chunks of the current revision have vectors of the model.
CREATE FUNCTION has_vectors(of_document uuid, of_revision integer, of_model integer) RETURNS boolean LANGUAGE sql STABLE RETURN
    NOT EXISTS (
        SELECT FROM chunks c WHERE c.document_id = of_document AND c.revision = of_revision AND NOT EXISTS (
            SELECT FROM chunk_embeddings e WHERE e.chunk_id = c.id AND e.model_id = of_model));

-- A document without complete vectors is searched by the first model that completes them. A document that has them changes its
-- model only on request (`use_model`).
CREATE FUNCTION model_follows_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents d SET embedding_model_id = m.model_id
    FROM (SELECT DISTINCT document_id, model_id FROM made) AS m
    WHERE d.id = m.document_id AND d.embedding_model_id IS DISTINCT FROM m.model_id
      AND (d.embedding_model_id IS NULL OR NOT has_vectors(d.id, d.revision, d.embedding_model_id))
      AND has_vectors(d.id, d.revision, m.model_id);
    RETURN NULL;
END $$;
CREATE TRIGGER model_follows AFTER INSERT ON chunk_embeddings
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION model_follows_vectors();

-- The model by which a document was searched before its present one. Its vectors are deleted when they are no longer needed.
CREATE TABLE replaced_models (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    model_id    integer NOT NULL REFERENCES embedding_models,
    replaced_at timestamptz NOT NULL,
    PRIMARY KEY (document_id, model_id)
);

-- When a document moves to another owner, its vectors, concepts and connections move too.
CREATE FUNCTION vectors_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE chunk_embeddings SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    UPDATE chunk_concepts SET owner_id = NEW.owner_id WHERE chunk_id IN (SELECT id FROM chunks WHERE document_id = NEW.id);
    UPDATE connections SET owner_id = NEW.owner_id
    WHERE NEW.id IN (source_document, target_document) AND owner_id <> NEW.owner_id;
    RETURN NULL;
END $$;
CREATE TRIGGER vectors_follow AFTER UPDATE OF owner_id ON documents
    FOR EACH ROW WHEN (OLD.owner_id <> NEW.owner_id) EXECUTE FUNCTION vectors_follow_document();
