"""What is named on the command line becomes files: each once, nothing by accident, nothing silently left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from octavo.cli.local_files import FileSelection, find_files


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.md", "folder/c.txt", "folder/deep/d.txt", "folder/.hidden", "folder/.git/config"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    Path("folder/link.txt").symlink_to("c.txt")
    Path("folder/loop").symlink_to(".", target_is_directory=True)
    Path("folder/deep/loop").symlink_to("../..", target_is_directory=True)
    return tmp_path


def shown(found: FileSelection) -> list[str]:
    return [file.shown for file in found.files]


def skipped(found: FileSelection) -> dict[str, str]:
    return {one.shown: one.reason for one in found.skipped}


def refused(found: FileSelection) -> dict[str, str]:
    return {one.shown: one.error.code for one in found.refused}


def test_files_keep_their_order_and_their_size(tree: Path) -> None:
    found = find_files(["b.md", "a.txt"])
    assert shown(found) == ["b.md", "a.txt"]
    assert [(file.size, file.name) for file in found.files] == [(4, "b.md"), (5, "a.txt")]


def test_a_folder_is_walked_without_hidden_files_and_links_and_both_are_reported(tree: Path) -> None:
    found = find_files(["folder"])
    assert shown(found) == ["folder/c.txt", "folder/deep/d.txt"]
    hidden = {"folder/.git": "hidden", "folder/.hidden": "hidden"}
    links = dict.fromkeys(["folder/link.txt", "folder/loop", "folder/deep/loop"], "link")
    assert skipped(found) == hidden | links
    assert found.refused == []


def test_a_hidden_file_or_link_is_added_if_it_is_named_explicitly(tree: Path) -> None:
    found = find_files(["folder/.hidden", "folder/link.txt"])
    assert shown(found) == ["folder/.hidden", "folder/link.txt"]
    assert found.skipped == []


def test_a_file_that_is_named_twice_is_added_once(tree: Path) -> None:
    assert shown(find_files(["a.txt", "./a.txt", str(tree / "a.txt"), "folder", "folder/c.txt"])) == [
        *("a.txt", "folder/c.txt", "folder/deep/d.txt")
    ]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("*.txt", ["a.txt"]),
        ("**/*.txt", ["a.txt", "folder/c.txt", "folder/deep/d.txt", "folder/link.txt"]),
        ("?.md", ["b.md"]),
        ("fold*", ["folder/c.txt", "folder/deep/d.txt"]),
        ("folder/.h*", ["folder/.hidden"]),
        ("f*/*/*.txt", ["folder/deep/d.txt", "folder/loop/c.txt", "folder/loop/link.txt"]),
        ("**.txt", []),
    ],
)
def test_a_pattern_that_no_shell_expanded_is_matched(tree: Path, pattern: str, files: list[str]) -> None:
    assert shown(find_files([pattern])) == files


def test_an_absolute_pattern_is_matched(tree: Path) -> None:
    assert shown(find_files([f"{tree}/*.md"])) == [f"{tree}/b.md"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tree: Path) -> None:
    Path("[1].txt").write_text("1")
    Path("1.txt").write_text("2")
    assert shown(find_files(["[1].txt"])) == ["[1].txt"]


def test_what_is_not_there_is_refused_and_the_rest_is_kept(tree: Path) -> None:
    os.mkfifo("pipe")
    os.mkfifo("folder/pipe")
    found = find_files(["nothing.txt", "*.pdf", "a.txt/b", "pipe", "a.txt", "folder"])
    assert shown(found) == ["a.txt", "folder/c.txt", "folder/deep/d.txt"]
    missing = dict.fromkeys(["nothing.txt", "*.pdf", "a.txt/b"], "NO_SUCH_FILE")
    assert refused(found) == {**missing, "pipe": "NOT_A_FILE"}
    assert skipped(found)["folder/pipe"] == "special"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_refused(tree: Path) -> None:
    Path("folder/deep").chmod(0)
    try:
        found = find_files(["folder"])
    finally:
        Path("folder/deep").chmod(0o755)
    assert refused(found) == {"folder/deep": "IO_ERROR"}


def test_a_name_that_is_no_text_can_be_shown(tree: Path) -> None:
    Path(os.fsdecode(b"caf\xe9.txt")).write_text("x")
    (found,) = find_files(["caf*"]).files
    assert found.shown == "caf\ufffd.txt"
    found.shown.encode()
    assert found.path.exists()
