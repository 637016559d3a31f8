"""A table of all tools for agents. The docstring of a tool is the description that the agent sees.

A tool never treats the text of a document as instructions. Tools that write are offered only to callers with write
permission.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Annotated, Any, Self, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from octavo.client import Client, Filters, SearchFilters
from octavo.core.errors import BadInput
from octavo.mcp.answers import TextRange, find_chunks, find_pages, parse_cursor, read_part, write_answer, write_part
from octavo.records.analyses import Analysis, ResultView
from octavo.records.conversions import ConversionView
from octavo.records.documents import Document, Outcome
from octavo.records.search import AnswerSources, Mode, Statement, ThreadReference

MOST_HITS = 50
MOST_DOCUMENTS = 100
MOST_CHOSEN = 100
MOST_TEXT_SENT = 500_000
SOURCE = "MCP"

Text = Annotated[str, Field(min_length=1, max_length=1000)]
DocumentId = Annotated[UUID, Field(description="Document id, from `search` or `list_documents`.")]
Position = Annotated[int, Field(ge=0, le=1_000_000_000)]
Cursor = Annotated[
    str | None, Field(max_length=500, description="The cursor for the next part, from the previous answer.")
]
CustomField = Annotated[
    Text | None, Field(description="A custom field and its value, such as Project:Coast, or only its name.")
]
Limit = Annotated[int, Field(ge=1, le=MOST_HITS, description="Maximum number of items.")]


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


Given = TypeVar("Given", bound=Arguments)
Run = Callable[[Client, Given], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. If `writes` is true, it changes data, and is offered only to callers with write permission.

    If `open_world` is true, it can make the server send requests to other servers.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Client, Any], Awaitable[str]]
    writes: bool = False
    open_world: bool = False

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments.

        Agents read every schema, so titles are left out to keep the schema short.
        """
        schema = self.arguments.model_json_schema()
        properties = {name: _simplify(one) for name, one in schema.pop("properties", {}).items()}
        return {"type": schema["type"], "properties": properties, **_without(schema, "title", "type")}


def _simplify(schema: dict[str, Any]) -> dict[str, Any]:
    """Simplify the JSON schema of an argument.

    Pydantic describes an optional argument as "this type or null". Null is removed, so that agents omit the argument
    instead of sending null. The title is removed, too.
    """
    choices: list[dict[str, Any]] = schema.get("anyOf", [])
    own = next((one for one in choices if one.get("type") != "null"), dict[str, Any]())
    default = {"default": schema["default"]} if schema.get("default") is not None else {}
    return {**own, **_without(schema, "title", "anyOf", "default"), **default}


def _without(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: one for name, one in schema.items() if name not in names}


TOOLS: dict[str, Tool] = {}


def tool(
    title: str, arguments: type[Given], *, writes: bool = False, open_world: bool = False
) -> Callable[[Run[Given]], Run[Given]]:
    """Return a decorator that adds a function to `TOOLS` under the function's name.

    The docstring of the function becomes the description of the tool for agents.
    """

    def add(run: Run[Given]) -> Run[Given]:
        name = run.__name__  # pyright: ignore[reportFunctionMemberAccess] - always a function
        if name in TOOLS:
            raise ValueError(f"There are two tools named {name}.")
        TOOLS[name] = Tool(
            name, title, cleandoc(run.__doc__ or ""), arguments, run, writes=writes, open_world=open_world
        )
        return run

    return add


def offered(*, may_write: bool) -> list[Tool]:
    """Return the tools for a caller. Callers without write permission get only tools that do not change anything."""
    return [one for one in TOOLS.values() if may_write or not one.writes]


# Finding and reading -------------------------------------------------------------------------------------------------


class SearchArguments(Arguments):
    query: Annotated[Text, Field(description='Words or a question. Exact phrases in quotation marks: "net salary".')]
    mode: Annotated[Mode, Field(description="`text`: by words, `semantic`: by meaning, `hybrid`: by both.")] = "hybrid"
    document_ids: Annotated[list[UUID], Field(max_length=MOST_CHOSEN)] = []
    tag: Text | None = None
    collection: Text | None = None
    field: CustomField = None
    limit: Limit = 10
    cursor: Cursor = None


