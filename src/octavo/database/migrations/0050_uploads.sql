-- A new version keeps the day on which its document expires, and uploads of limited members are always processed.
-- compatible-from: 40

CREATE OR REPLACE FUNCTION inherit_corrections(before documents, next uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents SET collection_id = before.collection_id, edited = before.edited,
                         expires_on = CASE WHEN before.expires_on > (clock_timestamp() AT TIME ZONE 'UTC')::date THEN before.expires_on END
    WHERE id = next;
    INSERT INTO facts (document_id, made_by, name, value, normalized, confidence, source, status)
    SELECT next, made_by, name, value, normalized, confidence, source, status FROM facts
    WHERE document_id = before.id AND made_by = 'person'
      AND name IN ('kind', 'title', 'sender', 'author', 'recipient', 'language', 'party')
    ON CONFLICT DO NOTHING;
    INSERT INTO document_fields (document_id, field_id, value) SELECT next, field_id, value FROM document_fields WHERE document_id = before.id;
    PERFORM follow_facts(next, ARRAY(SELECT name FROM facts WHERE document_id = next));
    INSERT INTO highlights (id, document_id, user_id, quote, text_before, text_after, colour, note, created_at, updated_at)
    SELECT gen_random_uuid(), next, user_id, quote, text_before, text_after, colour, note, created_at, updated_at
    FROM highlights WHERE document_id = before.id;
END $$;

-- Finalizes an upload in one call: the document, its job and their events, or the existing document with the same content.
-- Returns nothing if the upload changed since the caller read it: `expected_key` is where its bytes were. `process` and
-- `compare` are the jobs, built by octavo.choreography, that process the document, or compare it if it shares the results of
-- a processed duplicate. `given.extraction` requests a text written by a model, so such an upload never shares results. Nor does
-- the upload of a limited member (`given.by`): a document that is ready immediately would show them that the account has the content.
--
-- A new version with the same bytes as the newest version changes nothing, so the request can be repeated. A new version with
-- the bytes of any other document shares the files of that document.
--
-- This is one function, because the files of a folder are added one by one, and most of the time for each is spent on round
-- trips to the database.
CREATE OR REPLACE FUNCTION place_upload(upload uuid, of_owner uuid, content text, expected_key text, detected text, quota bigint,
                             process jsonb, compare jsonb)
RETURNS TABLE (state text, document_id uuid, process_id uuid, duplicate_of uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    u uploads;
    newest documents;
    twin record;
    expired uuid;
    import uuid;
    lane text;
BEGIN
    -- Keep the owner from being merged, and decide one at a time which document is canonical for a content.
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
        -- Lock the family and the duplicates in the order of ids, like all code that changes several documents.
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
        -- A canonical document whose source is gone becomes a duplicate of this one.
        UPDATE uploads SET is_canonical = false WHERE owner_id = of_owner AND sha256 = u.sha256 AND is_canonical
        RETURNING document_id INTO expired;
        INSERT INTO objects (key, bytes, sha256) VALUES (u.object_key, u.bytes, u.sha256);
    END IF;
    import := import_of(u);
    lane := CASE WHEN import IS NOT NULL THEN 'bulk' ELSE coalesce(process ->> 'lane', 'interactive') END;
    INSERT INTO documents (id, owner_id, process_id, title, author, filename, content_type, source_type, source_url, sha256,
                           bytes, metadata, duplicate_of, last_revision, family_id, version, import_id)
    VALUES (u.document_id, of_owner, u.process_id, u.given ->> 'title', u.given ->> 'author', u.filename, u.content_type,
            detected, u.source_url, u.sha256, u.bytes, u.given - '{title,author,extraction,import}'::text[], twin.id, 1,
            newest.family_id, coalesce((SELECT max(version) + 1 FROM documents WHERE family_id = newest.family_id), 1), import);
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

    IF twin.status = 'completed' AND NOT u.given ?| '{extraction,by}'::text[] THEN
        PERFORM copy_results(twin.id, u.document_id, u.process_id);
        IF EXISTS (SELECT FROM documents d WHERE d.id = u.document_id AND d.embeddings_ready) THEN
            PERFORM enqueue_jobs(jsonb_build_array(compare || jsonb_build_object('lane', lane)));
        END IF;
    ELSE
        PERFORM enqueue_jobs(jsonb_build_array(process || jsonb_build_object('lane', lane)));
    END IF;
    IF newest.id IS NOT NULL THEN
        -- After the results were copied: a tag from a description there may be one that a person assigned here.
        INSERT INTO document_tags (document_id, tag_id)
        SELECT u.document_id, tag_id FROM document_tags WHERE document_id = newest.id AND made_by IS NULL
        ON CONFLICT (document_id, tag_id) DO UPDATE SET made_by = NULL;
        INSERT INTO events (process_id, kind, owner_id, document_id, detail)
        SELECT newest.process_id, 'superseded', of_owner, newest.id,
               jsonb_build_object('document', id, 'version', version) FROM documents WHERE id = u.document_id;
    END IF;
    RETURN QUERY SELECT 'uploaded', u.document_id, u.process_id, twin.id;
END $$;
