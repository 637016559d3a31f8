"""Record types for API keys, budgets and costs of an account, and for the limits and options of the installation."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from octavo.core.types import Extraction

Role = Literal["owner", "member", "reader"]
KeyScope = Literal["read", "write", "admin"]
GrantAccess = Literal["read", "write"]
BudgetScope = Literal["document", "owner", "month"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for uploads and storage. `stored_bytes` is null if there is no limit."""

    upload_bytes: int
    stored_bytes: int | None
    concurrent_uploads: int


@dataclass(frozen=True, slots=True)
class Published:
    """Limits and options that apply to you.

    `sign_up` is true if anybody can create an account. `extraction` lists the extraction modes that you can use.
    """

    version: str
    limits: Limits
    trash_days: int
    sign_up: bool
    extraction: list[Extraction]


@dataclass(frozen=True, slots=True)
class Access:
    """The permissions of a caller, limited by the scope of the API key or session and by the person's role."""

    role: str
    scope: KeyScope
    limited: bool = False

    @property
    def may_write(self) -> bool:
        return self.scope != "read" and self.role != "reader" and not self.limited


@dataclass(frozen=True, slots=True)
class KeyView:
    """An API key. `start` is the visible beginning of the key; the rest is stored only as a hash."""

    id: UUID
    name: str
    start: str
    scope: KeyScope
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewKey(KeyView):
    """A new API key. This is the only response that contains the key itself."""

    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class UserAccount:
    """An account with its members and its storage use, including the trash. `spent_usd` is its model cost
    this month.
    """

    owner_id: UUID
    kind: Literal["local", "user"]
    members: list[str]
    documents: int
    bytes: int
    spent_usd: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Member:
    """A person who can act for the account. A `limited` member sees only the collections that were granted to them."""

    user_id: UUID
    email: str
    role: Role
    created_at: datetime
    limited: bool = False


@dataclass(frozen=True, slots=True)
class GroupMember:
    user_id: UUID
    email: str


@dataclass(frozen=True, slots=True)
class Group:
    """A group of members of the account. Collections can be granted to the whole group."""

    id: UUID
    name: str
    created_at: datetime
    members: list[GroupMember]


@dataclass(frozen=True, slots=True)
class Grant:
    """A collection that a limited member or a group can read or, with `write` access, also change."""

    id: UUID
    collection_id: UUID
    collection: str
    user_id: UUID | None
    email: str | None
    group_id: UUID | None
    group_name: str | None
    access: GrantAccess
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ConnectedIdentity:
    """A person's identity at an OpenID Connect provider. The person can sign in with it."""

    issuer: str
    subject: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class SessionView:
    """A browser that is signed in. `browser` is its name; `current` is true for the browser that sent the request."""

    id: UUID
    browser: str | None
    created_at: datetime
    expires_at: datetime
    current: bool


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation to become a member. It can be accepted once, before it expires."""

    id: UUID
    email: str
    role: Role
    created_at: datetime
    expires_at: datetime
    limited: bool


@dataclass(frozen=True, slots=True)
class NewInvitation(Invitation):
    """A new invitation. Only this response contains its link. `mailed` is true if the link was sent by email."""

    link: str = field(repr=False)
    mailed: bool


@dataclass(frozen=True, slots=True)
class ResetLink:
    """A link that lets a person set a new password. It works once."""

    link: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Share:
    """A link that lets others read a document or a collection. If `sign_in` is true, it requires an account."""

    id: UUID
    document_id: UUID | None
    collection_id: UUID | None
    name: str
    sign_in: bool
    created_by: str | None
    created_at: datetime
    expires_at: datetime
    last_opened_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewShare(Share):
    """A new share. Only this response contains its link."""

    link: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action of a person or program.

    `actor` is the person's email address, or `administrator` for this machine's administrator. It is null for a visitor
    without an account. `via` says whether the caller used a session or an API key. `thing` is the current name of the
    changed person or object, if it still exists.
    """

    id: int
    at: datetime
    action: str
    actor_id: UUID
    actor: str | None
    via: str | None
    document_id: UUID | None
    thing: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OwnerChoice:
    """An account (owner) that a person can act for. `email` is the address of the person it was created for."""

    owner_id: UUID
    kind: str
    role: Role
    email: str | None


@dataclass(frozen=True, slots=True)
class Me:
    """The current user. `owners` are the accounts that they belong to. `note` is a hint for anonymous visitors.

    If `limited` is true, they see only some collections of the account. `language` is the language that they chose for
    pages and emails.
    """

    owner_id: UUID
    kind: str
    email: str | None
    role: Role
    scope: KeyScope
    admin: bool
    owners: list[OwnerChoice]
    note: str | None
    limited: bool = False
    language: str | None = None


# Costs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget. `usd` is the amount that applies. `usual_usd` is the default, which applies if no budget is set."""

    usd: float
    usual_usd: float
    is_set: bool


