"""The records of an export, one for each line of its JSON Lines files.

An export may come from anywhere, so an import checks every record against these types. Unknown fields are ignored,
because they come from a newer version.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from octavo.records.analyses import CitationView
from octavo.records.automation import FieldType, RuleThen, RuleWhen
from octavo.records.search import Citation, Engine, Statement, TurnError

FORMAT = 1
# The order in which kinds are exported and imported. Records refer only to records of earlier kinds.
KINDS = (
    *("collections", "fields", "documents", "parts", "connections", "verdicts", "weights", "views", "rules", "prompts"),
    *("mappings", "threads", "analyses", "conversions"),
)
# Kinds of files of a document that are text. Their text is sent with the record.
TEXT_FILES = ("markdown", "plain_markdown")
MOST_TEXT, MOST_ROWS = 64 << 20, 200_000

Name = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]*$")]
FieldValue = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00]*$")]
Text = Annotated[str, Field(max_length=MOST_TEXT, pattern=r"^[^\x00]*$")]
Note = Annotated[str, Field(max_length=20_000, pattern=r"^[^\x00]*$")]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Real = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]
Box = tuple[Real, Real, Real, Real]


class Exported(BaseModel):
    """The base class of all records in an export, and of their parts."""

    model_config = ConfigDict(extra="ignore")


class FileRecord(Exported):
    """A file of a document or a conversion. `path` is its path in the export."""

    kind: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    revision: Count = 0
    content_type: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] = "application/octet-stream"
    path: Annotated[str, Field(max_length=500)] = ""
    bytes: Annotated[int, Field(ge=0, le=1 << 50)] = 0
    sha256: Hash


class TagRecord(Exported):
    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
    made_by: Name | None = None


class FactRecord(Exported):
    made_by: Name
    name: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    number: Count = 0
    value: Note | None = None
    normalized: Note | None = None
    page: Annotated[int, Field(gt=0, le=2**31 - 1)] | None = None
    box: Box | None = None
    quote: Note = ""
    confidence: Fraction
    source: Literal["metadata", "layout", "rule", "mapping", "model", "person"]
    status: Literal["found", "checked", "confirmed"]
    revision: Count = 0
    made_at: datetime


class HighlightRecord(Exported):
    id: UUID
    quote: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]*$")]
    text_before: Note
    text_after: Note
    colour: Literal["yellow", "green", "blue", "pink"]
    note: Note
    char_start: Count | None = None
    char_end: Count | None = None
    lost: bool = False
    created_at: datetime
    updated_at: datetime


class DocumentRecord(Exported):
    """A document. `id`, `duplicate_of` and `family_id` are ids in the exporting installation."""

    id: UUID
    title: Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$")] | None = None
    filename: Name
    content_type: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
    source_type: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")]
    source_url: Annotated[str, Field(max_length=8000, pattern=r"^(https?://)[^\x00-\x20\x7f]*$")] | None = None
    sha256: Hash
    bytes: Annotated[int, Field(gt=0, le=1 << 50)]
    status: Literal["pending", "completed", "failed"]
    quality: Literal["full", "partial", "ocr", "stored_only", "empty"] | None = None
    needs_classification: bool = False
    revision: Count = 0
    text_ready: bool = False
    embeddings_ready: bool = False
    page_count: Count | None = None
    word_count: Count | None = None
    author: Note | None = None
    language: Annotated[str, Field(max_length=40, pattern=r"^[A-Za-z0-9-]*$")] | None = None
    document_date: date | None = None
    kind: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] | None = None
    sender: Note | None = None
    amount: Annotated[Decimal, Field(ge=-(10**15), le=10**15)] | None = None
    currency: Annotated[str, Field(max_length=10, pattern=r"^[A-Z]*$")] | None = None
    summary: Text | None = None
    described_by: Name | None = None
    metadata: Annotated[dict[str, Any], Field(max_length=200)] = {}
    collection: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] | None = None
    edited: Annotated[list[Literal["tags"] | Name], Field(max_length=50)] = []
    expires_on: date | None = None
    created_at: datetime
    updated_at: datetime
    duplicate_of: UUID | None = None
    family_id: UUID
    version: Annotated[int, Field(ge=1, le=10**6)] = 1
    also_named: Annotated[list[Name], Field(max_length=1000)] = []
    tags: Annotated[list[TagRecord], Field(max_length=1000)] = []
    fields: Annotated[dict[Name, FieldValue], Field(max_length=1000)] = {}
    facts: Annotated[list[FactRecord], Field(max_length=10_000)] = []
    highlights: Annotated[list[HighlightRecord], Field(max_length=10_000)] = []
    files: Annotated[list[FileRecord], Field(max_length=10_000)] = []
    path: Annotated[str, Field(max_length=500)] = ""


class RegionRecord(Exported):
    kind: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    box: Box
    order: Count
    confidence: Fraction
    text: Text = ""


class PageRecord(Exported):
    number: Annotated[int, Field(gt=0, le=10**6)]
    label: Note | None = None
    start: Count
    end: Count
    width: Real | None = None
    height: Real | None = None
    bookmarks: Annotated[list[tuple[Count, Note]], Field(max_length=10_000)] = []
    unsure: Note | None = None
    regions: Annotated[list[RegionRecord], Field(max_length=20_000)] = []


class FigureRecord(Exported):
    number: Annotated[int, Field(gt=0, le=100_000)]
    kind: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    start: Count
    page: Count | None = None
    box: Box | None = None
    member: Note | None = None
    caption: Text = ""
    alternative: Text = ""


class ToneRecord(Exported):
    polarity: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
    primary_emotion: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]


class ChunkRecord(Exported):
    """A chunk. Its text is not repeated: it is the part of the Markdown from `start` to `end`."""

    index: Count
    start: Count
    end: Count
    page_from: Count | None = None
    page_to: Count | None = None
    heading_path: Annotated[list[Text], Field(max_length=100)] = []
    word_count: Count
    themes: Annotated[list[Note], Field(max_length=100)] = []
    tone: ToneRecord | None = None
    importance: Real | None = None
    summary: Note | None = None
    made_by: Name | None = None
    seconds: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    boxes: Annotated[list[tuple[Count, Real, Real, Real, Real]], Field(max_length=10_000)] = []
    concepts: Annotated[dict[Name, Real], Field(max_length=200)] = {}


class VectorsRecord(Exported):
    """The vectors of all chunks in order: base64 of 32-bit floating-point numbers, least significant byte first."""

    model: Name
    dimensions: Annotated[int, Field(ge=1, le=16_000)]
    data: Annotated[str, Field(max_length=1 << 28, pattern=r"^[A-Za-z0-9+/=]*$")]


class LayoutRecord(Exported):
    """The pages, figures, chunks and vectors of a document's text. Positions are in characters."""

    pages: Annotated[list[PageRecord], Field(max_length=MOST_ROWS)] = []
    figures: Annotated[list[FigureRecord], Field(max_length=MOST_ROWS)] = []
    chunks: Annotated[list[ChunkRecord], Field(max_length=MOST_ROWS)] = []
    vectors: VectorsRecord | None = None


