-- Model calls: the ledger of costs, reuse of answers, rate limits and circuit breakers of providers, and budgets.

-- One row for each call. It is inserted before anything is sent, so that a call with an unknown outcome is counted too.
CREATE TABLE ai_calls (
    id            uuid PRIMARY KEY,
    request_hash  bytea CHECK (length(request_hash) = 32),
    owner_id      uuid REFERENCES owners ON DELETE SET NULL,
    document_id   uuid,
    job_id        uuid,
    lease_token   bigint,
    purpose       text NOT NULL,
    provider      text NOT NULL,
    model         text NOT NULL,
    state         text NOT NULL CHECK (state IN ('reserved', 'settled', 'failed')),
    estimate_usd  numeric(14, 8) NOT NULL CHECK (estimate_usd >= 0),
    cost_usd      numeric(14, 8) NOT NULL DEFAULT 0 CHECK (cost_usd >= 0),
    is_estimated  boolean NOT NULL DEFAULT false,
    tokens_in     integer NOT NULL DEFAULT 0,
    tokens_out    integer NOT NULL DEFAULT 0,
    seconds       double precision,
    fault         text,
    failed_models jsonb NOT NULL DEFAULT '[]',
    response      jsonb,
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    CONSTRAINT answer_only_when_settled CHECK (response IS NULL OR state = 'settled'),
    CONSTRAINT answer_or_no_hash CHECK (state <> 'settled' OR (response IS NULL) = (request_hash IS NULL)),
    CONSTRAINT fault_only_when_failed CHECK ((fault IS NOT NULL) = (state = 'failed')),
    CONSTRAINT ended_has_its_time CHECK ((ended_at IS NULL) = (state = 'reserved'))
);

COMMENT ON COLUMN ai_calls.request_hash IS 'Hash of owner, generation, task, prompt and inputs. NULL if the answer was deleted and cannot be reused.';
COMMENT ON COLUMN ai_calls.is_estimated IS 'The cost is unknown, so the estimate is used.';
COMMENT ON COLUMN ai_calls.failed_models IS 'Models that were called before with the same request, and why they failed.';
COMMENT ON COLUMN ai_calls.expires_at IS 'After this time nobody waits for the answer.';

-- A request has at most one open or settled call, and any number of failed ones.
CREATE UNIQUE INDEX ai_calls_live ON ai_calls (request_hash) WHERE state <> 'failed' AND request_hash IS NOT NULL;
CREATE INDEX ai_calls_reserved ON ai_calls (expires_at) WHERE state = 'reserved';
CREATE INDEX ai_calls_answers ON ai_calls (ended_at) WHERE response IS NOT NULL;
CREATE INDEX ai_calls_owner ON ai_calls (owner_id, created_at);
CREATE INDEX ai_calls_document ON ai_calls (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX ai_calls_job ON ai_calls (job_id, created_at) WHERE job_id IS NOT NULL;

-- Each reuse of an answer, and the cost that it saved.
CREATE TABLE ai_reuses (
    call_id     uuid NOT NULL REFERENCES ai_calls ON DELETE CASCADE,
    owner_id    uuid REFERENCES owners ON DELETE CASCADE,
    document_id uuid,
    job_id      uuid,
    saved_usd   numeric(14, 8) NOT NULL,
    at          timestamptz NOT NULL
);

CREATE INDEX ai_reuses_call ON ai_reuses (call_id);
CREATE INDEX ai_reuses_owner ON ai_reuses (owner_id, at);
CREATE INDEX ai_reuses_at ON ai_reuses (at);

-- Spent and reserved money: the sums by month, by owner and by document. A trigger keeps them up to date.
CREATE TABLE ai_spending (
    key          text PRIMARY KEY,
    reserved_usd numeric(16, 8) NOT NULL DEFAULT 0 CHECK (reserved_usd >= 0),
    spent_usd    numeric(16, 8) NOT NULL DEFAULT 0 CHECK (spent_usd >= 0)
);

-- Rate limits and circuit breaker of a provider (`gemini`), and delays of one of its models (`gemini:gemini-2.5-flash`). Also the
-- circuit breaker of the conversion service (`conversion:https://…`).
CREATE TABLE ai_gates (
    name        text PRIMARY KEY,
    requests_at timestamptz NOT NULL DEFAULT '-infinity',
    tokens_at   timestamptz NOT NULL DEFAULT '-infinity',
    held_until  timestamptz NOT NULL DEFAULT '-infinity',
    failures    integer NOT NULL DEFAULT 0,
    open_until  timestamptz,
    probe_until timestamptz
);

COMMENT ON COLUMN ai_gates.requests_at IS 'When the next request would be due if requests came evenly; tokens_at is the same for tokens.';
COMMENT ON COLUMN ai_gates.held_until IS 'The provider asked to send nothing before this time.';
COMMENT ON COLUMN ai_gates.open_until IS 'Set while the circuit is open. After it one call may probe, until probe_until.';

-- Files that a provider stores for some time, so that a file is sent once for many calls.
CREATE TABLE provider_files (
    provider   text NOT NULL,
    account    text NOT NULL,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    sha256     bytea NOT NULL CHECK (length(sha256) = 32),
    name       text NOT NULL,
    uri        text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (provider, account, owner_id, sha256)
);

COMMENT ON COLUMN provider_files.account IS 'Fingerprint of the API key and base URL it was sent with; other accounts cannot see the file.';

CREATE INDEX provider_files_owner ON provider_files (owner_id);
CREATE INDEX provider_files_expiry ON provider_files (expires_at);

-- Budgets in US dollars: for each document, for each owner and month, and for everybody and month, set by an administrator;
-- or for one document, set by its owner. If there is no row, the settings apply.
CREATE TABLE budgets (
    scope       text NOT NULL CHECK (scope IN ('document', 'owner', 'month')),
    document_id uuid REFERENCES documents ON DELETE CASCADE,
    most_usd    numeric(16, 8) NOT NULL CHECK (most_usd BETWEEN 0 AND 1000000),
    set_at      timestamptz NOT NULL DEFAULT engine_now(),
    UNIQUE NULLS NOT DISTINCT (scope, document_id),
    CONSTRAINT only_documents_have_their_own CHECK (document_id IS NULL OR scope = 'document')
);

CREATE INDEX budgets_document ON budgets (document_id);

-- Model settings that an administrator has changed, in one row. Settings from the environment take precedence.
CREATE TABLE model_settings (
    id       smallint PRIMARY KEY CHECK (id = 1),
    version  bigint NOT NULL DEFAULT 1,
    plain    jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(plain) = 'object'),
    sealed   jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(sealed) = 'object'),
    set_at   timestamptz NOT NULL DEFAULT engine_now()
);

