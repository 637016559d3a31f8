-- A statement that changes no tag no longer indexes anything.
-- compatible-from: 40

CREATE OR REPLACE FUNCTION words_follow_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM changed) THEN
        PERFORM index_documents(ARRAY(SELECT DISTINCT document_id FROM changed));
    END IF;
    RETURN NULL;
END $$;
