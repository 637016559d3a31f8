-- Whoever brings something in may want a model to write its text: `given.extraction` goes to the job. Or it is a new version
-- of a document that is there: what has the bytes of the newest version then changes nothing, so that it can be asked for
-- twice; what has those of any other document is a version all the same, and shares its files. All else is as before.
CREATE OR REPLACE FUNCTION place_upload(upload uuid, of_owner uuid, content text, expected_key text, detected text, quota bigint)
RETURNS TABLE (state text, document_id uuid, process_id uuid, duplicate_of uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    u uploads;
    newest documents;
    twin record;
    expired uuid;
BEGIN
    -- Nobody merges this owner into another meanwhile, and one at a time decides whose a content is.
    PERFORM FROM owners WHERE id = of_owner FOR KEY SHARE;
    PERFORM pg_advisory_xact_lock(hashtextextended(of_owner::text || content, 0));
    SELECT * INTO u FROM uploads WHERE id = upload AND owner_id = of_owner FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no upload %', upload USING ERRCODE = 'no_data_found';
    END IF;
    IF u.state <> 'pending' OR u.object_key IS DISTINCT FROM expected_key THEN
        RETURN;
    END IF;

    IF u.version_of IS NOT NULL THEN
        -- The family and the twins in one turn and in order, as everybody takes them who changes several documents.
        PERFORM FROM documents d
        WHERE d.owner_id = of_owner AND (d.sha256 = u.sha256 OR d.family_id = (
            SELECT family_id FROM documents WHERE id = u.version_of AND owner_id = of_owner AND deleted_at IS NULL))
        ORDER BY d.id FOR NO KEY UPDATE;
        SELECT n.* INTO newest FROM documents n JOIN documents named ON named.family_id = n.family_id
        WHERE named.id = u.version_of AND named.owner_id = of_owner AND named.deleted_at IS NULL
          AND n.owner_id = of_owner AND n.deleted_at IS NULL
        ORDER BY n.version DESC LIMIT 1;
        IF newest.id IS NULL THEN
            RAISE EXCEPTION 'there is no document %', u.version_of USING ERRCODE = 'no_data_found';
        END IF;
    END IF;

    SELECT d.id, d.process_id AS process, d.status, a.key INTO twin
    FROM uploads c
    JOIN documents d ON d.id = c.document_id
    JOIN artifacts a ON a.document_id = d.id AND a.kind = 'source' AND a.revision = 0
    WHERE c.owner_id = of_owner AND c.sha256 = u.sha256 AND c.is_canonical
    FOR SHARE OF c, d, a;

    IF twin.id IS NOT NULL AND u.duplicates = 'reject' THEN
        RAISE EXCEPTION 'this content is document %', twin.id
            USING ERRCODE = 'unique_violation', CONSTRAINT = 'uploads_canonical', DETAIL = twin.id::text;
    END IF;
    IF twin.id IS NOT NULL AND u.duplicates = 'reuse' AND (newest.id IS NULL OR newest.sha256 = u.sha256) THEN
        UPDATE uploads SET state = 'deduplicated', document_id = coalesce(newest.id, twin.id),
                           process_id = coalesce(newest.process_id, twin.process), object_key = NULL,
                           finalized_at = clock_timestamp()
        WHERE id = upload RETURNING * INTO u;
        INSERT INTO events (process_id, kind, owner_id, document_id, detail)
        VALUES (u.process_id, 'deduplicated', of_owner, u.document_id, jsonb_build_object('upload', upload));
        RETURN QUERY SELECT 'deduplicated', u.document_id, u.process_id, u.document_id;
        RETURN;
    END IF;

    IF twin.id IS NULL THEN
        -- Whoever held this content has nothing left of it, and is a twin from now on.
        UPDATE uploads SET is_canonical = false WHERE owner_id = of_owner AND sha256 = u.sha256 AND is_canonical
        RETURNING document_id INTO expired;
        INSERT INTO objects (key, bytes, sha256) VALUES (u.object_key, u.bytes, u.sha256);
    END IF;
    INSERT INTO documents (id, owner_id, process_id, title, author, filename, content_type, source_type, source_url, sha256,
                           bytes, metadata, duplicate_of, last_revision, family_id, version)
    VALUES (u.document_id, of_owner, u.process_id, u.given ->> 'title', u.given ->> 'author', u.filename, u.content_type,
            detected, u.source_url, u.sha256, u.bytes, u.given - '{title,author,extraction}'::text[], twin.id, 1, newest.family_id,
            coalesce((SELECT max(version) + 1 FROM documents WHERE family_id = newest.family_id), 1));
    IF quota < (SELECT bytes FROM owner_usage WHERE owner_id = of_owner) THEN
        RAISE EXCEPTION 'more than % bytes', quota USING ERRCODE = 'program_limit_exceeded';
    END IF;
    INSERT INTO artifacts (id, document_id, kind, key, content_type)
    VALUES (gen_random_uuid(), u.document_id, 'source', coalesce(twin.key, u.object_key), u.content_type);
    UPDATE uploads SET state = 'uploaded', is_canonical = twin.id IS NULL, finalized_at = clock_timestamp(),
                       object_key = CASE WHEN twin.id IS NULL THEN object_key END
    WHERE id = upload;
    IF expired IS NOT NULL THEN
        UPDATE documents SET duplicate_of = u.document_id, updated_at = clock_timestamp() WHERE id = expired;
    END IF;
    IF newest.id IS NOT NULL THEN
        PERFORM inherit_corrections(newest, u.document_id);
    END IF;

    -- What a model should write is not what the twin has.
    IF twin.status = 'completed' AND NOT u.given ? 'extraction' THEN
        PERFORM copy_results(twin.id, u.document_id, u.process_id);
    ELSE
        PERFORM enqueue_jobs(jsonb_build_array(jsonb_build_object(
            'id', u.process_id, 'kind', 'process_document', 'owner_id', of_owner, 'document_id', u.document_id,
            'key', format('process:%s:1', u.document_id), 'input',
            jsonb_strip_nulls(jsonb_build_object('revision', 1, 'extraction', u.given ->> 'extraction')))));
    END IF;
    IF newest.id IS NOT NULL THEN
        -- After the results of a twin: a tag that was found there may be one that a person gave here.
        INSERT INTO document_tags (document_id, tag_id)
        SELECT u.document_id, tag_id FROM document_tags WHERE document_id = newest.id AND made_by IS NULL
        ON CONFLICT (document_id, tag_id) DO UPDATE SET made_by = NULL;
        INSERT INTO events (process_id, kind, owner_id, document_id, detail)
        SELECT newest.process_id, 'superseded', of_owner, newest.id,
               jsonb_build_object('document', id, 'version', version) FROM documents WHERE id = u.document_id;
    END IF;
    RETURN QUERY SELECT 'uploaded', u.document_id, u.process_id, twin.id;
END $$;
