"""Real things to show: dead letters of jobs that really failed, keys, people, webhooks with a log."""

from __future__ import annotations

from uuid import UUID, uuid4

from tests.support.browser import Place, Visitor
from tests.support.engine import Engine
from tests.support.processes import wait_until


def make_dead_letters(place: Place, number: int) -> list[UUID]:
    """Jobs of the machine's own owner that the running worker gave up after their first and only attempt."""
    engine = place.database
    owner = engine.one("SELECT id FROM owners WHERE kind = 'local'")
    known = "SELECT count(*) FROM job_kinds WHERE name = 'demo'"
    wait_until(lambda: engine.one(known), "a worker has said what kinds there are")
    failing = {"stages": 1, "fail": "transient"}
    jobs = engine.put(owner, "demo", number, input=failing, max_attempts=1, priority=0)
    wait_until(lambda: all(is_dead(engine, job) for job in jobs), "the jobs are given up")
    return jobs


def is_dead(engine: Engine, job: UUID) -> bool:
    return engine.status(job) == "dead_letter"


def fill_rooms(member: Visitor) -> str:
    """A key, a second person, a stopped webhook with a log, a refused file and more; answers the webhook's id."""
    member.ask("POST", "/keys", json={"name": "A script with a name that is longer than most names", "scope": "write"})
    email = f"somebody.with.a.long.address.{uuid4().hex}@department.example.org"
    member.place.sign_up(email)
    member.ask("POST", "/members", json={"email": email, "role": "reader"})
    address = "https://hooks.example.org/a/rather/long/address/of/a/webhook/0f9a8b7c6d5e4f3a2b1c"
    hook = str(member.ask("POST", "/webhooks", json={"address": address})["id"])
    engine = member.place.database
    engine.run("UPDATE subscribers SET active = false, stopped_because = 'GONE' WHERE id = %s", hook)
    for status, answer, code in (("failed", 503, "GW_5XX"), ("delivered", 204, None)):
        engine.run(
            "INSERT INTO deliveries (id, subscriber_id, job_id, attempt, type, status, answer, seconds, error_code)"
            " VALUES (gen_random_uuid(), %s, gen_random_uuid(), 1, 'document.failed', %s, %s, 0.25, %s)",
            *(hook, status, answer, code),
        )
    for title in ("Payments", "What a contract says of payments that are late, and of everything else"):
        member.ask("POST", "/prompts", json={"title": title, "content": "Who pays what, and until when? " * 8})
    member.ask("POST", "/collections", json={"name": "Everything that came with the mail of the last years"})
    empty = {"file": ("A scan of which nothing came through, with a long name.pdf", b"", "application/pdf")}
    member.api.post("/api/v1/documents", files=empty)
    tell(member, None)
    tell(member, "CRASHED")
    return hook


def tell(member: Visitor, error: str | None) -> UUID:
    made, owner = uuid4(), member.ask("GET", "/session")["owner_id"]
    kind, level = ("job.failed", "error") if error else ("document.completed", "news")
    member.place.database.run(
        "INSERT INTO notifications (id, owner_id, event_id, process_id, type, level, error_code, created_at)"
        " VALUES (%s, %s, %s, gen_random_uuid(), %s, %s, %s, now())",
        *(made, owner, made.int % 2**60, kind, level, error),
    )
    return made


def fill_map(member: Visitor, documents: int) -> None:
    """So many documents, each connected with two others, by all engines in turn: more than a test can read in."""
    owner, engine = member.ask("GET", "/session")["owner_id"], member.place.database
    engine.run(
        """WITH made AS (
               INSERT INTO documents (id, owner_id, process_id, status, title, filename, content_type, source_type,
                                      sha256, bytes, quality, revision, last_revision, text_ready, family_id)
               SELECT gen_random_uuid(), %s, gen_random_uuid(), 'completed', 'Report ' || n || ' of the harbour board',
                      n || '.txt', 'text/plain', 'text', sha256(n::text::bytea), 100, 'full', 1, 1, true,
                      gen_random_uuid()
               FROM generate_series(1, %s) AS n RETURNING id
           ) INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count)
           SELECT gen_random_uuid(), id, 1, 0, 'The board met and said what it says each year.', 0, 46, 10 FROM made""",
        *(owner, documents),
    )
    engine.run(
        """WITH passages AS (SELECT c.id, c.document_id, row_number() OVER (ORDER BY d.sha256) AS n
                             FROM chunks c JOIN documents d ON d.id = c.document_id WHERE d.owner_id = %s)
           INSERT INTO connections (id, owner_id, engine, source_chunk, target_chunk, source_document, target_document,
                                    strength, source_start, source_end, target_start, target_end, explanation, status,
                                    made_by, digest)
           SELECT gen_random_uuid(), %s,
                  ('{semantic_similarity,contradiction_detection,thematic_bridge}'::text[])[1 + (a.n + b.n) %% 3],
                  least(a.id, b.id), greatest(a.id, b.id),
                  CASE WHEN a.id < b.id THEN a.document_id ELSE b.document_id END,
                  CASE WHEN a.id < b.id THEN b.document_id ELSE a.document_id END, 0.4 + 0.6 / a.n,
                  0, 20, 0, 20, 'Both say it.', 'found', 'local', sha256((a.n || ' ' || b.n)::bytea)
           FROM passages a JOIN passages b ON b.n IN (a.n + 1, a.n + 7)""",
        *(owner, owner),
    )
