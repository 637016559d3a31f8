"""One trace shows a document from its upload to its connections, across processes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from uuid import UUID

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from octavo.core.instruments import current_context, record_spans, span, start_tracing, stop_tracing
from octavo.sandbox import Sandbox
from tests.support.library import Desk
from tests.support.processes import wait_until
from tests.support.working import add, finished, working

COMPARED = "SELECT count(*) FROM jobs WHERE kind = 'detect_connections' AND status = 'complete'"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    made = InMemorySpanExporter()
    record_spans("test", SimpleSpanProcessor(made))
    yield made
    stop_tracing()


async def test_one_trace_goes_from_the_upload_to_the_connections(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path, exporter: InMemorySpanExporter
) -> None:
    with span("upload") as upload:
        document = await add(desk, owner, "a.md", b"# Bogs\n\nMoss holds water in every bog of the north.")
    other = await add(desk, owner, "b.md", b"# Peat\n\nPeat is cut in the south.")
    async with working(desk, sandbox, folder):
        await finished(desk, owner, document)
        await finished(desk, owner, other)
        while await desk.one(COMPARED) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert upload is not None
    trace = upload.get_span_context().trace_id
    of_document = [one for one in exporter.get_finished_spans() if one.context and one.context.trace_id == trace]
    by_name = {one.name: one for one in of_document}
    assert {"upload", "job process_document", "stage extracted", "stage embedded", "job detect_connections"} <= set(
        by_name
    )
    assert parents(by_name["job detect_connections"], of_document)[-2:] == ["job process_document", "upload"]
    assert by_name["job process_document"].attributes is not None
    assert by_name["job process_document"].attributes["octavo.document"] == str(document)


def parents(one: ReadableSpan, spans: list[ReadableSpan]) -> list[str]:
    """The names of the spans that contain this one, the closest first."""
    known = {each.context.span_id: each for each in spans if each.context}
    found: list[str] = []
    while one.parent and (outer := known.get(one.parent.span_id)):
        found.append(outer.name)
        one = outer
    return found


async def test_without_traces_nothing_is_recorded_or_stored(desk: Desk, owner: UUID) -> None:
    with span("upload") as upload:
        assert upload is None
        assert current_context() is None
        await add(desk, owner, "a.md", b"# Bogs")
    assert await desk.rows("SELECT FROM job_traces") == []


def test_spans_are_sent_to_the_receiver() -> None:
    received: list[tuple[str, bytes]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None: ...  # noqa: A002 - its name in the base class

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        start_tracing("web", f"http://127.0.0.1:{server.server_port}/v1/traces")
        with span("outer"), span("inner", {"octavo.part": "1"}):
            pass
        stop_tracing()
        wait_until(lambda: received, "the spans arrive")
        server.shutdown()
    ((path, body),) = received
    assert path == "/v1/traces"
    assert all(name in body for name in (b"octavo-web", b"outer", b"inner", b"octavo.part"))
