"""Whatever several owners do with uploads and documents, in any order: a small model says the same after each step."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from hashlib import sha256
from typing import Any, ClassVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from octavo.core.errors import OctavoError
from octavo.database import Connection
from octavo.intake import IntakeLimits, NewUpload, Outcome
from octavo.intake.upload_rows import Policy, sweep_abandoned
from octavo.jobs.job_run import ClaimedJob
from octavo.library import changes
from octavo.library.changes import KIND
from octavo.library.files import find_file
from octavo.ops.doctor import CHECKS
from octavo.owners import open_anonymous_session
from octavo.owners.sessions import open_session
from octavo.records.documents import Retried
from tests.support.library import LIMITS, sweep_objects
from tests.support.postgres import Server
from tests.support.processing import attempt
from tests.support.upload_house import House, open_house
from tests.support.upload_model import Document, Model, Upload

ALPHA = "# Alpha\n\nThe quick brown fox, naïve.\n\n## Beta\n\n".encode() + b"Words for the body of it. " * 200
BETA = b"A short note, and nothing else."
BLANK = b" \n\n \t "  # accepted, and then there is no text in it
BINARY = bytes(range(256))  # kept, and never read
CONTENTS = (ALPHA, BETA, BLANK, BINARY)
SENT = (ALPHA, b"", *CONTENTS)
# The stages before a document is described, and of these the one that cuts it into chunks.
STAGES = {ALPHA: 4, BETA: 4, BLANK: 0, BINARY: 1}
CHUNKED = 3
POLICIES: st.SearchStrategy[Policy] = st.sampled_from(("reuse", "reject", "new"))
CLAIMS = st.sampled_from([None, ALPHA, None, None])
ROOM = st.sampled_from([True, False, True])
# All that can become of a request; a run that misses one has not tried enough.
ANSWERS = {
    *("uploaded", "deduplicated", "twin", "repeated", "received", "completed", "failed", "handed back", "lease lost"),
    *("UPLOAD_CLOSED", "UPLOAD_INCOMPLETE", "EMPTY", "HASH_MISMATCH", "DUPLICATE", "QUOTA_EXCEEDED", "NOT_FOUND"),
    *("trashed", "restored", "purged", "promoted", "merged", "merged twins", "abandoned", "took over"),
    *("retry skipped", "retry pending", "retry revision", "retry requeued", "VALIDATION", "SOURCE_GONE"),
}
RETRIED = {
    "retry skipped": "skipped",
    "retry pending": "pending",
    "retry revision": "pending",
    "retry requeued": "pending",
}
Answer = Outcome | str


class Machine(RuleBasedStateMachine):
    house: ClassVar[House]
    seen: ClassVar[set[str]] = set()
    chunks: ClassVar[dict[bytes, int]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.run = self.house.run
        self.desk = self.house.desk
        self.intake = self.desk.intake
        self.run(self.house.empty())
        self.model = Model()
        self.leases: list[ClaimedJob] = []
        self.people = [self.run(self.desk.new_owner()) for _ in range(2)]
        self.visitors: dict[UUID, str] = {}
        self.gone: list[UUID] = []
        for _ in range(2):
            self.visit()

    @initialize()
    def begin_late(self) -> None:
        """A document in every state, so that also what happens late in a life is tried often."""
        (first, second), visitor = self.people, next(iter(self.visitors))
        for owner, content in [*((first, content) for content in CONTENTS), (second, BETA), (second, ALPHA)]:
            self.take(owner, content)
            if (owner, content) != (second, ALPHA):
                self.claim()
                self.work_on(self.leases[-1], None)
        *_, expired, trashed = self.model.documents.values()
        self.expire_one(expired)
        self.trash_some([trashed])
        for owner in (first, visitor, visitor):
            self.take(owner, ALPHA, "new")
        self.claim()

    # Bringing in --------------------------------------------------------------------------------------------------

    @rule(data=st.data(), policy=POLICIES, claim=CLAIMS)
    def begin(self, data: st.DataObject, policy: Policy, claim: bytes | None) -> None:
        self.open_upload(self.draw_owner(data), policy, claim)

    @precondition(lambda self: self.model.uploads)
    @rule(data=st.data(), content=st.sampled_from(SENT))
    def receive(self, data: st.DataObject, content: bytes) -> None:
        upload = self.draw_upload(data)
        self.same(self.intake.receive(upload.owner, upload.id, content, LIMITS), self.model.receive(upload, content))

    @precondition(lambda self: self.model.uploads)
    @rule(data=st.data(), room=ROOM)
    def finalize(self, data: st.DataObject, room: bool) -> None:
        upload = self.draw_upload(data)
        limits = self.limits(upload.owner, room)
        self.same(self.intake.finalize(upload.owner, upload.id, limits), self.model.finalize(upload, room=room))

    @rule(data=st.data(), content=st.sampled_from(SENT), policy=POLICIES, claim=CLAIMS, room=ROOM)
    def take_whole(self, data: st.DataObject, content: bytes, policy: Policy, claim: bytes | None, room: bool) -> None:
        self.take(self.draw_owner(data), content, policy, claim, room)

    def take(
        self, owner: UUID, content: bytes, policy: Policy = "reuse", claim: bytes | None = None, room: bool = True
    ) -> None:
        """In one call, whose upload nobody knows before it ends."""
        limits = self.limits(owner, room)
        answer = self.ask(self.intake.take(owner, announce(policy, claim), in_pieces(content), limits))
        made = "SELECT id, document_id, process_id FROM uploads WHERE id <> ALL (%s)"
        (row,) = self.house.engine.rows(made, list(self.model.uploads))
        upload = Upload(row["id"], owner, row["document_id"], row["process_id"], policy, claim)
        self.model.uploads[upload.id] = upload
        refused = self.model.receive(upload, content)
        self.compare(answer, refused if refused != "received" else self.model.finalize(upload, room=room))

    def open_upload(self, owner: UUID, policy: Policy, claim: bytes | None) -> Upload:
        ticket = self.run(self.intake.begin(owner, announce(policy, claim), LIMITS))
        upload = Upload(ticket.upload_id, owner, ticket.document_id, ticket.process_id, policy, claim)
        self.model.uploads[upload.id] = upload
        return upload

    @precondition(lambda self: self.model.uploads)
    @rule(data=st.data())
    def meddle(self, data: st.DataObject) -> None:
        """A stranger, or a browser whose visitor has become a person's, finds nothing."""
        upload = self.draw_upload(data)
        stranger = data.draw(st.sampled_from([one for one in [*self.owners, *self.gone] if one != upload.owner]))
        self.same(self.intake.receive(stranger, upload.id, BETA, LIMITS), "NOT_FOUND")
        self.same(self.intake.finalize(stranger, upload.id, LIMITS), "NOT_FOUND")
        self.same(self.intake.content(stranger, upload.id), "NOT_FOUND")
        if upload.document in self.model.documents:
            for what in (changes.trash_documents, changes.restore_documents, changes.purge_documents):
                self.same(self.house.change(what, stranger, [upload.document]), "NOT_FOUND")
        if stranger in self.gone:
            self.same(self.intake.begin(stranger, NewUpload("note"), LIMITS), "NOT_FOUND")

    @rule()
    def abandon(self) -> None:
        pending = [one for one in self.model.uploads.values() if one.state == "pending"]
        assert self.run(sweep_abandoned(self.desk.database, self.desk.bucket, 0)) == len(pending)
        for one in pending:
            one.state = "failed"
            self.seen.add("abandoned")

    # Deleting -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.some(trashed=False))
    @rule(data=st.data())
    def trash(self, data: st.DataObject) -> None:
        self.trash_some(self.draw_some(data, self.some(trashed=False)))

    def trash_some(self, some: Sequence[Document]) -> None:
        self.run(self.house.change(changes.trash_documents, some[0].owner, [one.id for one in some]))
        self.watch_promotion(lambda: self.model.trash(some))
        self.seen.add("trashed")

    @precondition(lambda self: self.some(trashed=True))
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        some = self.draw_some(data, self.some(trashed=True))
        self.run(self.house.change(changes.restore_documents, some[0].owner, [one.id for one in some]))
        self.model.restore(some)
        self.seen.add("restored")

    @precondition(lambda self: self.model.documents)
    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        some = self.draw_some(data, list(self.model.documents.values()))
        self.run(self.house.change(changes.purge_documents, some[0].owner, [one.id for one in some]))
        self.watch_promotion(lambda: self.model.purge(some))
        self.run(self.sweep())  # what a worker that lost it had made
        self.seen.add("purged")

    @precondition(lambda self: self.some(has_source=True, status="completed"))
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """As retention will do it: the file goes, the document stays."""
        self.expire_one(self.draw(data, self.some(has_source=True, status="completed")))

    def expire_one(self, one: Document) -> None:
        self.run(self.house.change(expire_source, one.id))
        self.run(self.sweep())
        one.has_source = False

    # Whose it is --------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def sign_in(self, data: st.DataObject) -> None:
        visitor = data.draw(st.sampled_from(sorted(self.visitors)))
        person = data.draw(st.sampled_from(self.people))
        before = {one.id for one in self.model.documents.values() if one.canonical}
        self.run(self.merge(visitor, person))
        self.model.merge(visitor, person)
        after = {one.id for one in self.model.documents.values() if one.canonical}
        self.seen.add("merged twins" if before != after else "merged")
        del self.visitors[visitor]
        self.gone.append(visitor)
        self.visit()

    async def merge(self, visitor: UUID, person: UUID) -> None:
        async with self.desk.database.transaction() as connection:
            await open_session(connection, person, None, replacing=self.visitors[visitor])

    def visit(self) -> None:
        async def come() -> tuple[str, UUID]:
            async with self.desk.database.transaction() as connection:
                secret, caller = await open_anonymous_session(connection)
            return secret, caller.owner_id

        secret, visitor = self.run(come())
        self.visitors[visitor] = secret

    # Processing ---------------------------------------------------------------------------------------------------

    @rule()
    def claim(self) -> None:
        waiting = [one for one in self.model.documents.values() if one.status == "pending" and one.lease is None]
        claimed = self.house.engine.claim(kinds=(KIND,))
        assert len(claimed) == min(1, len(waiting))
        for lease in claimed:
            document = self.model.documents[lease.document_id or UUID(int=0)]
            assert document in waiting
            assert document.process == lease.id
            document.lease = lease
            self.leases.append(lease)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), stops=st.sampled_from([None, None, "before", "after"]), number=st.integers(1, 3))
    def work(self, data: st.DataObject, stops: str | None, number: int) -> None:
        good = [lease for lease in self.leases if self.holder(lease)]
        lease = data.draw(st.sampled_from([*self.leases, *good * 6]))
        self.work_on(lease, (stops, number) if stops else None)

    def work_on(self, lease: ClaimedJob, stops: tuple[str, int] | None) -> None:
        """A worker that is told to stop in the middle of it hands it back."""
        engine, document = self.house.engine, self.holder(lease)
        faults = f"stage.commit.{stops[0]}@{stops[1]}=raise" if stops else ""
        try:
            self.run(attempt(lease, self.house.tools, faults))
            ended = "completed" if engine.complete(lease) else "lease lost"
        except OctavoError as error:
            if error.code == "IO_ERROR":
                ended = "handed back" if engine.hand_back(lease) else "lease lost"
            else:
                ended = "failed" if engine.fail(lease, error.error_class) else "lease lost"
        self.run(self.sweep())
        assert ended == self.expected_end(document, stops)
        self.seen.add(ended)

    def expected_end(self, document: Document | None, stops: tuple[str, int] | None) -> str:
        if document is None:
            return "lease lost"
        document.lease = None
        if not document.has_source or document.content == BLANK:
            document.status = "failed"
            return "failed"
        left = STAGES[document.content] - document.stages
        # A text that is read for the first time is committed at once. If describing it fails, its stages are repeated
        # one by one.
        at_once = left if document.stages == 0 else 1
        if stops and stops[1] * at_once <= left:
            document.stages += (stops[1] - (stops[0] == "before")) * at_once
            return "handed back"
        document.stages += left
        document.status = "completed"
        return "completed"

    @precondition(lambda self: self.model.documents)
    @rule(data=st.data(), from_stage=st.sampled_from([None, None, "chunked"]))
    def retry(self, data: st.DataObject, from_stage: str | None) -> None:
        one = self.draw(data, list(self.model.documents.values()))
        try:
            answer = self.run(self.house.change(changes.retry_document, one.owner, one.id, from_stage))
        except OctavoError as error:
            answer = error.code
        label = self.expected_retry(one, from_stage, answer)
        assert (answer if isinstance(answer, str) else answer.state) == RETRIED.get(label, label)
        self.seen.add(label)

    def expected_retry(  # noqa: PLR0911 - one for each answer
        self, one: Document, from_stage: str | None, answer: Retried | str
    ) -> str:
        if one.trashed:
            return "NOT_FOUND"
        if one.status == "completed" and one.content == BINARY:
            return "retry skipped"
        if not one.has_source:
            return "SOURCE_GONE"
        if one.status == "pending":
            return "retry pending"
        if from_stage and one.stages < CHUNKED:
            return "VALIDATION"
        if one.status == "failed":
            one.status = "pending"
            if from_stage:
                one.stages = CHUNKED - 1
            return "retry requeued"
        assert isinstance(answer, Retried)
        one.status, one.process, one.stages = "pending", answer.process_id, CHUNKED - 1 if from_stage else 0
        return "retry revision"

    # The model's own machinery ------------------------------------------------------------------------------------

    @property
    def owners(self) -> list[UUID]:
        return [*self.people, *self.visitors]

    def limits(self, owner: UUID, room: bool) -> IntakeLimits:
        full = IntakeLimits(LIMITS.upload_bytes, self.model.usage(owner)[0], LIMITS.concurrent)
        return LIMITS if room else full

    def some(self, **wanted: object) -> list[Document]:
        return [
            one
            for one in self.model.documents.values()
            if all(getattr(one, name) == value for name, value in wanted.items())
        ]

    def draw_owner(self, data: st.DataObject) -> UUID:
        return data.draw(st.sampled_from(self.owners))

    def draw_upload(self, data: st.DataObject) -> Upload:
        """More often one that is still open."""
        known = list(self.model.uploads.values())
        return data.draw(st.sampled_from([*known, *[one for one in known if one.state == "pending"] * 4]))

    def draw(self, data: st.DataObject, documents: Sequence[Document]) -> Document:
        """A state first, so that rare ones get their turn."""
        status = data.draw(st.sampled_from(sorted({one.status for one in documents})))
        return data.draw(st.sampled_from([one for one in documents if one.status == status]))

    def draw_some(self, data: st.DataObject, documents: Sequence[Document]) -> list[Document]:
        """One of them, or several of the same owner at once."""
        first = self.draw(data, documents)
        others = [one for one in documents if one.owner == first.owner and one is not first]
        more = data.draw(st.lists(st.sampled_from(others), max_size=2, unique_by=lambda one: one.id)) if others else []
        return [first, *more]

    def holder(self, lease: ClaimedJob) -> Document | None:
        document = self.model.documents.get(lease.document_id or UUID(int=0))
        return document if document and document.lease is lease else None

    def same(self, request: Coroutine[Any, Any, Any], expected: Answer) -> None:
        self.compare(self.ask(request), expected)

    def ask(self, request: Coroutine[Any, Any, Any]) -> Answer:
        """What a request answers, or the code of its error."""
        try:
            answer = self.run(request)
        except OctavoError as error:
            return error.code
        return answer if isinstance(answer, Outcome) else "received"

    def compare(self, answer: Answer, expected: Answer) -> None:
        assert answer == expected
        self.seen.add(expected if isinstance(expected, str) else describe(expected))
        if isinstance(expected, Outcome) and not expected.duplicate:
            doubled = [one for one in self.model.documents.values() if one.duplicate_of == expected.document_id]
            self.seen.update({"took over"} if doubled and expected.state == "uploaded" else set())

    def watch_promotion(self, change: Callable[[], None]) -> None:
        twins = {one.id for one in self.model.documents.values() if not one.canonical and not one.trashed}
        change()
        if any(one.canonical for one in self.model.documents.values() if one.id in twins):
            self.seen.add("promoted")

    async def sweep(self) -> None:
        await sweep_objects(self.desk.database, self.desk.bucket, 0)

    # What must always hold ----------------------------------------------------------------------------------------

    @invariant()
    def all_holds(self) -> None:
        self.model_equals_database()
        self.each_content_has_one_canonical_upload()
        self.usage_is_added_up()
        self.what_was_made_is_there_once()
        self.run(self.the_books_balance_and_the_doctor_finds_nothing())

    def model_equals_database(self) -> None:
        found = {row["id"]: row for row in self.house.engine.rows(DOCUMENTS)}
        assert found == {one.id: as_row(one) for one in self.model.documents.values()}
        uploads = self.house.engine.rows("SELECT id, owner_id, state, document_id FROM uploads")
        assert {(row["id"], row["owner_id"], row["state"], row["document_id"]) for row in uploads} == {
            (one.id, one.owner, one.state, one.document) for one in self.model.uploads.values()
        }

    def each_content_has_one_canonical_upload(self) -> None:
        contents = {(one.owner, one.content) for one in self.model.documents.values() if not one.trashed}
        rows = self.house.engine.rows("SELECT owner_id, sha256, document_id FROM uploads WHERE is_canonical")
        assert len(rows) == len(contents)
        assert {(row["owner_id"], row["sha256"]) for row in rows} == {
            (owner, sha256(content).digest()) for owner, content in contents
        }
        assert {row["document_id"] for row in rows} == {
            one.id for one in self.model.documents.values() if one.canonical
        }

    def usage_is_added_up(self) -> None:
        rows = self.house.engine.rows("SELECT owner_id, bytes, documents FROM owner_usage")
        used = {row["owner_id"]: (row["bytes"], row["documents"]) for row in rows}
        assert {owner: used.get(owner, (0, 0)) for owner in self.owners} == {
            owner: self.model.usage(owner) for owner in self.owners
        }

    def what_was_made_is_there_once(self) -> None:
        rows = self.house.engine.rows("SELECT document_id, count(*) AS chunks FROM chunks GROUP BY document_id")
        made = {row["document_id"]: row["chunks"] for row in rows}
        for one in self.model.documents.values():
            if one.status == "completed":
                chunks = made.get(one.id, 0)
                assert chunks == self.chunks.setdefault(one.content, chunks)

    async def the_books_balance_and_the_doctor_finds_nothing(self) -> None:
        await self.desk.check_books()
        for name in ("documents", "files", "jobs", "caps"):
            await CHECKS[name](self.house.installation)

    def teardown(self) -> None:
        """Every document that is not in the trash can be read back, byte for byte, and its text too."""
        self.run(self.read_back())

    async def read_back(self) -> None:
        for one in self.some(trashed=False, has_source=True):
            assert await self.read_file(one, "source") == one.content
            if one.status == "completed" and one.content in {ALPHA, BETA}:
                assert (await self.read_file(one, "markdown")).strip() == one.content.strip()

    async def read_file(self, one: Document, kind: str) -> bytes:
        async with self.desk.database.connection() as connection:
            file = await find_file(connection, one.owner, one.id, kind)
        return await self.desk.bucket.read(file.key)


