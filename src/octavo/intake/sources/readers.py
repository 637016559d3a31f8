"""Opens the reader for each kind of source."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from octavo.intake.sources.buckets import BucketReader
from octavo.intake.sources.connections import Connections
from octavo.intake.sources.extension_sources import ExtensionReader
from octavo.intake.sources.feeds import FeedReader
from octavo.intake.sources.folders import FolderReader
from octavo.intake.sources.mailboxes import MailboxReader
from octavo.intake.sources.reading import Reader, Source
from octavo.intake.sources.watching import SourceWatch
from octavo.intake.sources.webdav import DavReader
from octavo.records.automation import SourceKind

LOCAL: tuple[SourceKind, ...] = ("folder",)


_REMOTE_READERS: dict[SourceKind, Callable[[Source, Connections], Reader]] = {
    "imap": MailboxReader,
    "s3": BucketReader,
    "webdav": DavReader,
    "rss": FeedReader,
    "extension": ExtensionReader,
}


def open_reader(connections: Connections, source: Source) -> Reader:
    """Return the reader of a source, without connecting yet."""
    if source.kind == "folder":
        return FolderReader(source)
    return _REMOTE_READERS[source.kind](source, connections)


def source_watches(connections: Connections) -> list[SourceWatch]:
    """Return the background tasks that check sources. A slow server does not delay the checks of folders."""
    opening = partial(open_reader, connections)
    return [SourceWatch(LOCAL, opening), SourceWatch(tuple(_REMOTE_READERS), opening)]
