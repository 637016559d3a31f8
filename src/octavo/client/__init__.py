"""A typed client for the HTTP API, used by programs and the command line. It needs only the address of a server."""

from octavo.client.client import Client, Filters, SearchFilters
from octavo.client.errors import RemoteProblem, Unreachable
from octavo.client.events import Event
from octavo.records.account import KeyView as Key
from octavo.records.account import Limits, NewKey, Published
from octavo.records.documents import Chunk, Document, Outcome, Retried
from octavo.records.jobs import JobView as Job

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
    "SearchFilters",
    "Unreachable",
]
