"""Record types for documents and their chunks, uploads and versions, and for the comparison of two versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from octavo.records.jobs import JobError

PartKind = Literal["same", "removed", "added"]
UploadState = Literal["pending", "uploaded", "deduplicated", "rejected", "failed", "deleted"]
FieldValue: TypeAlias = str | int | list[str] | None


@dataclass(frozen=True, slots=True)
class DocumentJob:
    id: UUID
    kind: str
    status: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document. `deleted_at` is set while it is in the trash.

    `title`, `author`, `document_date`, `language`, `kind`, `sender`, `amount` and `currency` are the facts with the
    best evidence; `title` is the file name until a better one is known. `quality_reason` says why the text may be
    incomplete or wrong.

    The description consists of title, summary and tags. `described_by` is the model that wrote it, or `local`. If it
    could not be written, `status` is still `completed`, `needs_classification` is true, and `error` contains the
    reason. `missing` lists the results that could not be made: `text_by_model`, `description`, `chunk_descriptions`,
    `vectors` or `connections`. If `will_be_resumed` is true, they are retried automatically. If `will_be_improved` is
    true, the description was written without a model during an outage, and a model will write it again.

    `version` counts uploads of new bytes, and `revision` counts how often these bytes were processed. If `superseded`
    is true, a newer version exists. `also_named` lists other file names with which the same bytes were uploaded. If the
    document is a file in an archive or an attachment of an email, `parent_id` is the archive or email, and `part_name`
    is the name there, including folders. `fields` contains the values of custom fields by name. `expires_on`
    is the day on which the document is moved to the trash.
    """

    id: UUID
    title: str
    filename: str
    status: str
    quality: str | None
    text_ready: bool
    embeddings_ready: bool
    needs_classification: bool
    source_type: str
    source_url: str | None
    content_type: str
    page_count: int | None
    word_count: int | None
    author: str | None
    language: str | None
    document_date: date | None
    summary: str | None
    described_by: str | None
    tags: list[str]
    collection: str | None
    sha256: str
    bytes: int
    cost_usd: float
    error: JobError | None
    duplicate_of: UUID | None
    version: int
    superseded: bool
    revision: int
    metadata: dict[str, Any]
    download_count: int
    first_downloaded_at: datetime | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    process_id: UUID
    jobs: list[DocumentJob]
    will_be_improved: bool = False
    missing: list[str] = field(default_factory=list[str])
    also_named: list[str] = field(default_factory=list[str])
    will_be_resumed: bool = False
    quality_reason: str | None = None
    parent_id: UUID | None = None
    part_name: str | None = None
    kind: str | None = None
    sender: str | None = None
    amount: float | None = None
    currency: str | None = None
    fields: dict[str, str] = field(default_factory=dict[str, str])
    expires_on: date | None = None


FactSourceName = Literal["metadata", "layout", "rule", "mapping", "model", "person"]
FactStatus = Literal["found", "checked", "confirmed"]


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact about a document, such as its sender or date.

    `value` is written for people; `normalized` is used for comparing and sorting, such as 2018-03-05 or 529.87. `page`
    and `box` give the position of the fact in the document, and `quote` is the text there. `source` says how the fact
    was found. `status` is `checked` if a cross-check supports the fact, and `confirmed` if a person entered it.
    `suggests` contains the empty custom fields for which the fact suggests a value.
    """

    name: str
    value: str
    normalized: str | None
    page: int | None
    box: tuple[float, float, float, float] | None
    quote: str
    confidence: float
    source: FactSourceName
    status: FactStatus
    suggests: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """The result of an action on many documents.

    `ids` are the documents that a filter selected. With `undo_id`, an edit or a deletion can be undone for a week.
    `batch_id` is the id of the batch of conversions that was queued. `error` is set if only some of the documents were
    changed.
    """

    changed: int
    ids: list[UUID] | None = None
    undo_id: UUID | None = None
    batch_id: UUID | None = None
    error: JobError | None = None


@dataclass(frozen=True, slots=True)
class SavedView:
    """Filters and a sort order of the library, saved under a name.

    The keys of `filter` are names of query parameters.
    """

    id: UUID
    name: str
    filter: dict[str, Any]
    sort: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection. Its documents move to the trash `keep_days` days after their last change.

    If `keep_days` is null, they are kept forever.
    """

    id: UUID
    name: str
    created_at: datetime
    keep_days: int | None
    documents: int


