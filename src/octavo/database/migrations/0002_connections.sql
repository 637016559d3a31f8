-- Languages are compared by the first part of their tag.

-- The first part of a language tag, in lower case: en for en-US and en_GB. Languages are compared by it, in Python by
-- `core.languages.primary_language`.
CREATE FUNCTION primary_language(tag text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    nullif(btrim(split_part(translate(lower(tag), '_', '-'), '-', 1)), '');

-- The text search configuration of a language. A text in an unknown language is indexed as English, which is most common, and
-- again when its language is known. A language without a configuration is indexed without stemming.
CREATE OR REPLACE FUNCTION search_config(of_language text) RETURNS regconfig LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    CASE coalesce(primary_language(of_language), 'en')
        WHEN 'en' THEN 'pg_catalog.english'::regconfig
        WHEN 'ar' THEN 'pg_catalog.arabic'::regconfig
        WHEN 'ca' THEN 'pg_catalog.catalan'::regconfig
        WHEN 'da' THEN 'pg_catalog.danish'::regconfig
        WHEN 'de' THEN 'pg_catalog.german'::regconfig
        WHEN 'el' THEN 'pg_catalog.greek'::regconfig
        WHEN 'es' THEN 'pg_catalog.spanish'::regconfig
        WHEN 'eu' THEN 'pg_catalog.basque'::regconfig
        WHEN 'fi' THEN 'pg_catalog.finnish'::regconfig
        WHEN 'fr' THEN 'pg_catalog.french'::regconfig
        WHEN 'ga' THEN 'pg_catalog.irish'::regconfig
        WHEN 'hi' THEN 'pg_catalog.hindi'::regconfig
        WHEN 'hu' THEN 'pg_catalog.hungarian'::regconfig
        WHEN 'hy' THEN 'pg_catalog.armenian'::regconfig
        WHEN 'id' THEN 'pg_catalog.indonesian'::regconfig
        WHEN 'it' THEN 'pg_catalog.italian'::regconfig
        WHEN 'lt' THEN 'pg_catalog.lithuanian'::regconfig
        WHEN 'ne' THEN 'pg_catalog.nepali'::regconfig
        WHEN 'nl' THEN 'pg_catalog.dutch'::regconfig
        WHEN 'no' THEN 'pg_catalog.norwegian'::regconfig
        WHEN 'nb' THEN 'pg_catalog.norwegian'::regconfig
        WHEN 'pt' THEN 'pg_catalog.portuguese'::regconfig
        WHEN 'ro' THEN 'pg_catalog.romanian'::regconfig
        WHEN 'ru' THEN 'pg_catalog.russian'::regconfig
        WHEN 'sr' THEN 'pg_catalog.serbian'::regconfig
        WHEN 'sv' THEN 'pg_catalog.swedish'::regconfig
        WHEN 'ta' THEN 'pg_catalog.tamil'::regconfig
        WHEN 'tr' THEN 'pg_catalog.turkish'::regconfig
        WHEN 'yi' THEN 'pg_catalog.yiddish'::regconfig
        ELSE 'pg_catalog.simple'::regconfig
    END;

-- The documents that a search covers: those of the owner that are not in the trash and match the filters. Of several
-- versions only the newest one with text is searched, unless documents are named or older versions are requested.
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
      AND (chosen -> 'language' IS NULL OR primary_language(d.language) = primary_language(chosen ->> 'language'))
      AND (chosen -> 'since' IS NULL OR coalesce(d.document_date, d.created_at::date) >= (chosen ->> 'since')::date)
      AND (chosen -> 'until' IS NULL OR coalesce(d.document_date, d.created_at::date) <= (chosen ->> 'until')::date)
$$;

-- Tags with an underscore, and empty ones, were indexed without the rules of their language.
REINDEX INDEX documents_title_words;
SELECT index_chunks(ARRAY(
    SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE d.language = '' OR strpos(d.language, '_') > 0));
