-- Limits that all web processes share. The tables are unlogged, because no count has to survive a crash of the server.

-- Token buckets. `granted` is how much the last call took.
CREATE UNLOGGED TABLE allowances (
    key     text PRIMARY KEY,
    tokens  double precision NOT NULL,
    granted integer NOT NULL,
    at      timestamptz NOT NULL
);

COMMENT ON TABLE allowances IS 'Rate limits: how many more requests, sign-in tries and new accounts a caller has.';

CREATE FUNCTION filled_tokens(
    tokens double precision, at timestamptz, until timestamptz, size double precision, period double precision
) RETURNS double precision LANGUAGE sql IMMUTABLE
AS 'SELECT least(size, tokens + greatest(0, extract(epoch FROM until - at)) * size / period)';

-- Takes up to `wanted` tokens from a bucket that holds `size` tokens and fills in `period` seconds. A bucket is full at first.
CREATE FUNCTION take_allowance(
    wanted_key text, size double precision, period double precision, wanted integer,
    OUT granted integer, OUT wait_seconds double precision
) LANGUAGE sql VOLATILE AS $$
    INSERT INTO allowances AS a (key, tokens, granted, at)
    VALUES (wanted_key, size - least(wanted, size), least(wanted, size), engine_now())
    ON CONFLICT (key) DO UPDATE SET
        granted = least(wanted, floor(filled_tokens(a.tokens, a.at, excluded.at, size, period))),
        tokens = filled_tokens(a.tokens, a.at, excluded.at, size, period)
               - least(wanted, floor(filled_tokens(a.tokens, a.at, excluded.at, size, period))),
        at = excluded.at
    RETURNING a.granted, greatest(0, 1 - a.tokens) * period / size;
$$;

-- How many uploads and live streams each web process holds open.
CREATE UNLOGGED TABLE slots (
    key     text NOT NULL,
    process uuid NOT NULL,
    number  integer NOT NULL CHECK (number > 0),
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (key, process)
);

CREATE INDEX slots_process ON slots (process);

COMMENT ON TABLE slots IS 'Uploads and live streams in progress, by web process. A process that is not seen any more does not count.';

-- Takes one of `most` slots of a key, and returns whether there was one. The lock makes the count exact.
CREATE FUNCTION take_slot(wanted_key text, wanted_process uuid, most integer, silent_seconds double precision)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('slots ' || wanted_key, 0));
    IF (SELECT coalesce(sum(number), 0) FROM slots WHERE key = wanted_key
        AND (process = wanted_process OR seen_at > clock_timestamp() - make_interval(secs => silent_seconds))) >= most
    THEN
        RETURN false;
    END IF;
    INSERT INTO slots AS s (key, process, number, seen_at) VALUES (wanted_key, wanted_process, 1, clock_timestamp())
    ON CONFLICT (key, process) DO UPDATE SET number = s.number + 1, seen_at = clock_timestamp();
    RETURN true;
END $$;
