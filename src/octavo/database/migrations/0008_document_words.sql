-- New documents are indexed once for each statement that inserts them, instead of once for each document.

-- Indexes the titles, tags, file names, authors and summaries of documents, in the transaction that changes them. In plpgsql,
-- because a session plans these statements once; an SQL function would plan them in every call.
CREATE OR REPLACE FUNCTION index_documents(of_documents uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO document_words (document_id, words)
    SELECT d.id, name_words(f.config, d.title, 'A') || name_words(f.config, f.tags, 'B')
        || name_words(f.config, concat_ws(' ', d.filename, name_text(d.filename)), 'C')
        || name_words(f.config, concat_ws(E'\n', d.author, d.summary), 'D')
    FROM documents d CROSS JOIN LATERAL (
        SELECT search_config(d.language) AS config, (
            SELECT string_agg(t.name, E'\n' ORDER BY t.name) FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
            WHERE dt.document_id = d.id) AS tags) AS f
    WHERE d.id = ANY (of_documents)
    ON CONFLICT (document_id) DO UPDATE SET words = excluded.words WHERE document_words.words <> excluded.words;
    PERFORM list_words(d.id, plain_words(concat_ws(E'\n', d.title, name_text(d.filename), d.author, d.summary, (
        SELECT string_agg(t.name, E'\n') FROM document_tags dt JOIN tags t ON t.id = dt.tag_id WHERE dt.document_id = d.id))))
    FROM documents d WHERE d.id = ANY (of_documents);
END $$;

CREATE FUNCTION words_follow_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_documents(ARRAY(SELECT id FROM made));
    RETURN NULL;
END $$;
DROP TRIGGER words_follow_insert ON documents;
CREATE TRIGGER words_follow_insert AFTER INSERT ON documents
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION words_follow_insert();
