"""The counters and timers of this process. `ops/metrics.py` adds up the values of all processes and reports them.

Labels have few different values: names that Octavo defines, never ids or text from people.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

REGISTRY = CollectorRegistry(auto_describe=False)
# Seconds, from a page that is in memory to the text recognition of a book.
SHORT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
LONG = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)

HTTP_REQUESTS = Histogram(
    "octavo_http_request_duration_seconds",
    "Time until a response starts, by route.",
    ("method", "route", "status"),
    buckets=SHORT,
    registry=REGISTRY,
)
JOBS = Histogram(
    "octavo_job_duration_seconds",
    "Duration of an attempt of a job, by its outcome.",
    ("kind", "outcome"),
    buckets=LONG,
    registry=REGISTRY,
)
STAGES = Histogram(
    "octavo_stage_duration_seconds",
    "Duration of a stage or of a part of a stage.",
    ("kind", "stage"),
    buckets=LONG,
    registry=REGISTRY,
)
STAGES_RESUMED = Counter(
    "octavo_stages_resumed", "Stages that were not repeated after an earlier attempt.", ("kind",), registry=REGISTRY
)
DUPLICATES_PREVENTED = Counter(
    "octavo_duplicate_jobs_prevented",
    "Jobs that already existed and were not added again.",
    ("kind",),
    registry=REGISTRY,
)
HEARTBEATS_MISSED = Counter(
    "octavo_worker_heartbeats_missed", "Heartbeats that a worker could not send in time.", registry=REGISTRY
)
AI_CALLS = Histogram(
    "octavo_ai_call_duration_seconds",
    "Duration of a call to a model provider, by its result: `ok`, or the kind of failure.",
    ("provider", "purpose", "result"),
    buckets=LONG,
    registry=REGISTRY,
)
AI_CACHE_HITS = Counter(
    "octavo_ai_cache_hits", "Model calls for which a stored answer was reused.", ("purpose",), registry=REGISTRY
)
AI_COST = Counter(
    "octavo_ai_cost_usd", "Cost of model calls in US dollars.", ("provider", "purpose"), registry=REGISTRY
)
AI_TOKENS = Counter(
    "octavo_ai_tokens", "Tokens that models read and wrote.", ("provider", "direction"), registry=REGISTRY
)
BUDGET_REFUSALS = Counter(
    "octavo_ai_budget_refusals",
    "Model calls that were refused, because a budget was used up.",
    ("scope",),
    registry=REGISTRY,
)
