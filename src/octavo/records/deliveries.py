"""Record types for recipients of events (webhooks, mail, chats), their deliveries, and notifications."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

# `webhook`, `mail`, `slack`, or the name of a channel that an extension adds.
ChannelName: TypeAlias = str
EventType = Literal[
    "document.created",
    "document.queued",
    "document.processing",
    "document.stage",
    "document.progress",
    "document.retry",
    "document.paused",
    "document.completed",
    "document.failed",
    "document.cancelled",
    "document.rejected",
    "document.deduplicated",
    "document.downloaded",
    "document.edited",
    "document.deleted",
    "document.restored",
    "document.purged",
    "document.expired",
    "document.abandoned",
    "job.created",
    "job.queued",
    "job.processing",
    "job.stage",
    "job.progress",
    "job.retry",
    "job.paused",
    "job.completed",
    "job.failed",
    "job.cancelled",
    "job.discarded",
    "job.dead_letter",
    "analysis.created",
    "analysis.queued",
    "analysis.analyzing",
    "analysis.initializing",
    "analysis.uploading",
    "analysis.processing",
    "analysis.consolidating",
    "analysis.item",
    "analysis.result",
    "analysis.completed",
    "analysis.failed",
    "analysis.abandoned",
    "conversion.completed",
    "conversion.needs_review",
    "conversion.failed",
    "conversion.downloaded",
    "conversion.expired",
    "conversion.batch",
    "conversion.deleted",
    "analysis.stopped",
    "analysis.stalled",
    "import.completed",
]
# The two additional types are shown only in the application.
NoticeType = EventType | Literal["webhook.failing", "import.progress"]


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A recipient of events. `waiting` is the number of pending deliveries.

    Only a shortened chat address is shown, because anybody who knows the full address can post to the chat.
    `failing_since` is the time of the first failure after the last success. A `personal` recipient is a member's own
    email address; it gets only events of analyses that this member started.
    """

    id: UUID
    channel: ChannelName
    address: str
    events: list[EventType]
    active: bool
    stopped_because: str | None
    created_at: datetime
    waiting: int
    failing_since: datetime | None
    personal: bool


@dataclass(frozen=True, slots=True)
class NewSubscriber(Subscriber):
    """A recipient that was just added. This is the only response that contains the secret of a webhook."""

    secret: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One attempt to send a delivery. `answer` is the status code of the recipient, if it responded."""

    id: UUID
    at: datetime
    type: str
    event_id: int | None
    process_id: UUID | None
    job_id: UUID
    attempt: int
    status: Literal["delivered", "failed"]
    answer: int | None
    seconds: float
    error_code: str | None


@dataclass(frozen=True, slots=True)
class TestJob:
    """The job that sends a test event. Its status shows the result."""

    job_id: UUID


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification inside the application.

    `title` is the title that the document had when the event happened, or the name of the converted file.
    """

    id: UUID
    type: NoticeType
    level: Literal["news", "error"]
    process_id: UUID
    document_id: UUID | None
    title: str | None
    sentence: str
    link: str | None
    error_code: str | None
    created_at: datetime
    read_at: datetime | None
    resolved_at: datetime | None
    resolved_by: UUID | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """A page of notifications. `unread` counts all unread notifications, not only those on this page."""

    items: list[Notification]
    next_cursor: str | None
    unread: int


@dataclass(frozen=True, slots=True)
class ReadCount:
    """The result of marking notifications as read. `marked` is the number of notifications that were unread."""

    marked: int
