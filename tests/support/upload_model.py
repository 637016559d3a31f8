"""What intake and library promise, as a few dictionaries: who has which content, and which upload stands for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from uuid import UUID

from octavo.intake import Outcome
from octavo.intake.upload_rows import Policy
from octavo.jobs.job_run import ClaimedJob


@dataclass(slots=True, repr=False)
class Upload:
    id: UUID
    owner: UUID
    document: UUID
    process: UUID
    policy: Policy
    claim: bytes | None
    state: str = "pending"
    content: bytes | None = None

    def __repr__(self) -> str:
        return f"Upload {self.state}, {self.policy}, {(self.content or b'')[:12]!r} of {self.owner}"


@dataclass(slots=True, repr=False)
class Document:
    """`stopped`: its job was cancelled. `stages`: how many of these its process has finished."""

    id: UUID
    owner: UUID
    content: bytes
    upload: Upload
    process: UUID
    status: str = "pending"
    canonical: bool = True
    duplicate_of: UUID | None = None
    trashed: bool = False
    has_source: bool = True
    stopped: bool = False
    stages: int = 0
    lease: ClaimedJob | None = None

    def __repr__(self) -> str:
        where = "in the trash" if self.trashed else "canonical" if self.canonical else "twin"
        return f"Document {self.id} {self.status}, {where}, {self.content[:12]!r} of {self.owner}"


def answer(upload: Upload, twin: UUID | None, *, duplicate: bool = False) -> Outcome:
    return Outcome(
        state=upload.state,
        upload_id=upload.id,
        document_id=upload.document,
        process_id=upload.process,
        bytes=len(upload.content or b""),
        sha256=sha256(upload.content or b"").hexdigest(),
        duplicate_of=twin,
        duplicate=duplicate,
    )


@dataclass(slots=True)
class Model:
    """Each method does what one request would, and answers what that one must answer."""

    uploads: dict[UUID, Upload] = field(default_factory=dict[UUID, Upload])
    documents: dict[UUID, Document] = field(default_factory=dict[UUID, Document])  # in the order they were made

    def live(self, owner: UUID, content: bytes) -> list[Document]:
        return [
            one for one in self.documents.values() if (one.owner, one.content, one.trashed) == (owner, content, False)
        ]

    def canonical(self, owner: UUID, content: bytes) -> Document | None:
        return next((one for one in self.live(owner, content) if one.canonical), None)

    def usage(self, owner: UUID) -> tuple[int, int]:
        mine = [len(one.content) for one in self.documents.values() if one.owner == owner]
        return sum(mine), len(mine)

    # Bringing in --------------------------------------------------------------------------------------------------

    def receive(self, upload: Upload, content: bytes) -> str:
        if upload.state != "pending":
            return "UPLOAD_CLOSED"
        if not content:
            return self._refuse(upload, "EMPTY")
        upload.content = content
        return "received"

    def finalize(self, upload: Upload, *, room: bool) -> Outcome | str:  # noqa: PLR0911 - one for each answer
        if upload.state in {"uploaded", "deduplicated"}:
            return self._repeat(upload)
        if upload.state != "pending":
            return "UPLOAD_CLOSED"
        if upload.content is None:
            return "UPLOAD_INCOMPLETE"
        if upload.claim is not None and upload.claim != upload.content:
            return self._refuse(upload, "HASH_MISMATCH")
        holder = self.canonical(upload.owner, upload.content)
        twin = holder if holder and holder.has_source else None
        if twin and upload.policy == "reject":
            return self._refuse(upload, "DUPLICATE")
        if twin and upload.policy == "reuse":
            upload.state, upload.document, upload.process = "deduplicated", twin.id, twin.process
            return answer(upload, twin.id)
        if not room:
            return self._refuse(upload, "QUOTA_EXCEEDED")
        return self._make(upload, upload.content, twin, holder)

    def _make(self, upload: Upload, content: bytes, twin: Document | None, holder: Document | None) -> Outcome:
        made = Document(upload.document, upload.owner, content, upload, upload.process)
        upload.state = "uploaded"
        if twin:
            made.canonical, made.duplicate_of = False, twin.id
            made.status = "completed" if twin.status == "completed" else "pending"
        self.documents[made.id] = made
        if holder and not twin:  # nothing is left of what it came from, so the new one stands for the content
            holder.canonical, holder.duplicate_of = False, made.id
        return answer(upload, twin.id if twin else None)

    def _repeat(self, upload: Upload) -> Outcome:
        twin = upload.document if upload.state == "deduplicated" else self.documents[upload.document].duplicate_of
        return answer(upload, twin, duplicate=True)

    def _refuse(self, upload: Upload, code: str) -> str:
        upload.state = "rejected"
        return code

    # Deleting -----------------------------------------------------------------------------------------------------

    def trash(self, documents: Iterable[Document]) -> None:
        gone = list(documents)
        for one in gone:
            one.trashed, one.canonical, one.upload.state = True, False, "deleted"
            if one.status == "pending":
                one.status, one.stopped, one.lease = "failed", True, None
        self._settle(gone)

    def restore(self, documents: Iterable[Document]) -> None:
        for one in sorted(documents, key=lambda one: one.id):
            other = self.canonical(one.owner, one.content)
            one.trashed, one.upload.state = False, "uploaded"
            one.canonical, one.duplicate_of = other is None, other.id if other else None
            if one.stopped:
                one.status, one.stopped = "pending", False

    def purge(self, documents: Iterable[Document]) -> None:
        gone = list(documents)
        for one in gone:
            one.upload.state = "deleted"
            del self.documents[one.id]
        for left in self.documents.values():
            if left.duplicate_of in {one.id for one in gone}:
                left.duplicate_of = None
        self._settle(gone)

    def _settle(self, gone: Iterable[Document]) -> None:
        """The oldest that is left stands for the content, and the others are its twins."""
        for owner, content in {(one.owner, one.content) for one in gone}:
            left = self.live(owner, content)
            holder = self.canonical(owner, content) or next(iter(left), None)
            for one in left:
                one.canonical = one is holder
                one.duplicate_of = None if one is holder or holder is None else holder.id

    # Whose it is --------------------------------------------------------------------------------------------------

    def merge(self, visitor: UUID, person: UUID) -> None:
        for one in self.documents.values():
            if one.owner == visitor and one.canonical and (twin := self.canonical(person, one.content)):
                one.canonical, one.duplicate_of = False, twin.id
        for one in self.documents.values():
            one.owner = person if one.owner == visitor else one.owner
        for one in self.uploads.values():
            one.owner = person if one.owner == visitor else one.owner