class DocumentImport(Exported):
    """A document to restore: its record, its layout, and its texts by kind and revision, such as `markdown-2`.

    `uploads` maps the kind of every other file to the id of its upload. These kinds are `source`,
    `unlocked`, `page_raw`, `transcript_raw` and `image_jpeg`.
    """

    model_config = ConfigDict(extra="forbid")

    record: DocumentRecord
    layout: LayoutRecord = LayoutRecord()
    texts: Annotated[dict[str, Text], Field(max_length=1000)] = {}
    uploads: Annotated[dict[str, UUID], Field(max_length=10)] = {}


# Everything else -----------------------------------------------------------------------------------------------------


class CollectionRecord(Exported):
    id: UUID
    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
    keep_days: Annotated[int, Field(gt=0, le=100_000)] | None = None
    created_at: datetime


class FieldRecord(Exported):
    """A custom field."""

    id: UUID
    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
    type: FieldType
    choices: Annotated[list[FieldValue], Field(max_length=1000)] = []
    created_at: datetime


class RuleRecord(Exported):
    id: UUID
    name: Name
    position: Count
    conditions: RuleWhen
    actions: RuleThen
    enabled: bool = False
    created_at: datetime
    updated_at: datetime


class PartRecord(Exported):
    number: Count
    name: Note
    document_id: UUID
    sha256: Hash