@dataclass(frozen=True, slots=True)
class BudgetsInForce:
    """The budget per document (`document`), per account and month (`owner`), and per month for all accounts (`month`).

    `spent_usd` is what your account has spent this month, including reservations for running model calls.
    `everybody_usd` is the corresponding amount for all accounts together. Only administrators see `month` and
    `everybody_usd`.
    """

    document: Budget
    owner: Budget
    month: Budget | None
    spent_usd: float
    everybody_usd: float | None


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """An estimated cost in US dollars. It is 0 if no provider is called.

    `models` are the models that are called first. Other models are called only if these fail.
    """

    usd: float
    models: list[str]


@dataclass(frozen=True, slots=True)
class DocumentEstimate:
    """The estimated cost of processing a document. Nothing has been spent yet.

    `describe` is the cost of generating title, summary, tags, chunk summaries and vectors. `clean` is the cost of
    cleaning up the extracted text with a model, and `pages` is the cost of reading images of the pages with a model.
    `connections` is the highest possible cost of finding connections: the actual cost depends on the other documents.
    `analysis` is the cost of running the requested number of prompts.
    """

    describe: CostEstimate
    clean: CostEstimate
    pages: CostEstimate
    connections: CostEstimate
    analysis: CostEstimate


@dataclass(frozen=True, slots=True)
class DocumentBudget:
    """The budget of a document.

    `usual_usd` is the default, which applies if `is_set` is false. The budget can be raised up to `most_usd`.
    `spent_usd` includes reservations for running model calls. `paused` is the number of jobs that wait for more budget;
    together, they need about `needed_usd`. `over` says which budget is used up: that of the document, of the account
    (`owner`) or of all accounts (`month`).
    """

    document_id: UUID
    usd: float
    usual_usd: float
    is_set: bool
    most_usd: float
    spent_usd: float
    paused: int
    needed_usd: float
    over: BudgetScope | None


@dataclass(frozen=True, slots=True)
class PurposeUsage:
    """The model calls for one purpose.

    `failed` counts calls without a usable answer; some of these calls still cost money.
    """

    purpose: str
    model: str
    calls: int
    failed: int
    tokens_in: int
    tokens_out: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class DocumentUsage:
    document_id: UUID
    title: str
    calls: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class MonthUsage:
    month: str
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a month, such as `2026-11`.

    `estimated_usd` is the part of `cost_usd` that is only estimated. `reserved_usd` is reserved for running model
    calls, and `saved_usd` was saved by reusing answers. `budget_usd` is the account's monthly budget. `purposes` and
    `documents` list the costs of that month, highest first; `months` lists recent months. `everybody_usd` is the cost
    of all accounts together; only administrators see it.
    """

    month: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    estimated_usd: float
    reserved_usd: float
    reuses: int
    saved_usd: float
    budget_usd: float
    everybody_usd: float | None
    purposes: list[PurposeUsage]
    documents: list[DocumentUsage]
    months: list[MonthUsage]


# Models ------------------------------------------------------------------------------------------------------------

RemoteProvider = Literal["gemini", "openai", "anthropic", "mistral", "azure", "vertex", "bedrock", "compatible"]
TaskGroup = Literal["describe", "read", "connect", "answer", "analyse", "convert"]
KeyState = Literal["none", "set", "unreadable"]


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A provider of models. Only administrators see `url`, `key_end` and `fixed_by`.

    `price` is in US dollars per million input and output tokens, such as `1.25/10`. It is null if the price is unknown.
    `key_end` contains the last four characters of the API key. `fixed_by` maps each value that cannot be changed here
    to the setting that defines it.
    """

    name: RemoteProvider
    in_use: bool
    model: str | None
    url: str | None
    context: int | None
    price: str | None
    key: KeyState
    key_end: str | None
    fixed_by: dict[str, str]


@dataclass(frozen=True, slots=True)
class TaskModels:
    """The models of a group of tasks, in the order in which they are tried.

    If `is_set` is false, no models were chosen for these tasks, and the order of the providers determines the models.
    """

    name: TaskGroup
    models: list[str]
    is_set: bool


@dataclass(frozen=True, slots=True)
class ModelsInForce:
    """The providers, the models of each group of tasks, and this month's cost.

    `order` lists the providers in the order in which they are tried. `fixed_by` maps `order`, `tasks` and `embedding`
    to the setting that defines them. `problem` says why saved settings are not used. `unpriced` lists the models that
    are not called because their price is unknown.
    """

    order: list[str]
    providers: list[ModelProvider]
    tasks: list[TaskModels]
    embedding: str
    fixed_by: dict[str, str]
    problem: str | None
    unpriced: list[str]
    spent_usd: float
    everybody_usd: float | None


@dataclass(frozen=True, slots=True)
class ModelTest:
    """The result of a test call. Its cost counts towards your budget."""

    model: str
    seconds: float
    cost_usd: float


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A model server that runs on the same machine as Octavo. `context` is null if the server does not report it."""

    name: str
    url: str
    models: list[str]
    context: int | None
