"""Whatever is done with documents, in any order: no connection dangles, doubles, leads to itself or is missing."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from octavo.choreography import Cause, compare_documents
from octavo.connect.connections import Decision, decide, rebuild
from octavo.core.errors import OctavoError
from octavo.intake import NewUpload
from octavo.jobs.job_run import ClaimedJob
from octavo.library import changes
from tests.support.library import LIMITS
from tests.support.postgres import Server
from tests.support.processing import attempt
from tests.support.upload_house import House, open_house

SAFE = b"# Harbour report\n\nThe harbour bridge carries forty thousand cars. Engineers consider the bridge safe."
UNSAFE = b"# Inspection\n\nThe harbour bridge carries forty thousand cars. Engineers do not consider the bridge safe."
STUDY = b"# Study\n\nForty thousand cars use the harbour bridge, and engineers consider the bridge safe."
BREAD = b"# Sourdough\n\nFeed the starter with flour and water, and bake the dough with steam."
TEXTS = (SAFE, UNSAFE, STUDY, BREAD)
KINDS = ("process_document", "detect_connections", "embed_document")
# What the engines find in these texts, whichever of the two came first.
EXPECTED: dict[frozenset[bytes], set[str]] = {
    frozenset((SAFE, UNSAFE)): {"contradiction_detection"},
    frozenset((SAFE, STUDY)): {"semantic_similarity"},
    frozenset((UNSAFE, STUDY)): {"semantic_similarity"},
}
WRONG = """
    SELECT c.id FROM connections c
    LEFT JOIN chunks s ON s.id = c.source_chunk LEFT JOIN documents ds ON ds.id = s.document_id
    LEFT JOIN chunks t ON t.id = c.target_chunk LEFT JOIN documents dt ON dt.id = t.document_id
    WHERE ds.id IS NULL OR dt.id IS NULL OR ds.revision <> s.revision OR dt.revision <> t.revision
       OR (ds.id, dt.id) <> (c.source_document, c.target_document) OR ds.sha256 = dt.sha256
       OR ds.owner_id <> c.owner_id OR dt.owner_id <> c.owner_id
       OR c.source_end > length(s.content) OR c.target_end > length(t.content)
    UNION ALL
    SELECT a.id FROM connections a JOIN connections b ON a.id <> b.id
        AND (a.engine = b.engine AND (a.engine <> 'contradiction_detection' OR a.digest = b.digest)
             OR a.engine = 'semantic_similarity' AND b.engine = 'contradiction_detection')
        AND (a.source_chunk, a.target_chunk) IN ((b.source_chunk, b.target_chunk), (b.target_chunk, b.source_chunk))"""
OTHER_VECTORS = """
    INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector)
    SELECT embedding_model('other', 384), chunk_id, owner_id, document_id, vector FROM chunk_embeddings e
    WHERE document_id = %s AND model_id <> embedding_model('other', 384) ON CONFLICT DO NOTHING RETURNING chunk_id"""


class Machine(RuleBasedStateMachine):
    house: ClassVar[House]
    connected: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.run = self.house.run
        self.run(self.house.empty())
        self.owner: UUID = self.run(self.house.desk.new_owner())
        for text in TEXTS:
            self.upload(text)
        self.finish_everything()

    def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        return self.house.engine.rows(statement, *values)

    def some(self, data: st.DataObject, *, trashed: bool | None = False) -> UUID | None:
        where = {None: "", True: "WHERE deleted_at IS NOT NULL", False: "WHERE deleted_at IS NULL"}[trashed]
        found = [row["id"] for row in self.rows(f"SELECT id FROM documents {where} ORDER BY id")]
        return data.draw(st.sampled_from(found)) if found else None

    # What people do -------------------------------------------------------------------------------------------------

    @rule(text=st.sampled_from(TEXTS))
    def upload(self, text: bytes) -> None:
        self.run(self.house.desk.intake.take(self.owner, NewUpload("note.md", "text/markdown"), text, LIMITS))

    @rule(data=st.data(), what=st.sampled_from(["trash", "restore", "purge", "retry"]))
    def change(self, data: st.DataObject, what: str) -> None:
        one = self.some(data, trashed={"trash": False, "restore": True, "purge": None, "retry": False}[what])
        if one is None:
            return
        if what == "retry":
            self.run(self.house.change(changes.retry_document, self.owner, one, None))
            return
        verbs = {
            "trash": changes.trash_documents,
            "restore": changes.restore_documents,
            "purge": changes.purge_documents,
        }
        self.run(self.house.change(verbs[what], self.owner, [one]))

    @rule(data=st.data())
    def embed_again(self, data: st.DataObject) -> None:
        one = self.some(data)
        if one:
            self.rows(OTHER_VECTORS, one)
            self.run(self.house.change(compare_documents, Cause.OTHER_MODEL, [one], "model:other"))

    @rule()
    def compare_anew(self) -> None:
        self.run(self.house.change(rebuild, self.owner))

    @precondition(lambda self: self.rows("SELECT id FROM connections"))
    @rule(data=st.data(), decision=st.sampled_from(Decision))
    def judge(self, data: st.DataObject, decision: Decision) -> None:
        shown = """SELECT c.id FROM connections c JOIN documents s ON s.id = c.source_document AND s.deleted_at IS NULL
                   JOIN documents t ON t.id = c.target_document AND t.deleted_at IS NULL ORDER BY c.id"""
        if found := [row["id"] for row in self.rows(shown)]:
            self.run(self.house.change(decide, self.owner, data.draw(st.sampled_from(found)), decision))

    # What workers do ------------------------------------------------------------------------------------------------

    @rule(stops=st.sampled_from([None, None, "before", "after"]))
    def work(self, stops: str | None) -> None:
        for job in self.house.engine.claim(kinds=KINDS):
            self.work_on(job, f"stage.commit.{stops}@1=raise" if stops else "")

    @rule()
    def work_after_somebody_else_took_it(self) -> None:
        """Who lost the job saves nothing."""
        for job in self.house.engine.claim(kinds=KINDS):
            self.house.engine.hand_back(job)
            self.work_on(job)

    def work_on(self, job: ClaimedJob, faults: str = "") -> None:
        engine = self.house.engine
        try:
            self.run(attempt(job, self.house.tools, faults))
            engine.complete(job)
        except OctavoError as error:
            if error.code == "IO_ERROR":
                engine.hand_back(job)
            else:
                engine.fail(job, error.error_class)

    def finish_everything(self) -> None:
        while jobs := self.house.engine.claim(kinds=KINDS):
            self.work_on(jobs[0])

    # What must hold -------------------------------------------------------------------------------------------------

    @invariant()
    def nothing_dangles_or_doubles(self) -> None:
        assert self.rows(WRONG) == []

    def teardown(self) -> None:
        """When all is done, everything that is there is connected as it should be, whatever happened before."""
        self.finish_everything()
        self.nothing_dangles_or_doubles()
        shown = self.rows("SELECT id, filename, sha256 FROM documents WHERE deleted_at IS NULL AND embeddings_ready")
        texts = {row["id"]: self.text_of(row["sha256"]) for row in shown}
        made: dict[frozenset[UUID], set[str]] = {}
        for row in self.rows("SELECT source_document, target_document, engine FROM connections"):
            ends = frozenset((row["source_document"], row["target_document"]))
            if ends <= texts.keys():
                made.setdefault(ends, set()).add(row["engine"])
        wanted = {
            frozenset((one, other)): EXPECTED[frozenset((mine, theirs))]
            for one, mine in texts.items()
            for other, theirs in texts.items()
            if one < other and frozenset((mine, theirs)) in EXPECTED
        }
        assert {ends: engines - {"thematic_bridge"} for ends, engines in made.items()} == wanted
        type(self).connected += len(wanted)

    def text_of(self, digest: bytes) -> bytes:
        from hashlib import sha256

        return next(text for text in TEXTS if sha256(text).digest() == bytes(digest))


def run(server: Server, examples: int, steps: int, *, derandomize: bool) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=derandomize,
        phases=[Phase.generate] if derandomize else [Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    with server.database() as info, open_house(info) as Machine.house:
        run_state_machine_as_test(Machine, settings=chosen)
    assert Machine.connected


def test_in_any_order_no_connection_dangles_doubles_or_is_missing(newest_server: Server) -> None:
    run(newest_server, 4, 20, derandomize=True)


@pytest.mark.long
def test_in_any_order_no_connection_dangles_doubles_or_is_missing_for_long(newest_server: Server) -> None:
    run(newest_server, 150, 50, derandomize=False)
