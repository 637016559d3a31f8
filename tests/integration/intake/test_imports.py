"""Files that are added together are an import; what somebody adds by hand is not."""

from __future__ import annotations

from uuid import UUID, uuid4

from octavo.intake import Outcome
from octavo.intake.upload_rows import AUTOMATIC
from tests.support.library import Desk

PLACE = """
    SELECT d.import_id, lane_of(j.priority) AS lane FROM documents d JOIN jobs j ON j.id = d.process_id
    WHERE d.id = %s"""


async def place(desk: Desk, made: Outcome) -> tuple[UUID | None, str]:
    (row,) = await desk.rows(PLACE, made.document_id)
    return row["import_id"], row["lane"]


async def add_files(desk: Desk, owner: UUID, count: int, **given: str) -> list[Outcome]:
    return [await desk.add(owner, f"{uuid4()}".encode(), given=given) for _ in range(count)]


async def test_marked_files_are_one_import(desk: Desk, owner: UUID) -> None:
    key = str(uuid4())
    made = await add_files(desk, owner, 3, **{"import": key})
    places = {await place(desk, one) for one in made}
    assert len(places) == 1
    assert next(iter(places))[1] == "bulk"
    assert await desk.one("SELECT metadata FROM documents WHERE id = %s", made[0].document_id) == {}


async def test_the_same_mark_of_two_owners_is_two_imports(desk: Desk, owner: UUID) -> None:
    key, other = str(uuid4()), uuid4()
    await desk.rows("INSERT INTO owners (id, kind) VALUES (%s, 'user')", other)
    made = [*await add_files(desk, owner, 1, **{"import": key}), *await add_files(desk, other, 1, **{"import": key})]
    assert len({await place(desk, one) for one in made}) == 2


async def test_a_file_is_added_by_hand_however_many_are_imported(desk: Desk, owner: UUID) -> None:
    await add_files(desk, owner, 30, **{"import": str(uuid4())})
    (mine,) = await add_files(desk, owner, 1)
    assert await place(desk, mine) == (None, "interactive")


async def test_a_program_that_marks_nothing_imports_when_five_files_wait(desk: Desk, owner: UUID) -> None:
    places = [await place(desk, one) for one in await add_files(desk, owner, 9, **{"import": AUTOMATIC})]
    assert [lane for _, lane in places] == ["interactive"] * 5 + ["bulk"] * 4
    assert len({noticed for noticed, _ in places[5:]}) == 1
    pasted = await desk.add(owner, b"a pasted line", given={"import": AUTOMATIC}, source_type="paste")
    assert await place(desk, pasted) == (None, "interactive")


async def test_very_many_files_in_a_browser_are_an_import_too(desk: Desk, owner: UUID) -> None:
    places = [await place(desk, one) for one in await add_files(desk, owner, 22)]
    assert [lane for _, lane in places] == ["interactive"] * 20 + ["bulk"] * 2


async def test_a_visitors_paused_imports_continue_after_sign_in(desk: Desk, owner: UUID) -> None:
    visitor = uuid4()
    await desk.rows("INSERT INTO owners (id, kind) VALUES (%s, 'anonymous')", visitor)
    (made,) = await add_files(desk, visitor, 1, **{"import": str(uuid4())})
    await desk.one("SELECT pause_imports(%s)", visitor)
    await desk.one("SELECT merge_owner(%s, %s)", visitor, owner)
    assert await desk.one("SELECT admitted FROM jobs WHERE id = %s", made.process_id)
    assert await desk.one("SELECT owner_id FROM imports") == owner
