-- Versions: new bytes of a document that is there. Each is a document of its own, whole, and all of them are a family.

ALTER TABLE documents
    ADD COLUMN family_id uuid,
    ADD COLUMN version integer NOT NULL DEFAULT 1 CHECK (version > 0),
    ADD COLUMN superseded boolean NOT NULL DEFAULT false;
UPDATE documents SET family_id = id;
ALTER TABLE documents ALTER COLUMN family_id SET NOT NULL;

COMMENT ON COLUMN documents.family_id IS 'The same for all versions; the id of the first, which may be gone.';
COMMENT ON COLUMN documents.superseded IS 'There is a newer version, and not in the trash.';

CREATE UNIQUE INDEX documents_version ON documents (family_id, version);
CREATE INDEX documents_superseded ON documents (owner_id) WHERE superseded AND deleted_at IS NULL;

ALTER TABLE uploads ADD COLUMN version_of uuid;

COMMENT ON COLUMN uploads.version_of IS 'Any version of the document that this is to be a new version of.';

-- Who is alone is a family, too.
CREATE FUNCTION begin_family() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.family_id := coalesce(NEW.family_id, NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER documents_begin_family BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION begin_family();

-- Which version stands for a family: the newest that is not in the trash. Whoever changes that holds the whole family.
CREATE FUNCTION settle_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents d SET superseded = NOT d.superseded
    WHERE d.family_id = coalesce(NEW.family_id, OLD.family_id) AND d.superseded <> EXISTS (
        SELECT FROM documents newer
        WHERE newer.family_id = d.family_id AND newer.version > d.version AND newer.deleted_at IS NULL);
    RETURN NULL;
END $$;
CREATE TRIGGER documents_version_came AFTER INSERT ON documents FOR EACH ROW
    WHEN (NEW.version > 1) EXECUTE FUNCTION settle_versions();
CREATE TRIGGER documents_version_moved AFTER UPDATE OF deleted_at ON documents FOR EACH ROW
    WHEN ((OLD.deleted_at IS NULL) <> (NEW.deleted_at IS NULL)) EXECUTE FUNCTION settle_versions();
CREATE TRIGGER documents_version_went AFTER DELETE ON documents FOR EACH ROW EXECUTE FUNCTION settle_versions();

-- What a person put right on a version is right on the next one, too. Its date is its own.
CREATE FUNCTION inherit_corrections(before documents, next uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE documents SET
        collection_id = before.collection_id,
        title = CASE WHEN title IS NULL AND 'title' = ANY (before.edited) THEN before.title ELSE title END,
        author = CASE WHEN author IS NULL AND 'author' = ANY (before.edited) THEN before.author ELSE author END,
        edited = ARRAY(SELECT name FROM unnest(before.edited) AS name
                       WHERE name = 'tags' OR name = 'title' AND title IS NULL OR name = 'author' AND author IS NULL)
    WHERE id = next;
$$;

-- As before. Of versions only the newest that can be read is searched, unless others are chosen or asked for.
CREATE OR REPLACE FUNCTION searched_documents(of_owner uuid, chosen jsonb)
RETURNS TABLE (id uuid, revision integer, config regconfig) LANGUAGE sql STABLE AS $$
    SELECT d.id, d.revision, search_config(d.language) FROM documents d
    WHERE d.owner_id = of_owner AND d.deleted_at IS NULL
      AND (NOT d.superseded OR chosen ?| '{documents,versions}' OR NOT EXISTS (
          SELECT FROM documents newer WHERE newer.family_id = d.family_id AND newer.version > d.version
              AND newer.deleted_at IS NULL AND newer.text_ready))
      AND (chosen -> 'documents' IS NULL OR d.id = ANY (ARRAY(SELECT jsonb_array_elements_text(chosen -> 'documents')::uuid)))
      AND (chosen -> 'without' IS NULL OR d.id <> (chosen ->> 'without')::uuid)
      AND (chosen -> 'tags' IS NULL OR EXISTS (
          SELECT FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
          WHERE dt.document_id = d.id AND lower(t.name) IN (SELECT lower(jsonb_array_elements_text(chosen -> 'tags')))))
      AND (chosen -> 'collection' IS NULL OR EXISTS (
          SELECT FROM collections c WHERE c.id = d.collection_id AND lower(c.name) = lower(chosen ->> 'collection')))
      AND (chosen -> 'kinds' IS NULL OR d.source_type IN (SELECT jsonb_array_elements_text(chosen -> 'kinds')))
      AND (chosen -> 'language' IS NULL OR d.language = chosen ->> 'language')
      AND (chosen -> 'since' IS NULL OR coalesce(d.document_date, d.created_at::date) >= (chosen ->> 'since')::date)
      AND (chosen -> 'until' IS NULL OR coalesce(d.document_date, d.created_at::date) <= (chosen ->> 'until')::date)
$$;