@tool("Search documents", SearchArguments)
async def search(client: Client, wanted: SearchArguments) -> str:
    """Find the passages that match a query best, in all documents or in some.

    Each hit has the id and title of its document, a page or chunk, and a snippet. Use `read` for the text around it.
    """
    filters = SearchFilters(
        wanted.document_ids, [wanted.tag] if wanted.tag else [], wanted.collection, field=wanted.field
    )
    found = await client.search(
        wanted.query, mode=wanted.mode, limit=wanted.limit, cursor=wanted.cursor, filters=filters
    )
    fields = ("document_id", "title", "page", "chunk_id", "heading_path", "snippet", "score", "why", "url")
    content = {"hits": [_pick(one, fields) for one in found.items], "mode": found.mode, "suggestion": found.suggestion}
    return write_answer(content, found.next_cursor)


class ReadArguments(Arguments):
    document_id: DocumentId
    page: Annotated[int | None, Field(ge=1, le=1_000_000, description="Page to read, counted from 1.")] = None
    last_page: Annotated[int | None, Field(ge=1, le=1_000_000, description="Last page of a range.")] = None
    chunk_id: Annotated[UUID | None, Field(description="Chunk to read, from a `search` hit.")] = None
    first_chunk: Annotated[Position | None, Field(description="First chunk of a range, counted from 0.")] = None
    last_chunk: Annotated[Position | None, Field(description="Last chunk of a range (inclusive).")] = None
    cursor: Cursor = None

    @model_validator(mode="after")
    def _selects_one_range(self) -> Self:
        if sum(one is not None for one in (self.page, self.chunk_id, self.first_chunk, self.cursor)) > 1:
            raise ValueError("use only one of page, chunk_id, first_chunk and cursor")
        if (self.last_page is not None and self.page is None) or (
            self.last_chunk is not None and self.first_chunk is None
        ):
            raise ValueError("last_page needs page, and last_chunk needs first_chunk")
        return self


@tool("Read a document", ReadArguments)
async def read(client: Client, wanted: ReadArguments) -> str:
    """Read the text of a document as Markdown: all of it, some pages, or some chunks.

    A long text comes in parts. Each part includes the cursor of the next one. Comments such as <!-- page 3 --> mark
    where a page begins.
    """
    return write_part(await read_part(client, wanted.document_id, await _find_range(client, wanted)))


async def _find_range(client: Client, wanted: ReadArguments) -> TextRange:
    if wanted.cursor is not None:
        return parse_cursor(wanted.cursor)
    if wanted.page is not None:
        return await find_pages(client, wanted.document_id, wanted.page, wanted.last_page or wanted.page)
    if wanted.chunk_id is not None:
        return await find_chunks(client, wanted.document_id, wanted.chunk_id)
    if wanted.first_chunk is not None:
        last = wanted.first_chunk if wanted.last_chunk is None else wanted.last_chunk
        return await find_chunks(client, wanted.document_id, range(wanted.first_chunk, last + 1))
    return TextRange()


class ListArguments(Arguments):
    query: Annotated[Text | None, Field(description="Words in the title, file name or author.")] = None
    tag: Text | None = None
    collection: Text | None = None
    kind: Annotated[Text | None, Field(description="Kind of document, such as invoice.")] = None
    sender: Annotated[Text | None, Field(description="Part of the sender's name.")] = None
    after: Annotated[Text | None, Field(description="On or after this day, month or year, such as 2026-03.")] = None
    before: Annotated[Text | None, Field(description="Before this day, month or year.")] = None
    field: CustomField = None
    limit: Annotated[int, Field(ge=1, le=MOST_DOCUMENTS, description="Maximum number of documents.")] = 20
    cursor: Cursor = None


@tool("List documents", ListArguments)
async def list_documents(client: Client, wanted: ListArguments) -> str:
    """List documents, newest first, with their main facts. All filters must match."""
    filters = Filters(
        q=wanted.query,
        tag=wanted.tag,
        collection=wanted.collection,
        kind=wanted.kind,
        sender=wanted.sender,
        after=wanted.after,
        before=wanted.before,
        field=wanted.field,
    )
    found = await client.list_documents(filters, cursor=wanted.cursor, limit=wanted.limit)
    return write_answer({"documents": [describe(one) for one in found.items]}, found.next_cursor)


class AskArguments(Arguments):
    question: Text
    document_ids: Annotated[
        list[UUID], Field(max_length=MOST_CHOSEN, description="Documents to use. Default: all documents.")
    ] = []
    thread_id: Annotated[UUID | None, Field(description="Thread that this question continues.")] = None


