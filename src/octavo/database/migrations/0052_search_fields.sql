-- Searches can be limited to documents with a value of a custom field.
-- compatible-from: 40

CREATE OR REPLACE FUNCTION searched_documents(of_owner uuid, chosen jsonb)
RETURNS TABLE (id uuid, revision integer, config regconfig, model integer) LANGUAGE sql STABLE AS $$
    SELECT d.id, d.revision, search_config(d.language), d.embedding_model_id FROM documents d
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
      AND (chosen -> 'kind' IS NULL OR chosen ->> 'kind' IN (d.kind, d.source_type))
      AND (chosen -> 'sender' IS NULL OR position(lower(chosen ->> 'sender') IN lower(d.sender)) > 0)
      AND (chosen -> 'before' IS NULL OR d.document_date < (chosen ->> 'before')::date)
      AND (chosen -> 'after' IS NULL OR d.document_date >= (chosen ->> 'after')::date)
      AND (chosen -> 'amount_min' IS NULL OR d.amount >= (chosen ->> 'amount_min')::numeric)
      AND (chosen -> 'amount_max' IS NULL OR d.amount <= (chosen ->> 'amount_max')::numeric)
      AND (chosen -> 'field' IS NULL OR EXISTS (
          SELECT FROM document_fields v JOIN fields f ON f.id = v.field_id
          WHERE v.document_id = d.id AND f.owner_id = of_owner AND lower(f.name) = lower(chosen ->> 'field')
              AND (chosen -> 'field_value' IS NULL OR lower(v.value) = lower(chosen ->> 'field_value'))))
$$;
