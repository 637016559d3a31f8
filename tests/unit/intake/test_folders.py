"""A watched folder shows its complete files, and never a file outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from octavo.core.settings import Settings
from octavo.intake.errors import BadFolder
from octavo.intake.sources.folders import MOVED_TO, SeenFile, check_folder, move_added, open_inside, scan_folder


def put(folder: Path, name: str, text: str = "words") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def paths(folder: Path, *, deep: bool = True) -> set[str]:
    return {one.path for one in scan_folder(folder, deep=deep)}


def seen(folder: Path, path: str) -> SeenFile:
    return next(one for one in scan_folder(folder, deep=True) if one.path == path)


def test_incomplete_hidden_and_empty_files_are_left_out(tmp_path: Path) -> None:
    for name in ("a.pdf", "b.pdf.part", "c.crdownload", ".hidden", "~$letter.docx", "d.txt~", "Thumbs.db", "e.tmp"):
        put(tmp_path, name)
    put(tmp_path, "empty.txt", "")
    put(tmp_path, ".git/config")
    assert paths(tmp_path) == {"a.pdf"}


def test_subfolders_are_read_unless_they_are_ignored(tmp_path: Path) -> None:
    put(tmp_path, "a.txt")
    put(tmp_path, "2026/11/b.txt")
    put(tmp_path, f"{MOVED_TO}/c.txt")
    assert paths(tmp_path) == {"a.txt", "2026/11/b.txt"}
    assert paths(tmp_path, deep=False) == {"a.txt"}


def test_links_are_never_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    put(outside, "secret.txt", "the secret")
    put(folder, "inner/a.txt")
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "all").symlink_to(outside)
    assert paths(folder) == {"inner/a.txt"}
    for path in ("link.txt", "all/secret.txt"):
        with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
            open_inside(folder, path)
    os.close(open_inside(folder, "inner/a.txt"))
    (folder / "inner").rename(folder / "old")
    (folder / "inner").symlink_to(outside)  # replaced between the look and the job
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        open_inside(folder, "inner/secret.txt")


def test_a_pipe_is_not_opened_as_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert paths(tmp_path) == set()
    with pytest.raises(BadFolder):
        open_inside(tmp_path, "pipe.txt")


def test_moving_replaces_no_file_and_leaves_changed_ones(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "first")
    move_added(tmp_path, [seen(tmp_path, "a.txt")])
    put(tmp_path, "a.txt", "second")
    move_added(tmp_path, [seen(tmp_path, "a.txt")])
    file = seen(tmp_path, put(tmp_path, "sub/b.txt", "third").relative_to(tmp_path).as_posix())
    put(tmp_path, "sub/b.txt", "changed")
    move_added(tmp_path, [file])
    added = {one.relative_to(tmp_path).as_posix(): one.read_text() for one in tmp_path.rglob("*.txt")}
    assert added == {f"{MOVED_TO}/a.txt": "first", f"{MOVED_TO}/a (2).txt": "second", "sub/b.txt": "changed"}


def test_the_own_data_of_octavo_is_never_watched(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", storage_url=f"file://{tmp_path}/bucket")
    for name in ("data/objects", "bucket/inner", "inbox"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("data", "data/objects", "bucket", "bucket/inner", "."):
        with pytest.raises(BadFolder, match="its own data"):
            check_folder(settings, str(tmp_path / name))
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with pytest.raises(BadFolder, match="its own data"):
        check_folder(settings, str(tmp_path / "link"))
    assert check_folder(settings, str(tmp_path / "inbox")) == (tmp_path / "inbox").resolve()


@pytest.mark.parametrize("path", ["relative", "", "/nowhere/at/all", "/etc/passwd", "/a\0b"])
def test_what_is_no_folder_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(BadFolder):
        check_folder(Settings(data_dir=tmp_path), path)