@tool("Ask documents", AskArguments)
async def ask(client: Client, wanted: AskArguments) -> str:
    """Answer a question using the user's documents, with citations.

    `verified` is true if the quote is in the document word for word. If `found` is false, the documents do not answer
    the question. If the installation uses an external model, each question costs money.
    """
    content: dict[str, object] = {}
    statements: list[Statement] = []
    async for one in client.ask(wanted.question, wanted.document_ids, thread=wanted.thread_id):
        if isinstance(one, ThreadReference):
            content["thread_id"] = one.thread_id
        elif isinstance(one, Statement):
            statements.append(one)
        elif isinstance(one, AnswerSources):
            content |= {"found": one.found, "answer": one.answer, "note": one.note, "made_by": one.made_by}
            content |= {"statements": statements, "citations": one.citations}
    return write_answer(content)


class OneDocument(Arguments):
    document_id: DocumentId


@tool("List the facts of a document", OneDocument)
async def facts(client: Client, wanted: OneDocument) -> str:
    """List the facts of a document, such as sender, date, amount and number, each with its page and quote."""
    fields = ("name", "value", "normalized", "page", "quote", "confidence", "source", "status", "suggests")
    found = await client.list_facts(wanted.document_id)
    return write_answer({"facts": [_pick(one, fields) for one in found]})


class ConnectionArguments(OneDocument):
    limit: Limit = 10
    cursor: Cursor = None


@tool("List the connections of a document", ConnectionArguments)
async def connections(client: Client, wanted: ConnectionArguments) -> str:
    """List passages of other documents that are connected to a document, most important first.

    They are similar to a passage of the document, contradict it, or link it to a different subject. A connection with
    the status `possible` was found without a model and can be wrong. Until `comparison` is `done`, connections may be
    missing.
    """
    found = await client.list_connections(wanted.document_id, cursor=wanted.cursor, limit=wanted.limit)
    content = {"connections": found.items, "comparison": found.comparison.state}
    return write_answer(content, found.next_cursor)


class DiffArguments(OneDocument):
    since: Annotated[UUID | None, Field(description="Document to compare with. Default: the previous version.")] = None


@tool("Compare two versions", DiffArguments)
async def diff(client: Client, wanted: DiffArguments) -> str:
    """List the changes in a document since its previous version, or compared with another document."""
    found = await client.compare(wanted.document_id, since=wanted.since)
    content = {"old": found.old, "new": found.new, "fields": found.fields, "changes": found.changes}
    return write_answer(content | {"text": found.text or []})


# Analyses and conversions --------------------------------------------------------------------------------------------


@tool("List prompts", Arguments)
async def list_prompts(client: Client, wanted: Arguments) -> str:
    """List the saved prompts. An analysis runs prompts on a whole document."""
    del wanted
    fields = ("id", "title", "content", "active")
    return write_answer({"prompts": [_pick(one, fields) for one in await client.analyses.list_prompts()]})


class AnalysisArguments(Arguments):
    analysis_id: Annotated[UUID, Field(description="Id of the analysis, from `analyse` or `analyses`.")]


@tool("Read an analysis", AnalysisArguments)
async def analysis(client: Client, wanted: AnalysisArguments) -> str:
    """Return the progress and the results of an analysis. Each result includes page citations."""
    found = await client.analyses.show(wanted.analysis_id)
    results = await client.analyses.list_results(wanted.analysis_id)
    return write_answer(_progress(found) | {"results": [_result(one) for one in results]})


class PageArguments(Arguments):
    limit: Limit = 20
    cursor: Cursor = None


@tool("List analyses", PageArguments)
async def analyses(client: Client, wanted: PageArguments) -> str:
    """List the analyses of documents, newest first, with their status."""
    found = await client.analyses.list(cursor=wanted.cursor, limit=wanted.limit)
    return write_answer({"analyses": [_progress(one) for one in found.items]}, found.next_cursor)


@tool("List mappings", Arguments)
async def list_mappings(client: Client, wanted: Arguments) -> str:
    """List the mappings. A mapping defines which values a conversion extracts from one type of document."""
    del wanted
    fields = ("name", "title", "fields", "required")
    return write_answer({"mappings": [_pick(one, fields) for one in await client.conversions.list_mappings()]})


class ConversionArguments(Arguments):
    conversion_id: Annotated[UUID, Field(description="Id of the conversion, from `convert` or `conversions`.")]


