"""A typed client for the HTTP API, used by programs and the command line. It needs only the URL of a server."""

from octavo.client.client import Client, SyncClient
from octavo.client.documents import Filters
from octavo.client.jobs import Event
from octavo.client.search import SearchFilters
from octavo.client.transport import RemoteProblem, Unreachable
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
    "SyncClient",
    "Unreachable",
]
