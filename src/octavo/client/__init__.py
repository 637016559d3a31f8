"""A typed client of the HTTP API, for programs and for the command line; it knows a server only by its address."""

from octavo.client.client import Client
from octavo.client.errors import RemoteProblem, Unreachable
from octavo.client.records import Chunk, Document, Event, Filters, Job, Key, Limits, NewKey, Outcome, Published, Retried

__all__ = [
    "Chunk",
    "Client",
    "Document",
    "Event",
    "Filters",
    "Job",
    "Key",
    "Limits",
    "NewKey",
    "Outcome",
    "Published",
    "RemoteProblem",
    "Retried",
    "Unreachable",
]