@tool("Read a conversion", ConversionArguments)
async def conversion(client: Client, wanted: ConversionArguments) -> str:
    """Return the status, values and checks of a conversion."""
    return write_answer(_conversion(await client.conversions.show(wanted.conversion_id)))


@tool("List conversions", PageArguments)
async def conversions(client: Client, wanted: PageArguments) -> str:
    """List conversions of business documents, newest first, without their values."""
    found = await client.conversions.list(cursor=wanted.cursor, limit=wanted.limit)
    fields = ("id", "document_id", "filename", "mapping", "status", "error", "created_at")
    return write_answer({"conversions": [_pick(one, fields) for one in found.items]}, found.next_cursor)


# Tools that write ----------------------------------------------------------------------------------------------------


class AddArguments(Arguments):
    text: Annotated[str | None, Field(min_length=1, max_length=MOST_TEXT_SENT, description="Text to store.")] = None
    url: Annotated[str | None, Field(max_length=2000, description="Web page or video to fetch.")] = None
    title: Annotated[Text | None, Field(description="Title of the text.")] = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.text is None) == (self.url is None):
            raise ValueError("use either text or url")
        return self


@tool("Add a document", AddArguments, writes=True, open_world=True)
async def add(client: Client, wanted: AddArguments) -> str:
    """Add a text or a web page to the user's documents. Only do this if the user asked for it.

    The text of the new document can be read after a few seconds. Content that is already stored is not added again.
    """
    made = await _add(client, wanted)
    return f'{{"document_id": "{made.document_id}", "state": "{made.state}"}}'


async def _add(client: Client, wanted: AddArguments) -> Outcome:
    if wanted.url is not None:
        return await client.add_link(wanted.url, source=SOURCE)
    if wanted.text is None:
        raise BadInput("Use either text or url.")
    return await client.add_text(wanted.text, title=wanted.title, source=SOURCE)


class AnalyseArguments(OneDocument):
    prompt_ids: Annotated[
        list[UUID],
        Field(max_length=MOST_CHOSEN, description="Prompts to run, from `list_prompts`. Default: all active prompts."),
    ] = []


@tool("Start an analysis", AnalyseArguments, writes=True)
async def analyse(client: Client, wanted: AnalyseArguments) -> str:
    """Run saved prompts on a whole document. Only do this if the user asked for it, because it can cost money.

    The analysis takes a while. Read the results with `analysis`.
    """
    started = await client.analyses.start(wanted.document_id, wanted.prompt_ids or None)
    return write_answer(_progress(started))


class ConvertArguments(OneDocument):
    mapping: Annotated[
        Text | None, Field(description="Mapping, from `list_mappings`. Default: the default mapping of the server.")
    ] = None


@tool("Convert a document", ConvertArguments, writes=True)
async def convert(client: Client, wanted: ConvertArguments) -> str:
    """Convert a PDF, such as an invoice, to checked values and XML. Only do this if the user asked for it.

    The conversion takes a while. Read the values with `conversion`.
    """
    return write_answer(_conversion(await client.conversions.convert_document(wanted.document_id, wanted.mapping)))


# Records as answers --------------------------------------------------------------------------------------------------


def describe(document: Document) -> dict[str, object]:
    """Return the fields of a document that help an agent to decide whether to read it."""
    fields = ("id", "title", "filename", "status", "text_ready", "kind", "sender", "document_date", "amount")
    more = ("currency", "author", "language", "page_count", "word_count", "tags", "collection", "summary", "created_at")
    return _pick(document, (*fields, *more, "error"))


def _progress(found: Analysis) -> dict[str, object]:
    fields = ("id", "document_id", "title", "status", "phase", "cost_usd", "error")
    return _pick(found, fields) | {"percent": found.percent.overall}


def _result(result: ResultView) -> dict[str, object]:
    return _pick(result, ("title", "status", "content", "citations", "answered_by", "gaps", "error"))


def _conversion(found: ConversionView) -> dict[str, object]:
    values = ("name", "value", "page", "quote", "confidence", "status")
    fields = ("id", "document_id", "filename", "mapping", "status", "error", "missing", "checks")
    return _pick(found, fields) | {"values": [_pick(one, values) for one in found.values]}


def _pick(record: object, fields: Sequence[str]) -> dict[str, object]:
    """Return the given fields of a record, without those that are None or an empty list."""
    values = {name: getattr(record, name) for name in fields}
    return {name: value for name, value in values.items() if value is not None and value != []}
