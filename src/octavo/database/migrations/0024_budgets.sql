-- What models may cost is set while everything runs, and holds for the next call of every worker.

-- Most US dollars: of any document, of any owner in a month and of everybody in a month, set by an administrator; or of one
-- document, set by its owner. What has no row is as the settings say.
CREATE TABLE budgets (
    scope       text NOT NULL CHECK (scope IN ('document', 'owner', 'month')),
    document_id uuid REFERENCES documents ON DELETE CASCADE,
    most_usd    numeric(16, 8) NOT NULL CHECK (most_usd BETWEEN 0 AND 1000000),
    set_at      timestamptz NOT NULL DEFAULT engine_now(),
    UNIQUE NULLS NOT DISTINCT (scope, document_id),
    CONSTRAINT only_documents_have_their_own CHECK (document_id IS NULL OR scope = 'document')
);
CREATE INDEX budgets_document ON budgets (document_id);

-- What holds for a document, for its owner and for everybody. `usual` is what the settings say, in the same order.
CREATE FUNCTION budgets_in_force(document uuid, usual numeric[]) RETURNS numeric[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY[
        coalesce(max(most_usd) FILTER (WHERE document_id = document),
                 max(most_usd) FILTER (WHERE scope = 'document' AND document_id IS NULL), usual[1]),
        coalesce(max(most_usd) FILTER (WHERE scope = 'owner'), usual[2]),
        coalesce(max(most_usd) FILTER (WHERE scope = 'month'), usual[3])]
    FROM budgets WHERE document_id IS NULL OR document_id = document
$$;

-- The first sum that would pass its limit, as `document`, `owner` or `month`, and how much of it is taken. A limit of NULL
-- is none.
CREATE FUNCTION limit_passed(owner uuid, document uuid, at timestamptz, needed numeric, limits numeric[])
RETURNS TABLE (scope text, taken_usd numeric, limit_usd numeric) LANGUAGE sql STABLE AS $$
    SELECT b.scope, coalesce(s.reserved_usd + s.spent_usd, 0), b.most
    FROM unnest(ARRAY['document', 'owner', 'month'], limits) WITH ORDINALITY AS b (scope, most, place)
    JOIN unnest(spending_keys(owner, document, at)) AS key ON split_part(key, ':', 1) = b.scope
    LEFT JOIN ai_spending s USING (key)
    WHERE needed > 0 AND coalesce(s.reserved_usd + s.spent_usd, 0) + needed > b.most
    ORDER BY b.place LIMIT 1
$$;

-- The same with the budgets that are in force. `limits` are those of the settings.
CREATE OR REPLACE FUNCTION budget_passed(owner uuid, document uuid, at timestamptz, needed numeric, limits numeric[])
RETURNS TABLE (scope text, taken_usd numeric, limit_usd numeric) LANGUAGE sql STABLE AS $$
    SELECT * FROM limit_passed(owner, document, at, needed, budgets_in_force(document, limits))
$$;
