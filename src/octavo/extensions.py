"""The names that extensions can import from Octavo. They stay compatible; other modules can change at any time.

See docs/how-to/extensions.md for the entry points.
"""

from octavo.connect.detection import FoundConnection
from octavo.connect.evidence import ChunkPair, ComparableChunk
from octavo.core.errors import BadInput, Empty, NetworkFailed, NotSupported, TimedOut
from octavo.deliver.channels import Delivery, EventRecord, Sender
from octavo.deliver.messages import Message
from octavo.intake.sources.extension_sources import FileStore, StoredFile
from octavo.records.search import Engine as ConnectionType

__all__ = [
    "BadInput",
    "ChunkPair",
    "ComparableChunk",
    "ConnectionType",
    "Delivery",
    "Empty",
    "EventRecord",
    "FileStore",
    "FoundConnection",
    "Message",
    "NetworkFailed",
    "NotSupported",
    "Sender",
    "StoredFile",
    "TimedOut",
]
