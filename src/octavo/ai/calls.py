"""Defines model calls independently of the provider: the caller, the request, the answer and its JSON Schema.

A document's text is data, not instructions. It is placed between tags that contain the hash of the text, so the text
cannot contain its own closing tag. The instructions explain the tags. A model that reads documents gets no tools.

Each type of answer has a complete JSON Schema for validation and a simplified one for providers. An answer that is only
too long is shortened instead of rejected, because a second call would cost money.

This module also lists the circuit breakers of the model providers and the conversion service. If one is open, the
module can still let the next call through as a test.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import cache
from hashlib import sha256
from typing import Any, Generic, TypeVar
from uuid import UUID

from pydantic import BaseModel

from octavo.core.errors import NotFound, OctavoError
from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.records.jobs import Circuit

# The keywords that all providers support. Limits are stated in the prompt and enforced when the answer is parsed.
PLAIN_KEYWORDS = frozenset({"type", "properties", "required", "items", "enum", "anyOf", "additionalProperties"})

Schema = dict[str, Any]


@cache
def whole_schema(output: type[BaseModel]) -> Schema:
    """Return the JSON Schema of a Pydantic class, with all `$ref` references resolved."""
    schema = output.model_json_schema()
    definitions: Schema = schema.pop("$defs", {})
    return {name: _resolve(one, definitions) for name, one in schema.items()}


@cache
def plain_schema(output: type[BaseModel]) -> Schema:
    """Return the JSON Schema with only the keywords in `PLAIN_KEYWORDS`, which every provider accepts."""
    return _strip(whole_schema(output))


def _resolve(node: JSON, definitions: Schema) -> JSON:
    if isinstance(node, list):
        return [_resolve(one, definitions) for one in node]
    if not isinstance(node, dict):
        return node
    if isinstance(reference := node.get("$ref"), str):
        return _resolve(definitions[reference.rpartition("/")[2]], definitions)
    return {name: _resolve(one, definitions) for name, one in node.items()}


def _strip(node: Schema) -> Schema:
    plain = {name: value for name, value in node.items() if name in PLAIN_KEYWORDS}
    if "properties" in plain:
        plain["properties"] = {name: _strip(one) for name, one in plain["properties"].items()}
    if "items" in plain:
        plain["items"] = _strip(plain["items"])
    if "anyOf" in plain:
        plain["anyOf"] = [_strip(one) for one in plain["anyOf"]]
    return plain


def fit_to_schema(value: JSON, schema: Schema) -> JSON:
    """Shorten texts and lists that exceed the limits of the schema, and clamp numbers to its range.

    Missing values and values of the wrong type are not changed, so that validation rejects them.
    """
    if "anyOf" in schema:
        return _fit_optional(value, schema)
    match value:
        case str():
            return clean_text(value).strip()[: schema.get("maxLength")]
        case list():
            fitted = [fit_to_schema(one, schema.get("items", {})) for one in value]
            return [one for one in fitted if one != ""][: schema.get("maxItems")]
        case dict():
            forms: Schema = schema.get("properties", {})
            return {name: fit_to_schema(one, forms.get(name, {})) for name, one in value.items()}
        case int() | float() if not isinstance(value, bool):
            return min(max(value, schema.get("minimum", value)), schema.get("maximum", value))
        case _:
            return value


def clean_text(text: str) -> str:
    """Remove NUL characters and replace lone surrogates, because the database cannot store them."""
    return text.replace("\x00", "").encode(errors="replace").decode()


def _fit_optional(value: JSON, schema: Schema) -> JSON:
    forms = [form for form in schema["anyOf"] if form.get("type") != "null"]
    fitted = fit_to_schema(value, forms[0]) if len(forms) == 1 else value
    return None if fitted == "" and len(forms) < len(schema["anyOf"]) else fitted


# Deliberately high: budgets and rate limits are checked against these estimates before the real count is known.
CHARACTERS_PER_TOKEN = 3
PICTURE_TOKENS = 2500
PAGE_TOKENS = 2500
# Providers that need far fewer tokens for a PDF page: Gemini counts 258, its newer models 560.
PAGE_TOKENS_BY_PROVIDER = {"gemini": 600}
MARK_LENGTH = 16
LOCAL = "local"

Out = TypeVar("Out")


@dataclass(frozen=True, slots=True)
class InstructionText:
    """Instructions to the model, written by the developers of Octavo and therefore trusted."""

    text: str


@dataclass(frozen=True, slots=True)
class QuotedText:
    """Untrusted text, such as the text of a document. `name` is its label in the request."""

    name: str
    text: str

    @property
    def fenced(self) -> str:
        mark = f"{self.name}-{sha256(self.text.encode(errors='replace')).hexdigest()[:MARK_LENGTH]}"
        return f"<{mark}>\n{self.text}\n</{mark}>"


@dataclass(frozen=True, slots=True)
class Picture:
    data: bytes = field(repr=False)
    media_type: str


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file whose content is read only when it is sent. Some providers keep the file for later calls."""

    sha256: str
    media_type: str
    pages: int
    read: Callable[[], Awaitable[bytes]] = field(repr=False, compare=False)