DOCUMENTS = """
    SELECT d.id, d.owner_id, d.process_id, d.status, d.deleted_at IS NOT NULL AS trashed, d.duplicate_of, d.sha256,
           d.bytes, o.sha256 AS kept
    FROM documents d LEFT JOIN artifacts a ON a.document_id = d.id AND a.kind = 'source'
    LEFT JOIN objects o USING (key)"""


def as_row(one: Document) -> dict[str, object]:
    digest = sha256(one.content).digest()
    return {
        "id": one.id,
        "owner_id": one.owner,
        "process_id": one.process,
        "status": one.status,
        "trashed": one.trashed,
        "duplicate_of": one.duplicate_of,
        "sha256": digest,
        "bytes": len(one.content),
        "kept": digest if one.has_source else None,
    }


def announce(policy: Policy, claim: bytes | None) -> NewUpload:
    digest = sha256(claim).hexdigest() if claim is not None else None
    return NewUpload("note.md", "text/markdown", sha256=digest, duplicates=policy)


async def in_pieces(content: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(content), 1000):
        yield content[start : start + 1000]


def describe(outcome: Outcome) -> str:
    if outcome.duplicate:
        return "repeated"
    return "twin" if outcome.state == "uploaded" and outcome.duplicate_of else outcome.state


async def expire_source(connection: Connection, document: UUID) -> None:
    await connection.execute(b"DELETE FROM artifacts WHERE document_id = %s AND kind = 'source'", [document])
    await connection.execute(b"DELETE FROM objects WHERE refs = 0")


def run(server: Server, examples: int, steps: int, *, same: int | None = None) -> None:
    """`same` is the seed of a run that is always the same; without one every run is new."""
    Machine.seen, Machine.chunks = set(), {}
    seed(same if same is not None else random.getrandbits(64))(Machine)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=False,
        # Looking for a shorter way to a failure takes minutes, which the long form has.
        phases=[Phase.generate] if same is not None else [Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    with server.database() as info, open_house(info) as Machine.house:
        run_state_machine_as_test(Machine, settings=chosen)
    assert Machine.seen <= ANSWERS


@pytest.mark.parametrize(
    ("examples", "same"), [(4, 5), *(pytest.param(8, same, marks=pytest.mark.long) for same in (1, 5))]
)
def test_random_actions_of_owners_match_the_model(newest_server: Server, examples: int, same: int) -> None:
    run(newest_server, examples, 50, same=same)
    assert len(Machine.seen) > len(ANSWERS) * 2 / 3


@pytest.mark.long
def test_random_actions_of_owners_match_the_model_in_long_runs(newest_server: Server) -> None:
    run(newest_server, 300, 60)
    assert Machine.seen == ANSWERS
