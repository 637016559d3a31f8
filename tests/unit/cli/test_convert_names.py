"""Every file that is converted has a result of its own, whatever the files are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.cli.convert import Form, _names  # pyright: ignore[reportPrivateUsage] - the rule itself
from octavo.cli.local_files import LocalFile


@pytest.mark.parametrize(
    ("files", "results"),
    [
        (["a.pdf", "b.pdf"], ["a.xml", "b.xml"]),
        (["a.pdf", "a.pdf", "a.pdf"], ["a.xml", "a-2.xml", "a-3.xml"]),
        (["a.pdf", "a.pdf", "a-2.pdf"], ["a.xml", "a-3.xml", "a-2.xml"]),
        (["a-2.pdf", "a.pdf", "a.pdf"], ["a-2.xml", "a.xml", "a-3.xml"]),
        # Some file systems do not tell these two apart.
        (["A.pdf", "a.pdf"], ["A.xml", "a-2.xml"]),
    ],
)
def test_no_result_overwrites_another(files: list[str], results: list[str]) -> None:
    found = [LocalFile(Path(f"/{n}/{name}"), f"{n}/{name}", name, 1) for n, name in enumerate(files)]
    assert list(_names(found, Form.XML).values()) == results
