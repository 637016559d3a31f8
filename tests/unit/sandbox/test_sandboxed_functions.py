"""Functions of the sandbox: found by name, called with JSON, and preloaded from modules that exist."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from octavo.extract.ocr.recognition import PRELOAD as OCR_PRELOAD
from octavo.extract.pdf.pdf_file import UNLOCK_PRELOAD, read_pages
from octavo.extract.pictures.quotes import PRELOAD as QUOTES_PRELOAD
from octavo.ops.instance import LATER, PRELOAD
from octavo.sandbox import Call, Task, sandboxed
from octavo.sandbox.child import find_function

if TYPE_CHECKING:
    from octavo.sandbox import JSON


@sandboxed
def add(task: Task, *, first: int, second: int = 0) -> JSON:
    return first + second


def test_a_call_has_the_name_and_the_arguments() -> None:
    assert add.call(first=1) == Call(f"{__name__}:add", {"first": 1})


def test_a_call_does_not_show_its_arguments() -> None:
    assert "secret" not in repr(read_pages.call(first=1, last=2, layout=True, password="secret"))


def test_arguments_go_by_name() -> None:
    with pytest.raises(TypeError, match="by name"):
        add.call(1)  # pyright: ignore[reportCallIssue]


def test_a_marked_function_is_found_by_its_name() -> None:
    assert find_function(read_pages.call(first=1, last=1, layout=True, password=None).function) is read_pages


@pytest.mark.parametrize("name", ["os:system", "octavo.extract.extracted:from_json", "octavo.sandbox:Task"])
def test_what_is_not_marked_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="not a sandboxed function"):
        find_function(name)


@pytest.mark.parametrize("module", sorted({*PRELOAD, *LATER, *OCR_PRELOAD, *UNLOCK_PRELOAD, *QUOTES_PRELOAD}))
def test_preloaded_modules_exist(module: str) -> None:
    assert importlib.util.find_spec(module)