class PartsRecord(Exported):
    """An archive or email, and the documents that are its parts."""

    id: UUID
    sha256: Hash
    parts: Annotated[list[PartRecord], Field(max_length=MOST_ROWS)]


class ConnectionSide(Exported):
    document_id: UUID
    sha256: Hash
    chunk: Count
    start: Count
    quote: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]*$")]


class ConnectionRecord(Exported):
    id: UUID
    engine: Engine
    strength: Fraction
    explanation: Note
    status: Literal["found", "possible", "confirmed"]
    made_by: Name
    detail: Annotated[dict[str, Any], Field(max_length=50)] = {}
    found_at: datetime
    source: ConnectionSide
    target: ConnectionSide


class VerdictRecord(Exported):
    id: Hash
    verdict: Literal["confirmed", "dismissed"]
    decided_at: datetime


class WeightsRecord(Exported):
    semantic_similarity: Annotated[int, Field(ge=0, le=100)]
    contradiction_detection: Annotated[int, Field(ge=0, le=100)]
    thematic_bridge: Annotated[int, Field(ge=0, le=100)]


class PromptVersionRecord(Exported):
    version: Annotated[int, Field(gt=0, le=10**6)]
    title: Name
    content: Note
    system: Note
    created_at: datetime


class PromptRecord(Exported):
    id: UUID
    title: Name
    content: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]*$")]
    system: Note = ""
    execution_order: Count = 100
    active: bool = True
    version: Annotated[int, Field(gt=0, le=10**6)] = 1
    created_at: datetime
    updated_at: datetime
    versions: Annotated[list[PromptVersionRecord], Field(max_length=10_000)] = []


class TurnRecord(Exported):
    id: UUID
    number: Annotated[int, Field(gt=0, le=10**6)]
    question: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]*$")]
    understood_as: Note | None = None
    status: Literal["unfinished", "answered", "failed", "removed"]
    answer: Text | None = None
    statements: Annotated[list[Statement], Field(max_length=1000)] = []
    citations: Annotated[list[Citation], Field(max_length=1000)] = []
    found: bool | None = None
    note: Note | None = None
    made_by: Name | None = None
    cost_usd: Annotated[Decimal, Field(ge=0, le=100_000)] = Decimal(0)
    error: TurnError | None = None
    asked_at: datetime
    answered_at: datetime | None = None


class ThreadScope(Exported):
    collection: Name | None = None
    query: Name | None = None
    document_ids: Annotated[list[UUID], Field(max_length=1000)] | None = None


class ThreadRecord(Exported):
    """A thread. `documents` contains the SHA-256 of each document that the thread refers to, by document id."""

    id: UUID
    title: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]*$")]
    scope: ThreadScope = ThreadScope()
    created_at: datetime
    updated_at: datetime
    turns: Annotated[list[TurnRecord], Field(max_length=1000)] = []
    documents: Annotated[dict[UUID, Hash], Field(max_length=20_000)] = {}


class SegmentRecord(Exported):
    id: UUID
    parent_id: UUID | None = None
    first: Count
    last: Count
    context_first: Count
    tokens: Count = 0


class GapRecord(Exported):
    first: Count
    last: Count
    code: Name
    message: Note


class ResultRecord(Exported):
    prompt_id: UUID
    version: Annotated[int, Field(gt=0, le=10**6)]
    title: Name
    content: Note
    system: Note = ""
    execution_order: Count = 100
    status: Literal["pending", "running", "completed", "failed"]
    answer: Text | None = None
    citations: Annotated[list[CitationView], Field(max_length=10_000)] = []
    made_by: Name | None = None
    failed_models: Annotated[list[dict[str, str]], Field(max_length=50)] = []
    error_code: Name | None = None
    error_message: Note | None = None
    completed_at: datetime | None = None
    gaps: Annotated[list[GapRecord], Field(max_length=10_000)] = []


