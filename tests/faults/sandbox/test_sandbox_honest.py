"""An honest parser notices nothing of the sandbox: threads, native libraries, late imports and paths work."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pypdfium2
import pytest
from PIL import Image

from octavo.core.errors import Defect
from octavo.sandbox import JSON, Call, Limits, Progress, Sandbox
from tests.faults.sandbox.conftest import CHILDREN

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    path = tmp_path / "two pages.pdf"
    document: Any = pypdfium2.PdfDocument.new()
    for _ in range(2):
        document.new_page(200, 100).close()
    document.save(path)
    document.close()
    return path


@pytest.mark.parametrize("function", ["use_threads", "read_twice"])
async def test_ordinary_code_works(sandbox: Sandbox, pdf: Path, function: str) -> None:
    assert (await sandbox.run(Call(f"innocent:{function}"), input_file=pdf)).value is True


async def test_module_can_be_imported_late(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Call("innocent:import_late"))
    assert isinstance(outcome.value, list)
    assert outcome.value[:2] == ["b", 2]


async def test_pdf_opens_by_path(sandbox: Sandbox, pdf: Path) -> None:
    assert (await sandbox.run(Call("innocent:open_pdf_by_path"), input_file=pdf)).value == 2


async def test_pdf_opens_by_descriptor_and_renders(sandbox: Sandbox, pdf: Path) -> None:
    with tempfile.TemporaryFile() as output, pdf.open("rb") as source:
        outcome = await sandbox.run(Call("innocent:render_pdf"), input_file=source, output_file=output)
        assert outcome.value == [200, 100]
        with Image.open(output) as picture:
            assert picture.size == (200, 100)


async def test_picture_is_decoded(sandbox: Sandbox) -> None:
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output:
        Image.new("RGB", (64, 64), "red").save(source, "PNG")
        source.flush()
        outcome = await sandbox.run(Call("innocent:shrink_picture"), input_file=source, output_file=output)
        assert outcome.value == [8, 8]
        assert outcome.output_bytes == os.fstat(output.fileno()).st_size > 0


async def test_input_may_have_no_name_and_positions_stay(sandbox: Sandbox) -> None:
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output:
        source.write(b"0123456789")
        source.flush()
        output.write(b"what an earlier attempt left behind")
        output.flush()
        output.seek(0)
        outcome = await sandbox.run(Call("innocent:copy"), input_file=source.fileno(), output_file=output.fileno())
        assert (outcome.value, outcome.output_bytes) == (10, 10)
        assert output.read() == b"0123456789"
        assert source.tell() == 10
        assert (await sandbox.run(Call("innocent:read_twice"), input_file=source)).value is True


async def test_arguments_arrive(sandbox: Sandbox) -> None:
    arguments: dict[str, JSON] = {"text": "ä\ud800\0", "number": 1.5, "nested": [{"deep": None}], "long": "x" * 500_000}
    assert (await sandbox.run(Call("innocent:echo", arguments))).value == arguments


async def test_arguments_are_limited(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match="pass large data in the input"):
        await sandbox.run(Call("innocent:echo", {"long": "x" * (2 << 20)}))


async def test_only_regular_files_are_given(sandbox: Sandbox, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    before = psutil.Process().num_fds()
    for odd in (tmp_path / "fifo", tmp_path):
        with pytest.raises(ValueError, match="regular files"):
            await sandbox.run(Call("innocent:copy"), input_file=odd)
    assert psutil.Process().num_fds() == before


async def test_without_files_input_is_empty(sandbox: Sandbox) -> None:
    assert (await sandbox.run(Call("innocent:copy"))).value == 0


async def test_progress_arrives(sandbox: Sandbox) -> None:
    heard: list[Progress] = []
    await sandbox.run(Call("innocent:count_up"), on_progress=heard.append)
    assert heard[-1] == Progress(3, 3, "pages")


async def test_cost_is_measured(sandbox: Sandbox, tmp_path: Path) -> None:
    picture = tmp_path / "large.png"
    memory = io.BytesIO()
    Image.new("L", (5000, 5000)).save(memory, "PNG")
    picture.write_bytes(memory.getvalue())
    with tempfile.TemporaryFile() as output:
        outcome = await sandbox.run(Call("innocent:shrink_picture"), input_file=picture, output_file=output)
    assert outcome.peak_memory_bytes > 25_000_000
    assert outcome.cpu_seconds > 0
    assert 0 < outcome.wall_seconds < Limits().wall_seconds


async def test_preload_that_fails_says_why() -> None:
    with pytest.raises(Defect, match="No module named 'no_such_module'"):
        async with Sandbox(preload=["no_such_module"]):
            pass


async def test_what_only_some_tasks_need_is_there_when_many_have_come() -> None:
    async with Sandbox(readable=[CHILDREN], later=["no_such_module", "wave"]) as sandbox:
        asked = [await sandbox.run(Call("innocent:has_loaded", {"module": "wave"})) for _ in range(10)]
    assert [one.value for one in asked] == [False] * 9 + [True]