@dataclass(frozen=True, slots=True)
class Tag:
    name: str
    documents: int


@dataclass(frozen=True, slots=True)
class EmbeddingProgress:
    """The progress of the switch to the embedding model `model`.

    `done` is the number of documents that are already searched with vectors of this model. The other documents are
    still searched with vectors of an earlier model.
    """

    model: str
    documents: int
    done: int


@dataclass(frozen=True, slots=True)
class Concept:
    text: str
    importance: float


@dataclass(frozen=True, slots=True)
class PageBox:
    """A box on a page: left, top, right and bottom, in points from the upper left corner of the page."""

    page: int
    box: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a document.

    `start` and `end` are character positions in the document's Markdown; `boxes` are positions on the pages. In a
    transcript, `seconds` is the time at which the chunk begins, and `url` opens the video at that time.
    """

    id: UUID
    index: int
    content: str
    start: int
    end: int
    page_from: int | None
    page_to: int | None
    heading_path: list[str]
    themes: list[str]
    concepts: list[Concept]
    tone: dict[str, Any] | None
    importance: float | None
    summary: str | None
    made_by: str | None
    seconds: float | None
    url: str | None
    boxes: list[PageBox]


@dataclass(frozen=True, slots=True)
class SignedLink:
    """A link that downloads one file without signing in, until the link expires."""

    url: str
    expires_in_seconds: int


# Highlights -------------------------------------------------------------------------------------------------------


HighlightColour = Literal["yellow", "green", "blue", "pink"]


@dataclass(frozen=True, slots=True)
class Highlight:
    """A highlighted passage of a document, with an optional note.

    `start` and `end` are character positions in the document's Markdown. `chunk_id` and `page` are the chunk and the
    page where the passage begins. The positions are updated when the document is processed again. If the text no longer
    contains the quote, `lost` is true and the positions are null. `text_before` and `text_after` are the text around
    the quote. `title` is the title of the document. `user_id` is the person who made the highlight; it is null for a
    visitor.
    """

    id: UUID
    document_id: UUID
    title: str
    chunk_id: UUID | None
    page: int | None
    start: int | None
    end: int | None
    quote: str
    text_before: str
    text_after: str
    colour: HighlightColour
    note: str
    lost: bool
    user_id: UUID | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ReadingPosition:
    """The position where you stopped reading, as a character position in the document's Markdown.

    `page` is the page at this position. It is null if the text has no pages.
    """

    start: int
    page: int | None


@dataclass(frozen=True, slots=True)
class TextMatch:
    """An occurrence of the query's words in the text of a document.

    `start` and `end` are character positions in the document's Markdown. `chunk_id` and `page` are the chunk and the
    page where the occurrence begins. `snippet` is plain text; `marks` are the positions of the words in the snippet.
    """

    start: int
    end: int
    page: int | None
    chunk_id: UUID | None
    snippet: str
    marks: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TextMatches:
    """Matches in text order. `total` is the number of all matches, counted up to 10,000."""

    items: list[TextMatch]
    next_cursor: str | None
    total: int


# Pages and figures ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageView:
    """A page. `start` and `end` are character positions of its text in the document's Markdown; sizes are in points.

    `unsure` is a sentence that says why the text of the page may be incomplete or wrong. It is null if there is no
    doubt.
    """

    number: int
    label: str | None
    start: int
    end: int
    width: float | None
    height: float | None
    unsure: str | None


@dataclass(frozen=True, slots=True)
class RegionView:
    """An area of a page with one kind of content. `order` is its position in the reading order.

    `kind` is `body`, `heading`, `list`, `table`, `figure`, `formula`, `caption`, `box`, `header`, `footer`, `footnote`
    or `field`. `confidence` is between 0 and 1.
    """

    page: int
    kind: str
    box: tuple[float, float, float, float]
    order: int
    confidence: float
    text: str


@dataclass(frozen=True, slots=True)
class FigureView:
    """A figure of a document. `url` is the path of its picture.

    `kind` is `figure`, `chart`, `formula`, `photo` or `cover`. At `start`, the Markdown contains
    `![alternative](figures/<number>.png)`.
    """

    number: int
    kind: str
    start: int
    page: int | None
    box: tuple[float, float, float, float] | None
    caption: str
    alternative: str
    url: str


@dataclass(frozen=True, slots=True)
class Retried:
    """The result of a retry. `state` is `pending`, or `skipped` if a retry would change nothing."""

    document_id: UUID
    process_id: UUID
    state: str


# Uploads -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ticket:
    """Says where to send the bytes of an upload. `put_url` is a path on this server or a full URL."""

    upload_id: UUID
    document_id: UUID
    process_id: UUID
    put_url: str


@dataclass(frozen=True, slots=True)
class ReceivedBytes:
    """The size and SHA-256 of the bytes that the server received."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an upload.

    `state` is `uploaded`, or `deduplicated` if the existing document `document_id` has the same content. `duplicate` is
    true if the upload had already been finalised; the earlier result is then returned again.
    """

    state: str
    upload_id: UUID
    document_id: UUID
    process_id: UUID
    bytes: int | None
    sha256: str | None
    duplicate_of: UUID | None = None
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class UploadView:
    """An upload in a list. `error` is the reason why it was refused; `document_id` is the resulting document."""

    id: UUID
    filename: str
    state: str
    error: JobError | None
    created_at: datetime
    ended_at: datetime | None
    content_type: str
    bytes: int | None
    document_id: UUID | None


# Versions ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a document.

    `revision` is the current revision; `revisions` are all revisions whose text is still stored.
    """

    document_id: UUID
    version: int
    title: str
    filename: str
    status: str
    bytes: int
    sha256: str
    created_at: datetime
    newest: bool
    revision: int
    revisions: list[int]