Part = InstructionText | QuotedText | Picture | FileReference


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model. `schema` describes the JSON answer. If it is None, the answer is text.

    `expected_tokens` is the likely length of the answer.
    """

    purpose: str
    version: str
    instructions: str
    parts: tuple[Part, ...]
    schema: Schema | None
    output_tokens: int
    expected_tokens: int

    @property
    def input_tokens(self) -> int:
        """The estimated number of input tokens. The estimate is high enough for every provider."""
        return self.tokens_for("")

    def tokens_for(self, provider: str) -> int:
        written = len(self.instructions) + len(json.dumps(self.schema))
        per_page = PAGE_TOKENS_BY_PROVIDER.get(provider, PAGE_TOKENS)
        return written // CHARACTERS_PER_TOKEN + sum(_tokens_of(part, per_page) for part in self.parts)

    @property
    def has_files(self) -> bool:
        return any(isinstance(part, FileReference) for part in self.parts)

    def digest(self, owner: UUID, generation: int) -> bytes:
        """Return the key under which the answer is cached.

        It is the same for identical requests by one account, regardless of the model.
        """
        key = [
            str(owner),
            generation,
            self.purpose,
            self.version,
            self.schema,
            [_digest_key(part) for part in self.parts],
        ]
        return sha256(json.dumps(key, sort_keys=True).encode()).digest()

    def with_correction(self, answer: str, reason: str) -> ModelRequest:
        """Return a copy of the request with the rejected answer and the reason for its rejection added."""
        advice = (InstructionText(f"Your last answer could not be used: {reason}. Answer again in the required form."),)
        return replace(self, parts=(*self.parts, QuotedText("last-answer", answer), *advice))


def _tokens_of(part: Part, per_page: int) -> int:
    match part:
        case Picture():
            return PICTURE_TOKENS
        case FileReference():
            return per_page * part.pages
        case _:
            return len(part.text.encode(errors="replace")) // CHARACTERS_PER_TOKEN + 1


def _digest_key(part: Part) -> list[str]:
    match part:
        case InstructionText():
            return ["words", part.text]
        case QuotedText():
            return ["quoted", part.name, part.text]
        case Picture():
            return ["picture", sha256(part.data).hexdigest()]
        case FileReference():
            return ["file", part.sha256]


@dataclass(frozen=True, slots=True)
class Caller:
    """The account (owner), document and job for which a call is made and billed.

    Jobs pass their id and `lease_token`, so that a worker that has lost its lease cannot spend money. Identical
    requests by one account get the same stored answer. To repeat a call, pass a new `generation`.
    """

    owner_id: UUID
    document_id: UUID | None = None
    job_id: UUID | None = None
    lease_token: int | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class OfflineUse:
    """Defines when a task may run offline, without a model.

    - `if_configured`: If true, the task runs offline if `local` is one of its models. If false, it does so only if
      `local` is its only model.
    - `if_away`: If true, the task also runs offline if all models failed and a provider is only temporarily
      unavailable.
    - `decide`: Called if models failed and the task would now run offline. Receives the error of the failed models,
      and returns whether the task should run offline.
    """

    if_configured: bool = True
    if_away: bool = False
    decide: Callable[[OctavoError], bool] | None = None


AS_CONFIGURED = OfflineUse()
ALSO_IF_AWAY = OfflineUse(if_away=True)
NEVER = OfflineUse(if_configured=False)


@dataclass(frozen=True, slots=True)
class FailedModel:
    """A model that failed before another model answered, and the reason for the failure."""

    model: str
    fault: str


@dataclass(frozen=True, slots=True)
class ModelAnswer(Generic[Out]):
    """A model's answer. `made_by` is `local` or `provider:model`.

    `cost_usd` is the cost of this call. It is 0 for a reused answer.
    """

    output: Out
    made_by: str
    cost_usd: Decimal = Decimal(0)
    reused: bool = False
    failed: tuple[FailedModel, ...] = ()


class CallerGone(OctavoError):
    """Another worker has taken over this job. This attempt makes no more calls."""

    code = "LEASE_LOST"


QUERIES = load_queries("circuits")
CONVERSION = "conversion"
# The database function `fail_call` uses the same number.
MODEL_FAILURES = 5
# The prefixes of the error codes of the conversion service and of models.
_SERVICE_CODES, _MODEL_CODES = "GW_", "AI_"


def gate_of_service(address: str) -> str:
    """Return the database key for the circuit breaker of the conversion service at this URL."""
    return f"{CONVERSION}:{address}"


async def list_circuits(connection: Connection, settings: Settings) -> list[Circuit]:
    """List the circuit breakers of the configured providers and of the configured conversion service."""
    gates = _gates(settings)
    rows = await fetch_rows(connection, QUERIES.circuits, {"gates": list(gates.values())})
    return [_as_circuit(name, row, settings) for name, row in zip(gates, rows, strict=True)]


async def try_now(connection: Connection, settings: Settings, name: str) -> None:
    """Let the next call through an open circuit breaker as a test, and retry the waiting jobs now."""
    gates = _gates(settings)
    if name not in gates:
        raise NotFound
    await connection.execute(QUERIES.try_now, {"gate": gates[name]})
    codes = _SERVICE_CODES if name == CONVERSION else _MODEL_CODES
    await connection.execute(QUERIES.wake_jobs, {"codes": codes})


def _gates(settings: Settings) -> dict[str, str]:
    gates = {provider: provider for provider in settings.providers if provider != LOCAL}
    if settings.conversion_gateway_url:
        gates[CONVERSION] = gate_of_service(settings.conversion_gateway_url)
    return gates


def _as_circuit(name: str, row: dict[str, object], settings: Settings) -> Circuit:
    converts = name == CONVERSION
    return Circuit(
        name=name,
        failures=int(str(row["failures"])),
        limit=settings.conversion_gateway_failures if converts else MODEL_FAILURES,
        policy=settings.conversion_gateway_policy if converts else "next model",
        open_until=row["open_until"] if isinstance(row["open_until"], datetime) else None,
        half_open=bool(row["half_open"]),
    )
