-- Providers of models and their encrypted API keys, set in the pages.

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
