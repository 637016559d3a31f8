"""Record types for sources of documents, custom fields, and rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

FieldType = Literal["text", "number", "date", "money", "choice", "link", "person"]
RetentionStart = Literal["added", "date"]
SourceKind = Literal["folder", "imap", "s3", "webdav", "rss", "lmtp", "extension"]
SourceState = Literal["watching", "adding", "paused", "failing"]
Subfolders = Literal["ignore", "plain", "collections", "tags"]
AfterAdding = Literal["keep", "seen", "move"]
WhenChanged = Literal["version", "new"]


@dataclass(frozen=True, slots=True)
class FieldView:
    """A custom field. For a field of type `choice`, `choices` contains the allowed values."""

    id: UUID
    name: str
    type: FieldType
    choices: list[str]
    documents: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AmountRange:
    """A range of amounts. Without a currency, amounts in all currencies match."""

    min: float | None = None
    max: float | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class RuleWhen:
    """The conditions of a rule. A document must match all of them.

    `text` is a phrase that the text must contain as whole words. `kind`, `tag` and `source` must match exactly;
    `sender` can be a part of the sender's name. `field` contains values of custom fields; null means any value.
    """

    text: str | None = None
    kind: str | None = None
    sender: str | None = None
    source: str | None = None
    tag: str | None = None
    field: dict[str, str | None] | None = None
    amount: AmountRange | None = None


@dataclass(frozen=True, slots=True)
class RuleRetention:
    """A document is moved to the trash `days` days after it was added.

    If `after` is `date`, the days are counted from the date of the document instead.
    """

    days: int
    after: RetentionStart = "added"


@dataclass(frozen=True, slots=True)
class RuleThen:
    """The actions of a rule: tags to add, and values to set. `title` is a pattern such as `{sender} {date}`.

    `analyse` contains titles or ids of prompts, or only `all` for all active ones. `convert` is the name of a mapping.
    Analyses and conversions are started only for new documents.

    `deliver` contains ids of recipients. Each of them gets one message about a document, even if the rule runs again.
    `retention` sets the day on which the document is moved to the trash.
    """

    tags: list[str] | None = None
    collection: str | None = None
    fields: dict[str, str] | None = None
    title: str | None = None
    analyse: list[str] | None = None
    convert: str | None = None
    deliver: list[UUID] | None = None
    retention: RuleRetention | None = None


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule. If it is enabled, it runs on each new document. Rules run in the order of `position`."""

    id: UUID
    name: str
    position: int
    when: RuleWhen
    then: RuleThen
    enabled: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A value that a rule would change.

    `name` is `tags`, `collection`, `title`, `expires_on`, `deliver` or the name of a custom field. For `deliver`,
    `after` is the recipient that would get a message.
    """

    name: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A document that a rule would change. `conflicts` names enabled rules that set the same value differently."""

    document_id: UUID
    title: str
    filename: str
    changes: list[ValueChange]
    conflicts: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """The documents that a rule would change or send. At most 1,000 are listed; `total` counts all of them.

    `problems` lists actions that cannot be performed, for example because a recipient is paused.
    """

    items: list[RuleChange]
    total: int
    next_cursor: str | None = None
    problems: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class RuleRun:
    """One run of a rule. It can be undone for a week.

    `conflicts` lists values that an earlier rule had already set. `documents` counts the changed documents.
    `deliveries` counts the messages to recipients; they cannot be undone.
    """

    id: UUID
    rule_id: UUID
    automatic: bool
    documents: int
    conflicts: list[str]
    created_at: datetime
    undone_at: datetime | None
    deliveries: int = 0


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """The number of files in each state.

    `added` files became new documents. The content of `known` files was already in the account. `waiting` files are not
    added yet, and `failed` files could not be added.
    """

    added: int = 0
    known: int = 0
    waiting: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The files that a source adds, and how it handles added files. Which options apply depends on the kind of source.

    Folders, S3 and WebDAV have the option `subfolders`: `ignore` skips sub-folders, `plain` adds their files,
    `collections` also uses the first sub-folder as the collection, and `tags` uses all sub-folders as tags. If
    `changed` is `version`, a changed file becomes a new version of its document; if `changed` is `new`, it becomes a
    new document. For folders, `after` says what happens to an added file: `keep` leaves it where it is, and `move`
    moves it to the sub-folder `added`.

    For mailboxes, `after` says what happens to an added email: `keep` leaves it unchanged, `seen` marks it as seen, and
    `move` moves it to the mailbox `move_to`. Only emails whose sender contains `sender` and whose subject contains
    `subject` are added. If `attachments` is true, emails without attachments are skipped.
    """

    subfolders: Subfolders = "plain"
    after: AfterAdding = "keep"
    changed: WhenChanged = "version"
    move_to: str | None = None
    sender: str | None = None
    subject: str | None = None
    attachments: bool = False


@dataclass(frozen=True, slots=True)
class SourceAccess:
    """The details of a connection to a server, except its secrets.

    `token_url` and `client_id` are for OAuth. With `authorize_url` and `scope`, a person can connect the account on the
    provider's page. `endpoint` and `region` are for S3; there, `user` is the access key.
    """

    user: str | None = None
    token_url: str | None = None
    client_id: str | None = None
    endpoint: str | None = None
    region: str | None = None
    authorize_url: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source of documents. `error` says why the last run failed. `job_id` is the last job that added files."""

    id: UUID
    kind: SourceKind
    name: str
    path: str
    state: SourceState
    options: SourceOptions
    access: SourceAccess
    every_seconds: int
    last_run: datetime | None
    next_run: datetime | None
    error: str | None
    counts: SourceCounts
    job_id: UUID | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FailedFile:
    """A file of a source that could not be added, and the reason."""

    path: str
    error: str
    seen_at: datetime
