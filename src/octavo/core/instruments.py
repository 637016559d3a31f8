"""Counters and timers of this process, and OpenTelemetry traces of its requests, jobs and model calls.

`ops/metrics.py` adds up the values of all processes and reports them. The values of a metric's labels are
names that Octavo defines, never ids or user input. Each label therefore has only a few possible values.

Traces are recorded only after `start_tracing`. Until then, OpenTelemetry is not loaded, and a call to this module
only makes one comparison.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from octavo import __version__
from octavo.core.errors import BadSetting

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Span, Tracer


REGISTRY = CollectorRegistry(auto_describe=False)
# Bounds of the histograms in seconds: SHORT for HTTP requests, LONG for jobs, stages and model calls.
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
    "Duration of a job attempt, by its outcome.",
    ("kind", "outcome"),
    buckets=LONG,
    registry=REGISTRY,
)
JOB_WAITS = Histogram(
    "octavo_job_wait_seconds",
    "Time that a job spent in the queue, from when it was queued or became due until a worker claimed it.",
    ("kind", "lane"),
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
    "octavo_stages_resumed",
    "Stages that were skipped because an earlier attempt had finished them.",
    ("kind",),
    registry=REGISTRY,
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
    "Model calls that were refused because a budget was used up.",
    ("scope",),
    registry=REGISTRY,
)


HEADER = "traceparent"
_tracer: Tracer | None = None
_provider: TracerProvider | None = None


def start_tracing(process: str, url: str) -> None:
    """Send the traces of this process to the OTLP receiver at `url`."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise BadSetting(
            "OCTAVO_TRACES_URL needs packages that are not installed. Run `pip install octavo[tracing]`."
        ) from None
    record_spans(process, BatchSpanProcessor(OTLPSpanExporter(url)))


def record_spans(process: str, processor: SpanProcessor) -> None:
    """Pass all spans of this process to `processor`, which replaces any earlier processor."""
    global _tracer, _provider  # noqa: PLW0603 - a process has one tracer, as it has one log
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    names = {"service.name": f"octavo-{process}", "service.version": __version__}
    _provider = TracerProvider(resource=Resource.create(names), shutdown_on_exit=False)
    _provider.add_span_processor(processor)
    _tracer = _provider.get_tracer("octavo", __version__)


def stop_tracing() -> None:
    """Stop recording spans, and send the spans that are still in memory."""
    global _tracer, _provider
    provider, _tracer, _provider = _provider, None, None
    if provider:
        provider.shutdown()


def is_tracing() -> bool:
    return _tracer is not None


def span(
    name: str, attributes: Mapping[str, str | int] | None = None, *, parent: str | None = None
) -> AbstractContextManager[Span | None]:
    """Return a context manager that records a span. `parent` is the `traceparent` of a span in another process."""
    return nullcontext() if _tracer is None else _open_span(_tracer, name, attributes, parent)


@contextmanager
def _open_span(
    tracer: Tracer, name: str, attributes: Mapping[str, str | int] | None, parent: str | None
) -> Generator[Span]:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({HEADER: parent}) if parent else None
    with tracer.start_as_current_span(name, context, attributes=dict[str, Any](attributes or {})) as opened:
        yield opened


def current_context() -> str | None:
    """Return the value of the `traceparent` header for the current span. Returns None if no span is being recorded."""
    if _tracer is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(HEADER)