class ItemAnswer(Exported):
    model_config = ConfigDict(extra="allow")

    answer: Text
    citations: Annotated[list[CitationView], Field(max_length=10_000)] = []


class ItemRecord(Exported):
    id: UUID
    segment_id: UUID
    prompt_id: UUID
    status: Literal["planned", "done", "split", "failed"]
    answer: ItemAnswer | None = None
    made_by: Name | None = None
    failed_models: Annotated[list[dict[str, str]], Field(max_length=50)] = []
    error_code: Name | None = None
    error_message: Note | None = None
    done_at: datetime | None = None


class AnalysisRecord(Exported):
    id: UUID
    document_id: UUID
    sha256: Hash
    mode: Literal["parallel", "sequential"]
    at_once: Annotated[int, Field(ge=1, le=10)] = 1
    status: Literal["created", "queued", "analyzing", "completed", "error", "stopped"]
    phase: Literal["initializing", "uploading", "processing", "consolidating", "completed", "abandoned"]
    unit: Literal["pages", "passages"] | None = None
    units: Annotated[int, Field(gt=0, le=10**7)] | None = None
    error_code: Name | None = None
    error_message: Note | None = None
    created_at: datetime
    progressed_at: datetime
    completed_at: datetime | None = None
    segments: Annotated[list[SegmentRecord], Field(max_length=MOST_ROWS)] = []
    results: Annotated[list[ResultRecord], Field(max_length=1000)] = []
    items: Annotated[list[ItemRecord], Field(max_length=MOST_ROWS)] = []


class ViewRecord(Exported):
    id: UUID
    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
    filter: Annotated[dict[str, Any], Field(max_length=50)]
    sort: Annotated[str, Field(pattern=r"^-?[a-z_]{1,40}$")]
    created_at: datetime


class RevisionRecord(Exported):
    number: Annotated[int, Field(gt=0, le=10**6)]
    record: dict[str, Any]
    made_by: Literal["engine", "person"]
    created_at: datetime
    person: Name | None = None
    changes: Annotated[list[Any], Field(max_length=10_000)] | None = None


class ConversionRecord(Exported):
    id: UUID
    document_id: UUID | None = None
    filename: Name
    mapping: Name
    mapping_text: Annotated[str, Field(min_length=1, max_length=256 * 1024, pattern=r"^[^\x00]*$")]
    mapping_file: Name = "mapping.yaml"
    sha256: Hash
    bytes: Annotated[int, Field(gt=0, le=1 << 50)]
    live: bool = True
    revision: Annotated[int, Field(gt=0, le=10**6)]
    download_count: Count = 0
    first_downloaded_at: datetime | None = None
    needs_review: bool = False
    created_at: datetime
    completed_at: datetime | None = None
    revisions: Annotated[list[RevisionRecord], Field(min_length=1, max_length=10_000)]
    files: Annotated[list[FileRecord], Field(max_length=2)] = []


class RecordsImport(Exported):
    """Records to restore, by kind."""

    model_config = ConfigDict(extra="forbid")

    collections: Annotated[list[CollectionRecord], Field(max_length=500)] = []
    fields: Annotated[list[FieldRecord], Field(max_length=500)] = []
    rules: Annotated[list[RuleRecord], Field(max_length=500)] = []
    parts: Annotated[list[PartsRecord], Field(max_length=500)] = []
    connections: Annotated[list[ConnectionRecord], Field(max_length=500)] = []
    verdicts: Annotated[list[VerdictRecord], Field(max_length=500)] = []
    weights: Annotated[list[WeightsRecord], Field(max_length=1)] = []
    views: Annotated[list[ViewRecord], Field(max_length=500)] = []
    prompts: Annotated[list[PromptRecord], Field(max_length=500)] = []
    threads: Annotated[list[ThreadRecord], Field(max_length=500)] = []
    analyses: Annotated[list[AnalysisRecord], Field(max_length=500)] = []


class Origin(Exported):
    """The origin of an exported document: its id in the exporting installation, and the SHA-256 of its source.

    `copy_of` is set if the document is a duplicate. It is the id of the document with the same content.
    """

    model_config = ConfigDict(extra="forbid")

    id: UUID
    sha256: Hash
    copy_of: UUID | None = None