COMMENT ON COLUMN model_settings.version IS 'Increases with every change, so that processes notice it.';
COMMENT ON COLUMN model_settings.sealed IS 'Encrypted API keys, each with its last four characters.';

-- Transactions that change the ledger run one after the other, so no two can spend the same money or deadlock. Each takes
-- a millisecond and a model call takes seconds, so the wait is short.
CREATE FUNCTION take_ledger_turn() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('ai_calls', 0))
$$;

CREATE FUNCTION take_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM take_ledger_turn();
    RETURN NULL;
END $$;
CREATE TRIGGER a_turn_each BEFORE INSERT OR UPDATE OR DELETE ON ai_calls
    FOR EACH STATEMENT EXECUTE FUNCTION take_turn();

CREATE FUNCTION spending_keys(owner uuid, document uuid, at timestamptz) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT array_remove(ARRAY[
        'month:' || month, 'owner:' || owner || ':' || month, 'document:' || document], NULL)
    FROM to_char(at AT TIME ZONE 'UTC', 'YYYY-MM') AS month
$$;

CREATE FUNCTION count_money() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('DELETE', 'UPDATE') THEN
        UPDATE ai_spending SET
            reserved_usd = reserved_usd - CASE OLD.state WHEN 'reserved' THEN OLD.estimate_usd ELSE 0 END,
            spent_usd = spent_usd - OLD.cost_usd
        WHERE key = ANY (spending_keys(OLD.owner_id, OLD.document_id, OLD.created_at));
    END IF;
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        INSERT INTO ai_spending (key, reserved_usd, spent_usd)
        SELECT key, CASE NEW.state WHEN 'reserved' THEN NEW.estimate_usd ELSE 0 END, NEW.cost_usd
        FROM unnest(spending_keys(NEW.owner_id, NEW.document_id, NEW.created_at)) AS key ORDER BY key
        ON CONFLICT (key) DO UPDATE SET reserved_usd = ai_spending.reserved_usd + excluded.reserved_usd,
                                        spent_usd = ai_spending.spent_usd + excluded.spent_usd;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER money_is_counted AFTER INSERT OR DELETE OR UPDATE OF state, cost_usd, owner_id, document_id ON ai_calls
    FOR EACH ROW EXECUTE FUNCTION count_money();

