-- Metrics and traces.

-- Metrics that all processes count together. Each process adds its counts every few seconds. The table is unlogged: after a crash of the
-- server, the counts begin again at zero, as monitoring systems expect of counters.
CREATE UNLOGGED TABLE metric_totals (
    name   text NOT NULL,
    labels jsonb NOT NULL DEFAULT '{}',
    value  double precision NOT NULL,
    PRIMARY KEY (name, labels)
);

CREATE FUNCTION add_to_metric(metric text, of_labels jsonb, amount double precision) RETURNS void LANGUAGE sql AS $$
    INSERT INTO metric_totals (name, labels, value) VALUES (metric, of_labels, amount)
    ON CONFLICT (name, labels) DO UPDATE SET value = metric_totals.value + excluded.value
$$;

-- The trace that each job belongs to, if traces are recorded.
CREATE TABLE job_traces (
    job_id  uuid PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    context text NOT NULL
);

COMMENT ON COLUMN job_traces.context IS 'The trace and the parent span, in the format of the header traceparent (W3C).';

-- Stores the trace of each new job whose description names one.
CREATE FUNCTION record_traces(wanted jsonb) RETURNS void LANGUAGE sql AS $$
    INSERT INTO job_traces (job_id, context)
    SELECT w.id, w.trace FROM jsonb_to_recordset(wanted) AS w (id uuid, trace text) JOIN jobs USING (id)
    WHERE w.trace IS NOT NULL ON CONFLICT DO NOTHING
$$;
