-- The vector index contains numbers with half precision. A background job builds it, and then drops the earlier one.
-- compatible-from: 43

-- The chunks nearest to a vector. The index is used only if there are many vectors: comparing all is exact, and fast enough for
-- tens of thousands. A document is compared by one model only: the one that has vectors of all its chunks, so two models never mix
-- within a document. Model and length are literals in the statement, because the planner finds a partial index only that way.
CREATE OR REPLACE FUNCTION nearest_chunks(of_owner uuid, chosen jsonb, of_model integer, given vector, required tsquery, excluded tsquery,
                                 by_index boolean, most integer)
RETURNS TABLE (chunk_id uuid, document_id uuid, score double precision) LANGUAGE plpgsql STABLE AS $$
DECLARE
    -- The index of earlier versions is used until the one with half precision is built.
    has_halves boolean := vector_dims(given) > 2000 OR EXISTS (
        SELECT FROM pg_index WHERE indexrelid = to_regclass('chunk_embeddings_half_' || of_model) AND indisvalid);
    as_indexed text := CASE WHEN by_index THEN format(
        CASE WHEN has_halves THEN '::halfvec(%s)' ELSE '::vector(%s)' END, vector_dims(given)) ELSE '' END;
BEGIN
    IF of_model IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($query$
        SELECT near.chunk_id, near.document_id, 1 - near.distance FROM (
            SELECT e.chunk_id, e.document_id, d.revision, e.vector%1$s <=> $1%1$s AS distance
            FROM chunk_embeddings e JOIN searched_documents($2, $3) d ON d.id = e.document_id AND d.model = e.model_id %3$s
            WHERE e.model_id = %2$s AND e.owner_id = $2
            ORDER BY e.vector%1$s <=> $1%1$s LIMIT 2 * $4) AS near
        JOIN chunks c ON c.id = near.chunk_id AND c.revision = near.revision
        ORDER BY near.distance, near.chunk_id LIMIT $4$query$,
        as_indexed, of_model, CASE WHEN required IS NOT NULL OR excluded IS NOT NULL THEN
            'JOIN chunk_words w ON w.chunk_id = e.chunk_id AND ($5 IS NULL OR w.words @@ $5) AND ($6 IS NULL OR NOT w.words @@ $6)'
            ELSE '' END)
    USING given, of_owner, chosen, most, required, excluded;
END $$;

UPDATE job_kinds SET time_limit = interval '1 day' WHERE name = 'index_vectors';
