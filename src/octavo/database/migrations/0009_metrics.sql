-- Metrics count the reused answers of the last hour.

-- squawk-ignore require-concurrent-index-creation
CREATE INDEX ai_reuses_at ON ai_reuses (at);
