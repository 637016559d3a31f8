"""Traces of requests, jobs and model calls with OpenTelemetry.

Traces are recorded only after `start_tracing`. Until then, OpenTelemetry is not loaded, and each call here costs one
comparison.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from octavo import __version__
from octavo.core.errors import BadSetting

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Span, Tracer

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
    """Pass all spans of this process to `processor`. Replaces an earlier one."""
    global _tracer, _provider  # noqa: PLW0603 - a process has one tracer, as it has one log
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    names = {"service.name": f"octavo-{process}", "service.version": __version__}
    _provider = TracerProvider(resource=Resource.create(names), shutdown_on_exit=False)
    _provider.add_span_processor(processor)
    _tracer = _provider.get_tracer("octavo", __version__)


def stop_tracing() -> None:
    """Send the spans that are still in memory."""
    global _tracer, _provider
    provider, _tracer, _provider = _provider, None, None
    if provider:
        provider.shutdown()


def is_tracing() -> bool:
    return _tracer is not None


def span(
    name: str, attributes: Mapping[str, str | int] | None = None, *, parent: str | None = None
) -> AbstractContextManager[Span | None]:
    """Record a span around a block. `parent` is the context of a span in another process, if there is one."""
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
    """Return the context of the current span in the format of the header `traceparent`. None if there is none."""
    if _tracer is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(HEADER)