@dataclass(frozen=True, slots=True)
class Side:
    document_id: UUID
    title: str
    version: int
    revision: int


@dataclass(frozen=True, slots=True)
class FieldChange:
    field: str
    old: FieldValue
    new: FieldValue


@dataclass(frozen=True, slots=True)
class Part:
    kind: PartKind
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters in the Markdown. `page` is the page where the range begins, if it is known."""

    start: int
    end: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class TextChange:
    old: Span
    new: Span
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class OtherConnection:
    """A connection to a third document. Only one of the two compared versions has it."""

    engine: str
    strength: float
    document_id: UUID
    title: str
    chunk_id: UUID
    quote: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes between two versions of a document.

    `changes` is the number of text changes. `text` contains the first of these changes; it is None if one of the
    versions has no text. `appeared` lists connections that only the new version has, and `vanished` lists connections
    that only the old version has. Both lists contain only the strongest connections.
    """

    old: Side
    new: Side
    fields: list[FieldChange]
    changes: int
    text: list[TextChange] | None
    appeared: list[OtherConnection]
    vanished: list[OtherConnection]


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of restoring records: how many are new, and how many were skipped because they already exist or refer
    to missing documents.
    """

    added: int
    skipped: int


@dataclass(frozen=True, slots=True)
class PreparedExport:
    """An export that is stored on the server for a day. `documents` is the number of documents exported so far, of
    `total`.

    `status` is the status of the job that writes the export. The file can be downloaded when `status` is `complete`.
    `bytes` is the size of the file.
    """

    id: UUID
    status: str
    collection: str | None
    documents: int
    total: int | None
    bytes: int | None
    error: str | None
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PreparedExports:
    items: list[PreparedExport]


@dataclass(frozen=True, slots=True)
class RestoredDocument:
    """The result of restoring a document.

    `state` is `restored` if the document was restored with its results, `added` if the export contains no results and
    the document will be processed, and `exists` if the document already existed.
    """

    document_id: UUID
    state: Literal["restored", "added", "exists"]


@dataclass(frozen=True, slots=True)
class KnownDocuments:
    """The documents of an export that already exist here. `items` maps their ids in the export to their ids here.

    `trashed` contains the ids, as used in the export, of the documents that are in the trash here.
    """

    items: dict[UUID, UUID]
    trashed: list[UUID] = field(default_factory=list[UUID])