-- When an owner or document is deleted, the cost is kept and the answer is deleted.
CREATE FUNCTION forget_answer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.request_hash := NULL;
    NEW.response := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER answers_go_with_their_owner BEFORE UPDATE OF owner_id, document_id ON ai_calls FOR EACH ROW
    WHEN (NEW.owner_id IS NULL OR NEW.document_id IS NULL AND OLD.document_id IS NOT NULL)
    EXECUTE FUNCTION forget_answer();

CREATE FUNCTION calls_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ai_calls WHERE document_id = OLD.id) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'DELETE' THEN
        UPDATE ai_calls SET document_id = NULL WHERE document_id = OLD.id;
        DELETE FROM ai_spending WHERE key = 'document:' || OLD.id;
    ELSE
        UPDATE ai_calls SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER calls_follow AFTER DELETE OR UPDATE OF owner_id ON documents
    FOR EACH ROW EXECUTE FUNCTION calls_follow_document();

-- Whether a call can still be answered: its attempt is running, and the call has not expired.
CREATE FUNCTION is_awaited(call ai_calls, at timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT call.expires_at > at AND (call.job_id IS NULL OR EXISTS (
        SELECT FROM jobs WHERE id = call.job_id AND lease_token = call.lease_token AND status = 'processing'))
$$;

-- Closes calls with an unknown outcome. They are counted with their estimated cost.
CREATE FUNCTION give_up_calls(calls uuid[], at timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    number integer;
BEGIN
    UPDATE ai_calls SET state = 'failed', fault = 'abandoned', cost_usd = estimate_usd, is_estimated = true, ended_at = at
    WHERE id = ANY (calls) AND state = 'reserved';
    GET DIAGNOSTICS number = ROW_COUNT;
    RETURN number;
END $$;

-- The budgets of a document, of its owner and of all owners. `usual` contains the defaults in the same order.
CREATE FUNCTION budgets_in_force(document uuid, usual numeric[]) RETURNS numeric[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY[
        coalesce(max(most_usd) FILTER (WHERE document_id = document),
                 max(most_usd) FILTER (WHERE scope = 'document' AND document_id IS NULL), usual[1]),
        coalesce(max(most_usd) FILTER (WHERE scope = 'owner'), usual[2]),
        coalesce(max(most_usd) FILTER (WHERE scope = 'month'), usual[3])]
    FROM budgets WHERE document_id IS NULL OR document_id = document
$$;

-- The first budget that would be exceeded (`document`, `owner` or `month`), and the amount used. A limit of NULL means none.
CREATE FUNCTION limit_passed(owner uuid, document uuid, at timestamptz, needed numeric, limits numeric[])
RETURNS TABLE (scope text, taken_usd numeric, limit_usd numeric) LANGUAGE sql STABLE AS $$
    SELECT b.scope, coalesce(s.reserved_usd + s.spent_usd, 0), b.most
    FROM unnest(ARRAY['document', 'owner', 'month'], limits) WITH ORDINALITY AS b (scope, most, place)
    JOIN unnest(spending_keys(owner, document, at)) AS key ON split_part(key, ':', 1) = b.scope
    LEFT JOIN ai_spending s USING (key)
    WHERE needed > 0 AND coalesce(s.reserved_usd + s.spent_usd, 0) + needed > b.most
    ORDER BY b.place LIMIT 1
$$;

-- The same with the budgets in force. `limits` contains the defaults from the settings.
CREATE FUNCTION budget_passed(owner uuid, document uuid, at timestamptz, needed numeric, limits numeric[])
RETURNS TABLE (scope text, taken_usd numeric, limit_usd numeric) LANGUAGE sql STABLE AS $$
    SELECT * FROM limit_passed(owner, document, at, needed, budgets_in_force(document, limits))
$$;

-- How many seconds the circuit breaker of a provider stays open; 0 lets a call through. After that time one call is sent as a
-- test, and the others wait for its result.
CREATE FUNCTION circuit_pause(of_provider text, at timestamptz) RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT coalesce(max(extract(epoch FROM greatest(open_until, probe_until) - at)) FILTER (
        WHERE greatest(open_until, probe_until) > at), 0)
    FROM ai_gates WHERE name = of_provider AND open_until IS NOT NULL
$$;

-- Records the outcome of a call for the circuit breaker. `most` failures in a row open it, longer each time, up to ten minutes.
-- Calls that were sent before it opened do not count.
CREATE FUNCTION count_for_circuit(gate text, well boolean, most integer, at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF well THEN
        UPDATE ai_gates SET failures = 0, open_until = NULL, probe_until = NULL WHERE name = gate AND failures > 0;
        RETURN;
    END IF;
    INSERT INTO ai_gates (name) VALUES (gate) ON CONFLICT DO NOTHING;
    UPDATE ai_gates SET
        failures = failures + 1, probe_until = NULL,
        open_until = CASE WHEN failures + 1 >= most
            THEN at + make_interval(secs => least(600, 30 * 2 ^ least(failures + 1 - most, 10))) END
    WHERE name = gate AND coalesce(open_until <= at, true);
END $$;

-- How many seconds a call must wait before it is sent, across all workers: because the provider requested it, or because of
-- rate limits. If the wait is at most `patience`, the call is counted. Bursts of six seconds are allowed, and a tenth of
-- the rate is reserved for them.
CREATE FUNCTION gate_pause(of_provider text, of_model text, tokens integer, request_rate double precision,
                           token_rate double precision, patience double precision, at timestamptz)
RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    burst CONSTANT interval := interval '6 seconds';
    start timestamptz;
    pause double precision;
BEGIN
    INSERT INTO ai_gates (name) VALUES (of_provider) ON CONFLICT DO NOTHING;
    SELECT greatest(at, max(held_until)) INTO start FROM ai_gates WHERE name IN (of_provider, of_provider || ':' || of_model);
    IF request_rate IS NOT NULL THEN
        SELECT greatest(start, requests_at - burst, tokens_at - burst) INTO start FROM ai_gates WHERE name = of_provider;
    END IF;
    pause := extract(epoch FROM start - at);
    IF pause <= patience AND request_rate IS NOT NULL THEN
        UPDATE ai_gates SET
            requests_at = greatest(requests_at, start) + make_interval(secs => 60 / (0.9 * request_rate)),
            tokens_at = greatest(tokens_at, start) + make_interval(secs => tokens * 60 / (0.9 * token_rate))
        WHERE name = of_provider;
    END IF;
    RETURN pause;
END $$;

-- The stored answer to an identical request, if there is one. The reuse is recorded.
CREATE FUNCTION reuse_answer(hash bytea, owner uuid, document uuid, job uuid) RETURNS SETOF ai_calls LANGUAGE sql AS $$
    WITH found AS (
        SELECT * FROM ai_calls WHERE request_hash = hash AND state = 'settled'
    ), noted AS (
        INSERT INTO ai_reuses (call_id, owner_id, document_id, job_id, saved_usd, at)
        SELECT id, owner, document, job, cost_usd, engine_now() FROM found
    )
    SELECT * FROM found
$$;

-- Reserves the budget of a call. Verdicts: `granted` (send it after `seconds`), `answered` (a stored answer exists),
-- `in_flight` (the same call is open), `gone` (the worker lost its job), `local_only` (visitors may not use models),
-- `over_budget`, `circuit_open` and `held` (wait for `seconds`).
CREATE FUNCTION reserve_call(
    call uuid, hash bytea, owner uuid, document uuid, job uuid, token bigint, of_purpose text, of_provider text,
    of_model text, estimate numeric, tokens integer, time_limit double precision, request_rate double precision,
    token_rate double precision, patience double precision, limits numeric[], anonymous_too boolean, failed jsonb,
    OUT verdict text, OUT seconds double precision, OUT scope text, OUT taken_usd numeric, OUT limit_usd numeric)
LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    live ai_calls;
BEGIN
    -- Lock the owner first, because deleting or merging an owner locks it before the ledger, too.
    IF (SELECT kind FROM owners WHERE id = owner FOR KEY SHARE) = 'anonymous' AND NOT anonymous_too THEN
        verdict := 'local_only';
        RETURN;
    END IF;
    PERFORM take_ledger_turn();
    IF job IS NOT NULL AND NOT EXISTS (
        SELECT FROM jobs WHERE id = job AND lease_token = token AND status = 'processing') THEN
        verdict := 'gone';
        RETURN;
    END IF;
    SELECT * INTO live FROM ai_calls WHERE request_hash = hash AND state <> 'failed';
    IF live.state = 'settled' THEN
        verdict := 'answered';
        RETURN;
    ELSIF live.state = 'reserved' AND is_awaited(live, at) THEN
        verdict := 'in_flight';
        RETURN;
    ELSIF live.state = 'reserved' THEN
        PERFORM give_up_calls(ARRAY[live.id], at);
    END IF;
    SELECT b.scope, b.taken_usd, b.limit_usd INTO scope, taken_usd, limit_usd
    FROM budget_passed(owner, document, at, estimate, limits) b;
    IF scope IS NOT NULL THEN
        verdict := 'over_budget';
        -- Recorded, so that the job continues as soon as the budget allows this much.
        INSERT INTO ai_calls (id, owner_id, document_id, job_id, lease_token, purpose, provider, model, state, fault,
                              estimate_usd, failed_models, created_at, expires_at, ended_at)
        VALUES (call, owner, document, job, token, of_purpose, of_provider, of_model, 'failed', 'over_budget', estimate,
                failed, at, at, at);
        RETURN;
    END IF;
    seconds := circuit_pause(of_provider, at);
    IF seconds > 0 THEN
        verdict := 'circuit_open';
        RETURN;
    END IF;
    seconds := gate_pause(of_provider, of_model, tokens, request_rate, token_rate, patience, at);
    IF seconds > patience THEN
        verdict := 'held';
        RETURN;
    END IF;
    verdict := 'granted';
    INSERT INTO ai_calls (id, request_hash, owner_id, document_id, job_id, lease_token, purpose, provider, model, state,
                          estimate_usd, failed_models, created_at, expires_at)
    VALUES (call, hash, owner, document, job, token, of_purpose, of_provider, of_model, 'reserved', estimate, failed, at,
            at + make_interval(secs => seconds + time_limit));
    UPDATE ai_gates SET probe_until = at + make_interval(secs => seconds + time_limit)
    WHERE name = of_provider AND open_until IS NOT NULL;
END $$;

-- Settles a call with its answer. False if the call was closed as abandoned before; then only its cost is recorded.
CREATE FUNCTION settle_call(call uuid, read integer, written integer, cost numeric, took double precision, answer jsonb)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    settled ai_calls;
BEGIN
    UPDATE ai_calls SET
        state = 'settled', tokens_in = read, tokens_out = written, cost_usd = cost, seconds = took, ended_at = at,
        response = CASE WHEN request_hash IS NOT NULL THEN answer END
    WHERE id = call AND state = 'reserved' RETURNING * INTO settled;
    IF settled.id IS NULL THEN
        UPDATE ai_calls SET tokens_in = read, tokens_out = written, cost_usd = cost, seconds = took, is_estimated = false
        WHERE id = call AND fault = 'abandoned';
        RETURN false;
    END IF;
    PERFORM count_for_circuit(settled.provider, true, NULL, at);
    RETURN true;
END $$;

-- Closes a call without a usable answer. `cost` is NULL if unknown. `hurts`: true if the failure counts for the circuit breaker
-- (five in a row open it, longer each time), false resets it, NULL does neither. `hold`: the delay that the provider requested.
CREATE FUNCTION fail_call(call uuid, of_fault text, read integer, written integer, cost numeric, took double precision,
                          hurts boolean, hold double precision)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    most CONSTANT integer := 5;
    at timestamptz := engine_now();
    failed ai_calls;
BEGIN
    UPDATE ai_calls SET
        state = 'failed', fault = of_fault, tokens_in = read, tokens_out = written, seconds = took,
        cost_usd = coalesce(cost, estimate_usd), is_estimated = cost IS NULL, ended_at = coalesce(ended_at, at)
    WHERE id = call AND (state = 'reserved' OR fault = 'abandoned') RETURNING * INTO failed;
    IF hurts IS NOT NULL AND failed.provider IS NOT NULL THEN
        PERFORM count_for_circuit(failed.provider, NOT hurts, most, at);
    END IF;
    IF hold > 0 THEN
        INSERT INTO ai_gates (name, held_until)
        VALUES (failed.provider || ':' || failed.model, at + make_interval(secs => hold))
        ON CONFLICT (name) DO UPDATE SET held_until = greatest(ai_gates.held_until, excluded.held_until);
    END IF;
END $$;

-- Closes calls whose attempt has ended, and deletes old answers and expired provider files.
CREATE FUNCTION tend_calls(kept interval) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    given_up integer;
BEGIN
    PERFORM take_ledger_turn();
    given_up := give_up_calls(ARRAY(SELECT c.id FROM ai_calls c WHERE c.state = 'reserved' AND NOT is_awaited(c, at)), at);
    UPDATE ai_calls SET request_hash = NULL, response = NULL WHERE id IN (
        SELECT id FROM ai_calls WHERE response IS NOT NULL AND ended_at < at - kept LIMIT 1000);
    DELETE FROM provider_files WHERE expires_at < at;
    RETURN given_up;
END $$;
